// SPDX-License-Identifier: Apache-2.0
// Slides read by a process of their own: the same pixels as in this one, and what stops that process is the loss of one
// slide.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <zlib.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "common/slide_process.hpp"
#include "support/expect_says.hpp"
#include "support/oracle.hpp"
#include "support/sanitizers.hpp"
#include "support/scratch_folder.hpp"
#include "support/tiff_files.hpp"

int main(int argc, char** argv) {
  suture::examples::serve_slides(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

namespace {

#if defined(SUTURE_EXAMPLE_OPENSLIDE)

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;
using support::noise_image;
using support::write_tiled;
using slides_apart = support::scratch_folder;

void expect_same(const slide& a, const slide& b) {
  ASSERT_EQ(a.layout().levels.size(), b.layout().levels.size());
  for (std::size_t i = 0; i < a.layout().levels.size(); ++i) {
    EXPECT_EQ(a.layout().levels[i].height, b.layout().levels[i].height);
    EXPECT_EQ(a.layout().levels[i].width, b.layout().levels[i].width);
    EXPECT_EQ(a.layout().levels[i].downsample, b.layout().levels[i].downsample);
  }
  EXPECT_EQ(a.layout().mpp, b.layout().mpp);
  EXPECT_EQ(a.mpp_source(), b.mpp_source());
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.background(), b.background());
  const slide_level& base = a.layout().levels[0];
  const auto last = static_cast<std::int32_t>(a.layout().levels.size() - 1);
  for (const std::int32_t level : {0, last})
    for (const auto& [y, x] : {std::pair<std::int64_t, std::int64_t>{0, 0},
                               {17, 31},
                               {-20, -9},
                               {base.height - 10, base.width - 20},
                               {base.height + 5, 0}})
      EXPECT_EQ(a.read(y, x, level, 70, 90).pixels, b.read(y, x, level, 70, 90).pixels);
  EXPECT_SAYS(b.read(0, 0, last + 1, 2, 2), "no level");
}

// 2^20 rows of white, 8192 to a tile, all of them the same 60 kB of the file; a tile takes 256 MB.
void write_endless(const fs::path& path) {
  constexpr std::size_t side = 8192, tiles = 128;
  const std::vector<unsigned char> white(side * side, 255);
  uLongf size = compressBound(white.size());
  support::made_tiff file;
  file.data.resize(size);
  ASSERT_EQ(compress(file.data.data(), &size, white.data(), white.size()), Z_OK);
  file.data.resize(size);
  support::tiff_page& page = file.pages[0];
  page[256].values = page[322].values = page[323].values = {side};
  page[257].values = {side * tiles};
  page[259].values = {8};  // deflate
  page[324].values.assign(tiles, 8);
  page[325].values.assign(tiles, size);
  support::write_bytes(path, file.bytes());
}

TEST_F(slides_apart, are_the_slides_read_here) {
  write_tiled(folder / "pyramid.tif", {noise_image(320, 448, 1), noise_image(80, 112, 2)}, 20000);
  expect_same(*open_slide(folder / "pyramid.tif"), *open_slide_apart(folder / "pyramid.tif"));
  write_tiled(folder / "plain.tif", {noise_image(100, 100, 3)});
  expect_same(*open_slide(folder / "plain.tif", 0.37), *open_slide_apart(folder / "plain.tif", 0.37));
  const fs::path real = support::data_folder() / "histology/CMU-1-Small-Region.svs";
  if (fs::exists(real)) expect_same(*open_slide(real), *open_slide_apart(real));
}

TEST_F(slides_apart, say_what_is_wrong_as_those_read_here) {
  write_tiled(folder / "plain.tif", {noise_image(100, 100, 3)});
  write_tiled(folder / "wide.tif", {noise_image(200, 300, 1), noise_image(40, 150, 2)}, 20000);
  support::write_bytes(folder / "text.svs", {'t', 'e', 'x', 't'});
  support::write_bytes(folder / "monster.svs", support::wide_tile().bytes());
  for (const char* name : {"plain.tif", "wide.tif", "text.svs", "monster.svs", "absent.svs"}) {
    const std::string here = message([&] { open_slide(folder / name); });
    EXPECT_NE(here.find(name), here.npos) << here;
    EXPECT_EQ(message([&] { open_slide_apart(folder / name); }), here);
  }
}

TEST_F(slides_apart, may_be_read_by_several_threads) {
  const rgb_image base = noise_image(640, 640, 1);
  write_tiled(folder / "a.tif", {base}, 20000);
  const auto s = open_slide_apart(folder / "a.tif");
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 20; ++i) {
        const rgb_image part = s->read(100 * t + i, 50 * i / 10, 0, 30, 40);
        for (std::int64_t y = 0; y < 30; ++y)
          for (std::int64_t x = 0; x < 40; ++x)
            ASSERT_EQ(part.at(y, x)[1], base.at(100 * t + i + y, 50 * i / 10 + x)[1]);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(slides_apart, that_want_too_much_memory_are_lost_alone) {
  if (support::any_sanitizer) GTEST_SKIP() << "sanitizers need the address space";
  write_endless(folder / "endless.tif");
  write_tiled(folder / "good.tif", {noise_image(100, 100, 3)}, 20000);
  const auto good = open_slide_apart(folder / "good.tif");
  constexpr std::uint64_t too_little = std::uint64_t{300} << 20;
  std::unique_ptr<slide> endless;
  const auto use = [&] {
    if (endless == nullptr) endless = open_slide_apart(folder / "endless.tif", 0.5, {.memory_bytes = too_little});
    endless->read(0, 0, 0, 8, 8);
  };
  EXPECT_SAYS(use(), "endless.tif: ");
  EXPECT_SAYS(use(), "memory");
  // It stays lost; the other is as it was, and so is the same one with what it needs.
  EXPECT_SAYS(use(), "memory");
  EXPECT_EQ(good->read(0, 0, 0, 100, 100).pixels, noise_image(100, 100, 3).pixels);
  EXPECT_EQ(open_slide_apart(folder / "endless.tif", 0.5)->read(0, 0, 0, 2, 2).pixels,
            std::vector<std::uint8_t>(12, 255));
}

TEST_F(slides_apart, that_take_too_long_are_lost_alone) {
  write_endless(folder / "endless.tif");
  write_tiled(folder / "good.tif", {noise_image(100, 100, 3)}, 20000);
  const auto good = open_slide_apart(folder / "good.tif");
  const auto endless = open_slide_apart(folder / "endless.tif", 0.5, {.seconds = 1});
  const auto start = std::chrono::steady_clock::now();
  // A strip across every tile, each decoded more than once.
  EXPECT_SAYS(endless->read(0, 0, 0, 1 << 20, 16), "endless.tif: to read it took more than 1 seconds");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_SAYS(endless->read(0, 0, 0, 2, 2), "to read it took more than 1 seconds");
  EXPECT_EQ(good->read(0, 0, 0, 100, 100).pixels, noise_image(100, 100, 3).pixels);
}

TEST_F(slides_apart, leave_nothing_behind) {
  const auto files = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); };
  write_tiled(folder / "a.tif", {noise_image(100, 100, 3)}, 20000);
  const auto before = files();
  for (int i = 0; i < 20; ++i) {
    open_slide_apart(folder / "a.tif")->read(0, 0, 0, 20, 20);
    EXPECT_SAYS(open_slide_apart(folder / "absent.tif"), "cannot be opened");
  }
  EXPECT_EQ(files(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

#endif

}  // namespace
