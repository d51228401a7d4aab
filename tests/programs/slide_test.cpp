// SPDX-License-Identifier: Apache-2.0
// Slides and pictures that the examples read: against OpenSlide's own reading of a real slide, against pyramids written
// here, and damaged; thumbnails against their definition; the synthetic slide.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include "common/bounded_queue.hpp"
#include "common/histology_phantom.hpp"
#include "common/slide.hpp"
#include "support/expect_says.hpp"
#include "support/scratch_folder.hpp"
#include "support/source_directory.hpp"
#include "support/tiff_files.hpp"
#include "suture/image/digest.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

using slides = support::scratch_folder;
using support::noise_image;
using support::write_tiled;
using pictures = slides;

std::vector<char> contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

[[maybe_unused]] const fs::path& real_slide() {
  static const fs::path path = support::source_directory() / "examples/data/histology/CMU-1-Small-Region.svs";
  return path;
}

#if defined(SUTURE_EXAMPLE_OPENSLIDE)

TEST_F(slides, end_in_their_background) {
  ASSERT_TRUE(fs::exists(real_slide())) << real_slide();
  const auto s = open_slide(real_slide());
  const rgb_image whole = s->read(0, 0, 0, 60, 50), moved = s->read(-7, -11, 0, 60, 50);
  for (std::int64_t y = 0; y < 60; ++y)
    for (std::int64_t x = 0; x < 50; ++x)
      for (int k = 0; k < 3; ++k)
        ASSERT_EQ(moved.at(y, x)[k],
                  y < 7 || x < 11 ? s->background()[static_cast<std::size_t>(k)] : whole.at(y - 7, x - 11)[k]);
  const rgb_image corner = s->read(2957, 2200, 0, 30, 40), last = s->read(2957, 2200, 0, 10, 20);
  for (std::int64_t y = 0; y < 30; ++y)
    for (std::int64_t x = 0; x < 40; ++x)
      ASSERT_EQ(corner.at(y, x)[1], y < 10 && x < 20 ? last.at(y, x)[1] : s->background()[1]);
  EXPECT_EQ(s->read(5000, 0, 0, 2, 2).pixels, std::vector<std::uint8_t>(12, 255));
  EXPECT_EQ(s->read(-50, 0, 0, 2, 2).pixels, std::vector<std::uint8_t>(12, 255));
  EXPECT_SAYS(s->read(0, 0, 1, 2, 2), "no level 1");
  EXPECT_SAYS(s->read(0, 0, 0, 0, 2), "cannot be read");
}

TEST_F(slides, pyramids_are_read_level_by_level) {
  const rgb_image base = noise_image(320, 448, 1), quarter = noise_image(80, 112, 2);
  write_tiled(folder / "pyramid.tif", {base, quarter}, 20000);
  const auto s = open_slide(folder / "pyramid.tif");
  ASSERT_EQ(s->layout().levels.size(), 2u);
  EXPECT_EQ(s->layout().levels[1].downsample, 4);
  EXPECT_NEAR(s->layout().mpp, 0.5, 1e-6);
  EXPECT_EQ(s->mpp_source(), "TIFF resolution");
  const rgb_image read = s->read(40, 80, 1, 20, 30);
  for (std::int64_t y = 0; y < 20; ++y)
    for (std::int64_t x = 0; x < 30; ++x) ASSERT_EQ(read.at(y, x)[0], quarter.at(10 + y, 20 + x)[0]);
  EXPECT_EQ(s->read(0, 0, 0, 320, 448).pixels, base.pixels);
  // Background before the slide, and nothing is shifted.
  const rgb_image before = s->read(-4, -8, 1, 20, 30);
  EXPECT_EQ(before.at(1, 2)[2], quarter.at(0, 0)[2]);
  EXPECT_EQ(before.at(0, 5)[2], 255);
}

TEST_F(slides, without_a_resolution_need_one) {
  write_tiled(folder / "plain.tif", {noise_image(100, 100, 3)});
  EXPECT_SAYS(open_slide(folder / "plain.tif"), "states no resolution");
  EXPECT_EQ(open_slide(folder / "plain.tif", 0.25)->layout().mpp, 0.25);
  EXPECT_EQ(open_slide(folder / "plain.tif", 0.25)->mpp_source(), "assumed");
  write_tiled(folder / "printer.tif", {noise_image(100, 100, 3)}, 118);  // 300 dots per inch
  EXPECT_SAYS(open_slide(folder / "printer.tif"), "states no resolution");
}

TEST_F(slides, broken_pyramids_are_refused) {
  write_tiled(folder / "wide.tif", {noise_image(200, 300, 1), noise_image(40, 150, 2)}, 20000);
  EXPECT_SAYS(open_slide(folder / "wide.tif"), "no pyramid");
}

TEST_F(slides, damaged_files_are_refused) {
  EXPECT_SAYS(open_slide(folder / "absent.svs"), "cannot be opened");
  write(folder / "text.svs", {'n', 'o', 't', ' ', 'a', ' ', 's', 'l', 'i', 'd', 'e'});
  EXPECT_SAYS(open_slide(folder / "text.svs"), "not a slide");
  write_tiled(folder / "whole.tif", {noise_image(500, 500, 1), noise_image(125, 125, 2)}, 20000);
  const auto bytes = contents(folder / "whole.tif");
  for (const double share : {0.01, 0.3, 0.7, 0.999}) {
    write(folder / "cut.tif",
          {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(bytes.size()))});
    EXPECT_THROW(
        {
          const auto s = open_slide(folder / "cut.tif");
          s->read(0, 0, 0, 500, 500);
          s->read(0, 0, 1, 125, 125);
        },
        suture::error)
        << share;
  }
}

TEST_F(slides, cut_off_in_the_middle_are_refused) {
  ASSERT_TRUE(fs::exists(real_slide())) << real_slide();
  const auto bytes = contents(real_slide());
  for (const std::size_t length : {std::size_t{8}, bytes.size() / 2, bytes.size() - 5000}) {
    write(folder / "cut.svs", {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_THROW(thumbnail_of(*open_slide(folder / "cut.svs"), 256), suture::error) << length;
  }
}

#endif

TEST_F(pictures, come_back_as_written) {
  const rgb_image image = noise_image(61, 127, 4);
  write_png(folder / "a.png", image);
  const image_file read = read_image_file(folder / "a.png");
  EXPECT_EQ(read.image.pixels, image.pixels);
  EXPECT_EQ(read.mpp, 0);
  EXPECT_SAYS(open_picture(folder / "a.png"), "states no resolution");
  const auto s = open_picture(folder / "a.png", 0.4);
  EXPECT_EQ(s->layout().mpp, 0.4);
  const rgb_image part = s->read(50, 100, 0, 20, 40);
  for (std::int64_t y = 0; y < 20; ++y)
    for (std::int64_t x = 0; x < 40; ++x)
      ASSERT_EQ(part.at(y, x)[2], y < 11 && x < 27 ? image.at(50 + y, 100 + x)[2] : 255);
  write(folder / "cut.png", {static_cast<char>(0x89), 'P', 'N', 'G', '\r', '\n'});
  EXPECT_SAYS(read_image_file(folder / "cut.png"), "cut.png");
  EXPECT_SAYS(read_image_file(folder / "absent.png"), "cannot be opened");
  write(folder / "text.png", {'t', 'e', 'x', 't', '!'});
  EXPECT_SAYS(read_image_file(folder / "text.png"), "neither PNG nor TIFF");
}

// The header of a PNG and nothing else: cairo would make room for it all first.
TEST_F(pictures, too_large_are_refused_before_there_is_room_for_them) {
  std::vector<char> start{
      static_cast<char>(0x89), 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
  for (const int byte : {0, 0, 0x80, 0, 0, 0, 0x90, 0, 8, 2, 0, 0, 0}) start.push_back(static_cast<char>(byte));
  write(folder / "large.png", start);
  EXPECT_SAYS(read_image_file(folder / "large.png"), "36864 by 32768 pixels; at most 2^28");
}

TEST_F(pictures, that_are_no_files_are_refused) {
  ASSERT_EQ(mkfifo((folder / "pipe.png").c_str(), 0600), 0);
  EXPECT_SAYS(read_image_file(folder / "pipe.png"), "cannot be opened");
  EXPECT_SAYS(read_image_file(folder / std::string(300, 'a')), "cannot be opened");
  EXPECT_SAYS(read_image_file(folder), "cannot be opened");
#if defined(SUTURE_EXAMPLE_OPENSLIDE)
  EXPECT_SAYS(open_slide(folder / "pipe.png"), "cannot be opened");
  EXPECT_SAYS(open_slide(folder / std::string(300, 'a')), "cannot be opened");
#endif
}

#if defined(SUTURE_EXAMPLE_TIFF)
TEST_F(pictures, of_tiff_keep_their_resolution) {
  const rgb_image image = noise_image(70, 90, 5);
  write_tiled(folder / "a.tif", {image}, 40000);
  const image_file read = read_image_file(folder / "a.tif");
  EXPECT_EQ(read.image.pixels, image.pixels);
  EXPECT_NEAR(read.mpp, 0.25, 1e-6);
  const auto bytes = contents(folder / "a.tif");
  write(folder / "cut.tif", {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)});
  EXPECT_SAYS(read_image_file(folder / "cut.tif"), "cut.tif");
}
#endif

// Every pixel of the thumbnail against the mean of the rectangle it covers, in long double.
TEST_F(pictures, thumbnails_average_areas) {
  for (const auto& [height, width, longest] :
       {std::array<std::int64_t, 3>{61, 127, 40}, {127, 61, 127}, {300, 20, 33}, {1, 50, 7}, {600, 600, 1}}) {
    const rgb_image image = noise_image(height, width, 6);
    write_png(folder / "a.png", image);
    const rgb_image small = thumbnail_of(*open_picture(folder / "a.png", 1), longest);
    EXPECT_EQ(std::max(small.height, small.width), std::min(longest, std::max(height, width)));
    const long double fy = static_cast<long double>(height) / static_cast<long double>(small.height);
    const long double fx = static_cast<long double>(width) / static_cast<long double>(small.width);
    const auto overlap = [](long double a, long double b, long double c, long double d) {
      return std::max(0.0L, std::min(b, d) - std::max(a, c));
    };
    for (std::int64_t j = 0; j < small.height; ++j)
      for (std::int64_t i = 0; i < small.width; ++i) {
        long double sum = 0;
        for (auto y = static_cast<std::int64_t>(j * fy);
             y < std::min<std::int64_t>(height, static_cast<std::int64_t>((j + 1) * fy) + 1); ++y)
          for (auto x = static_cast<std::int64_t>(i * fx);
               x < std::min<std::int64_t>(width, static_cast<std::int64_t>((i + 1) * fx) + 1); ++x)
            sum +=
                overlap(y, y + 1, j * fy, (j + 1) * fy) * overlap(x, x + 1, i * fx, (i + 1) * fx) * image.at(y, x)[1];
        ASSERT_NEAR(static_cast<double>(small.at(j, i)[1]), static_cast<double>(sum / (fy * fx)), 0.5 + 1e-9);
      }
  }
}

TEST(HistologyPhantom, IsTheSameWhateverRegionIsRead) {
  const auto s = make_histology_phantom({.height = 1200, .width = 1500});
  for (const std::int32_t level : {0, 1, 2}) {
    const std::int64_t d = level == 0 ? 1 : level == 1 ? 4 : 16, n = level == 2 ? 40 : 100;
    const std::int64_t y0 = 400 / d * d, x0 = 640 / d * d;
    const rgb_image whole = s->read(y0, x0, level, n, n);
    const auto labels = s->labels(y0, x0, level, n, n);
    EXPECT_EQ(make_histology_phantom({.height = 1200, .width = 1500})->labels(y0, x0, level, n, n), labels);
    for (const auto& [dy, dx, h, w] : {std::array<std::int64_t, 4>{0, 0, 7, 9}, {5, 3, 20, 31}, {n - 9, n - 5, 9, 5}}) {
      const rgb_image part = s->read(y0 + dy * d, x0 + dx * d, level, h, w);
      const auto part_labels = s->labels(y0 + dy * d, x0 + dx * d, level, h, w);
      for (std::int64_t y = 0; y < h; ++y)
        for (std::int64_t x = 0; x < w; ++x) {
          for (int k = 0; k < 3; ++k) ASSERT_EQ(part.at(y, x)[k], whole.at(dy + y, dx + x)[k]);
          ASSERT_EQ(part_labels[static_cast<std::size_t>(y * w + x)],
                    labels[static_cast<std::size_t>((dy + y) * n + dx + x)]);
        }
    }
  }
}

// What Beer-Lambert's law promises: without noise, compression and ink the optical density of every tissue pixel is a
// sum of not negative amounts of the two stains, nuclei hold most hematoxylin, and glass lets the light through.
TEST(HistologyPhantom, IsStainedByBeerLambert) {
  const histology_options o{.seed = 3, .height = 3000, .width = 4000, .noise = 0, .jpeg_quality = 0};
  const auto s = make_histology_phantom(o);
  const auto& h = o.hematoxylin;
  const auto& e = o.eosin;
  double sums[4] = {}, count[4] = {};
  for (const std::int64_t y : {600, 1200, 1800})
    for (const std::int64_t x : {900, 1700, 2600}) {
      const rgb_image image = s->read(y, x, 0, 200, 200);
      const auto labels = s->labels(y, x, 0, 200, 200);
      for (std::size_t i = 0; i < labels.size(); ++i) {
        double od[3];
        for (std::size_t k = 0; k < 3; ++k)
          od[k] = std::log(static_cast<double>(o.light[k]) / std::max<double>(image.pixels[3 * i + k], 1));
        // Least squares by the normal equations.
        double hh = 0, he = 0, ee = 0, ho = 0, eo = 0;
        for (std::size_t k = 0; k < 3; ++k) {
          const double a = static_cast<double>(h[k]), b = static_cast<double>(e[k]);
          hh += a * a, he += a * b, ee += b * b, ho += a * od[k], eo += b * od[k];
        }
        const double det = hh * ee - he * he, ch = (ho * ee - eo * he) / det, ce = (eo * hh - ho * he) / det;
        EXPECT_GT(ch, -0.05);
        EXPECT_GT(ce, -0.05);
        for (std::size_t k = 0; k < 3; ++k)
          ASSERT_NEAR(od[k], ch * static_cast<double>(h[k]) + ce * static_cast<double>(e[k]),
                      0.6 / std::max<double>(image.pixels[3 * i + k], 1) + 0.02);
        sums[labels[i]] += ch;
        ++count[labels[i]];
      }
    }
  for (const int label : {1, 2, 3}) ASSERT_GT(count[label], 500) << label;
  EXPECT_GT(sums[label_nucleus] / count[label_nucleus], 0.7);
  EXPECT_LT(sums[label_stroma] / count[label_stroma], 0.25);
  const rgb_image corner = s->read(0, 3900, 0, 8, 8);
  for (std::size_t i = 0; i < corner.pixels.size(); ++i)
    ASSERT_EQ(corner.pixels[i], static_cast<std::uint8_t>(o.light[i % 3]));
}

// The digests of what is made of it are the same on every machine, so it must be.
TEST(HistologyPhantom, IsTheSameEverywhere) {
  const auto s = make_histology_phantom({.seed = 7});
  const rgb_image image = s->read(2600, 3400, 0, 256, 256);
  EXPECT_EQ(digest(image.view_of()), 0xe5ab983867739138ull);
}

TEST(BoundedQueue, HandsOverInOrderAndEndsFromEitherSide) {
  bounded_queue<int> queue(2);
  std::thread maker([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(queue.push(i));
    queue.close();
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop(), i);
  EXPECT_EQ(queue.pop(), std::nullopt);
  maker.join();
  bounded_queue<int> unwanted(1);
  std::thread other([&] {
    while (unwanted.push(1)) {
    }
  });
  EXPECT_EQ(unwanted.pop(), 1);
  unwanted.close();  // a maker that waits for room is let go
  other.join();
}

TEST(HistologyPhantom, BadOptions) {
  EXPECT_SAYS(make_histology_phantom({.height = 0}), "extents");
  EXPECT_SAYS(make_histology_phantom({.mpp = 0}), "mpp");
  EXPECT_SAYS(make_histology_phantom({.noise = -1}), "noise");
  EXPECT_SAYS(make_histology_phantom({.jpeg_quality = 101}), "quality");
}

}  // namespace
