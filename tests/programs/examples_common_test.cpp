// SPDX-License-Identifier: Apache-2.0
// What the examples share beside their files: the phantom, the sample reader, what is seen where on a contact sheet,
// and reports.
#include <cairo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/contact_sheet.hpp"
#include "common/drawing.hpp"
#include "common/phantom.hpp"
#include "common/report.hpp"
#include "common/sample_data.hpp"
#include "support/expect_says.hpp"
#include "support/files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;
using support::oblique_grid;
using sample_reader = support::files;
using contact_sheets = support::files;
using reports = support::files;

phantom_options small_phantom(std::uint64_t seed) {
  return {.seed = seed, .extents = {30, 110, 110}, .spacing = {10, 3.2, 3.2}, .noise = 12};
}

TEST(phantom, the_seed_decides_and_nothing_else) {
  const phantom a = make_phantom(small_phantom(3)), again = make_phantom(small_phantom(3));
  EXPECT_EQ(a.image.voxels, again.image.voxels);
  EXPECT_EQ(a.labels.voxels, again.labels.voxels);
  const phantom other = make_phantom(small_phantom(4));
  EXPECT_NE(a.image.voxels, other.image.voxels);
  EXPECT_NE(a.labels.voxels, other.labels.voxels);
}

TEST(phantom, looks_like_an_abdomen_to_a_histogram) {
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{7}}) {
    const phantom p = make_phantom({.seed = seed, .extents = {75, 220, 220}, .spacing = {4, 1.6, 1.6}});
    std::size_t air = 0, fat = 0, soft = 0, bone = 0, colon = 0;
    std::vector<int> lesion_hu;
    for (std::size_t i = 0; i < p.image.voxels.size(); ++i) {
      const int hu = p.image.voxels[i];
      ASSERT_TRUE(hu >= -1024 && hu <= 3071);
      ASSERT_LE(p.labels.voxels[i], 2);
      air += hu < -900;
      fat += hu > -140 && hu < -60;
      soft += hu > 0 && hu < 200;
      bone += hu > 400;
      colon += p.labels.voxels[i] == label_colon;
      if (p.labels.voxels[i] == label_lesion) lesion_hu.push_back(hu);
    }
    const auto share = [&](std::size_t n) {
      return static_cast<double>(n) / static_cast<double>(p.image.voxels.size());
    };
    EXPECT_GT(share(air), 0.25);
    EXPECT_GT(share(fat), 0.1);
    EXPECT_GT(share(soft), 0.1);
    EXPECT_GT(share(bone), 0.005);
    EXPECT_GT(share(colon), 0.005);
    // Lesions are soft tissue; their rim shares voxels with gas and contrast, their median does not.
    ASSERT_GT(lesion_hu.size(), 500U);
    std::nth_element(lesion_hu.begin(), lesion_hu.begin() + static_cast<std::ptrdiff_t>(lesion_hu.size() / 2),
                     lesion_hu.end());
    EXPECT_NEAR(lesion_hu[lesion_hu.size() / 2], 74, 12);
    for (const std::size_t corner : {std::size_t{0}, std::size_t{219}}) EXPECT_LT(p.image.voxels[corner], -950);
  }
}

TEST(phantom, noise_has_the_deviation_asked_for) {
  phantom_options quiet = small_phantom(2);
  quiet.noise = 0;
  const phantom a = make_phantom(small_phantom(2)), b = make_phantom(quiet);
  double sum = 0, squares = 0, count = 0;
  for (std::size_t i = 0; i < a.image.voxels.size(); ++i) {
    if (b.image.voxels[i] < -400) continue;
    const double d = a.image.voxels[i] - b.image.voxels[i];
    sum += d, squares += d * d, count += 1;
  }
  EXPECT_NEAR(sum / count, 0, 0.5);
  EXPECT_NEAR(std::sqrt(squares / count), 12, 0.6);
}

TEST(phantom, bad_options_are_refused) {
  EXPECT_THROW(make_phantom({.extents = {0, 10, 10}}), error);
  EXPECT_THROW(make_phantom({.spacing = {1, -1, 1}}), error);
  EXPECT_THROW(make_phantom({.noise = -1}), error);
}

// A project as InVesalius writes it: members of a compressed tar in a folder of its own.
std::vector<unsigned char> tar_member(const std::string& name, const std::vector<unsigned char>& content) {
  std::vector<unsigned char> block(512, 0);
  std::memcpy(block.data(), name.data(), name.size());
  std::snprintf(reinterpret_cast<char*>(block.data()) + 124, 12, "%011zo", content.size());
  block.insert(block.end(), content.begin(), content.end());
  block.resize((block.size() + 511) / 512 * 512);
  return block;
}

TEST_F(sample_reader, reads_volume_mask_and_place) {
  const std::string plist =
      "<dict><key>matrix</key><dict><key>shape</key><array><integer>2</integer><integer>3</integer>"
      "<integer>4</integer></array></dict><key>spacing</key><array><real>0.5</real><real>0.75</real><real>1.5</real>"
      "</array></dict>";
  std::vector<unsigned char> matrix, mask;
  for (int i = 0; i < 24; ++i) {
    const int hu = 100 * i - 1024;
    matrix.push_back(static_cast<unsigned char>(hu & 0xff));
    matrix.push_back(static_cast<unsigned char>((hu >> 8) & 0xff));
  }
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) mask.push_back(z == 0 || y == 0 || x == 0 ? 255 : (z + y + x) % 2 ? 255 : 0);
  std::vector<unsigned char> tar;
  for (const auto& [name, content] :
       {std::pair{"tmp1/other.vtp", std::vector<unsigned char>(700, 9)}, std::pair{"tmp1/mask_0.dat", mask},
        std::pair{"tmp1/main.plist", std::vector<unsigned char>(plist.begin(), plist.end())},
        std::pair{"tmp1/matrix.dat", matrix}}) {
    const auto member = tar_member(name, content);
    tar.insert(tar.end(), member.begin(), member.end());
  }
  tar.resize(tar.size() + 1024, 0);
  const sample_volume s = read_invesalius(write("a.gz", tar));
  EXPECT_EQ(s.image.grid.extents, (extent3{2, 3, 4}));
  EXPECT_EQ(s.image.grid.spacing, (point3{1.5, 0.75, 0.5}));
  EXPECT_EQ(s.image.grid.index_to_physical()({0.5, 1, 1.5}), (point3{0, 0, 0}));
  EXPECT_LT(s.image.grid.direction[1][1], 0);  // rows run to the front
  for (int i = 0; i < 24; ++i) EXPECT_EQ(s.image.voxels[static_cast<std::size_t>(i)], 100 * i - 1024);
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 4; ++x)
        EXPECT_EQ(s.labels.voxels[linear_index(s.labels.grid.extents, z, y, x)], (z + y + x + 3) % 2);

  tar.resize(tar.size() - 1024 - 512);
  EXPECT_SAYS(read_invesalius(write("b.gz", tar)), "matrix.dat is missing");
  EXPECT_SAYS(read_invesalius(folder / "none"), "cannot be opened");
}

TEST(shown_on, is_exact_on_a_ramp_and_outside_beyond) {
  volume<float> ramp{oblique_grid(), {}};
  for (std::int64_t z = 0; z < 4; ++z)
    for (std::int64_t y = 0; y < 5; ++y)
      for (std::int64_t x = 0; x < 6; ++x) ramp.voxels.push_back(static_cast<float>(100 * z + 10 * y + x));
  grid target = ramp.grid;
  target.extents = {2, 3, 20};
  target.spacing[2] = 0.5 * ramp.grid.spacing[2];
  target.origin = ramp.grid.index_to_physical()({0.5, 1.25, 2});
  const volume<float> shown = shown_on(ramp, target, -7.0f);
  for (std::int64_t z = 0; z < 2; ++z)
    for (std::int64_t y = 0; y < 3; ++y)
      for (std::int64_t x = 0; x < 20; ++x) {
        const double source_x = 2 + 0.5 * static_cast<double>(x);
        const double expected = source_x > 5.5 ? -7.0
                                               : 100 * (static_cast<double>(z) + 0.5) +
                                                     10 * (static_cast<double>(y) + 1.25) + std::min(source_x, 5.0);
        if (std::abs(source_x - 5.5) < 1e-6) continue;  // on the rim either is right
        EXPECT_NEAR(shown.voxels[linear_index(target.extents, z, y, x)], expected, 1e-3) << z << ' ' << y << ' ' << x;
      }
}

TEST(labels_on, keeps_labels_on_their_own_grid_and_votes_between) {
  label_volume labels{oblique_grid(), {}};
  std::mt19937 random(1);
  for (int i = 0; i < 120; ++i) labels.voxels.push_back(static_cast<std::uint8_t>(random() % 5));
  EXPECT_EQ(labels_on(labels, labels.grid).voxels, labels.voxels);

  // Between 4 and 9 along one axis: the nearer one wins.
  grid line;
  line.extents = {1, 1, 2};
  grid at = line;
  at.extents = {1, 1, 1};
  at.origin = {0, 0, 0.4};
  EXPECT_EQ(labels_on({line, {9, 4}}, at).voxels[0], 9);
  at.origin = {0, 0, 0.6};
  EXPECT_EQ(labels_on({line, {9, 4}}, at).voxels[0], 4);
  at.origin = {0, 0, 0.5};
  EXPECT_EQ(labels_on({line, {9, 4}}, at).voxels[0], 4);  // a tie goes to the lowest
}

class picture {
public:
  explicit picture(const fs::path& path) : surface_(cairo_image_surface_create_from_png(path.c_str())) {}
  ~picture() { cairo_surface_destroy(surface_); }
  picture(const picture&) = delete;
  picture& operator=(const picture&) = delete;
  int width() const { return cairo_image_surface_get_width(surface_); }
  int height() const { return cairo_image_surface_get_height(surface_); }
  // Red, green, blue.
  std::array<int, 3> at(int x, int y) const {
    std::uint32_t pixel = 0;
    std::memcpy(&pixel, cairo_image_surface_get_data(surface_) + y * cairo_image_surface_get_stride(surface_) + 4 * x,
                4);
    return {static_cast<int>(pixel >> 16 & 255), static_cast<int>(pixel >> 8 & 255), static_cast<int>(pixel & 255)};
  }

private:
  cairo_surface_t* surface_;
};

constexpr int top = 136;  // of the first picture of a sheet with one line of legend

TEST_F(contact_sheets, right_of_the_patient_is_left_and_front_and_head_are_up) {
  // The same object stored along different axes: bright where the patient is right, front and head.
  const matrix3 orders[] = {matrix3{}, {{{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}, {{{0, 0, -1}, {0, 1, 0}, {1, 0, 0}}}};
  for (const matrix3& direction : orders) {
    grid g;
    g.extents = {40, 40, 40};
    g.direction = direction;
    const point3 middle = g.index_to_physical()(g.center());
    panel p{{g, {}}, {g, std::vector<std::uint8_t>(64000, 0)}};
    for (double z = 0; z < 40; ++z)
      for (double y = 0; y < 40; ++y)
        for (double x = 0; x < 40; ++x) {
          const point3 q = g.index_to_physical()({z, y, x});
          p.image.voxels.push_back(q[0] > middle[0] - 3 && q[1] < middle[1] + 3 && q[2] < middle[2] + 3 ? 1.0f : 0.0f);
        }
    write_contact_sheet(folder / "a.png", {"test", {}, {{"row", p, p}}});
    const picture sheet(folder / "a.png");
    ASSERT_GT(sheet.width(), 1300);
    // Six pictures of 224 pixels, 6 apart in a group, 26 between the groups; the first at (20, top).
    for (const int left : {20, 250, 480, 730, 960, 1190}) {
      EXPECT_EQ(sheet.at(left + 50, top + 50)[0], 255) << left;
      EXPECT_EQ(sheet.at(left + 190, top + 50)[0], 0) << left;
      EXPECT_EQ(sheet.at(left + 50, top + 170)[0], 0) << left;
      EXPECT_EQ(sheet.at(left + 190, top + 190)[0], 0) << left;
    }
  }
}

TEST_F(contact_sheets, outlines_lie_on_the_edge_of_a_label_and_voxels_keep_their_proportions) {
  grid g;
  g.extents = {16, 32, 32};
  g.spacing = {4, 2, 2};  // a cube of 64 mm
  panel p{{g, std::vector<float>(16384, 0.5f)}, {g, std::vector<std::uint8_t>(16384, 0)}};
  for (std::int64_t z = 4; z < 12; ++z)
    for (std::int64_t y = 8; y < 24; ++y)
      for (std::int64_t x = 8; x < 24; ++x) p.labels.voxels[linear_index(g.extents, z, y, x)] = 2;
  write_contact_sheet(folder / "a.png", {"test", {"one", "two"}, {{"row", p, p}}});
  const picture sheet(folder / "a.png");
  // The label fills the middle half of every picture: its edges are at a quarter and three quarters of 224 pixels.
  for (const int left : {20, 250, 480})
    for (const int edge : {56, 168}) {
      int across = 0, along = 0, inside = 0;
      for (int i = -2; i <= 2; ++i) {
        const auto a = sheet.at(left + edge + i, top + 112), b = sheet.at(left + 100, top + edge + i);
        across = std::max(across, a[0] - a[2]);
        along = std::max(along, b[0] - b[2]);
      }
      for (int i = 4; i < 20; ++i)
        inside =
            std::max(inside, std::abs(sheet.at(left + 60 + i, top + 140)[0] - sheet.at(left + 60 + i, top + 140)[2]));
      EXPECT_GT(across, 60) << left << ' ' << edge;  // label 2 is drawn in red
      EXPECT_GT(along, 60) << left << ' ' << edge;
      EXPECT_EQ(inside, 0);
    }
}

// Where two labels touch, both outlines are seen side by side; where a region ends with the one it is a part of, the
// wider line shows on both sides of the thinner.
TEST_F(contact_sheets, outlines_do_not_hide_each_other) {
  grid g;
  g.extents = {28, 28, 28};
  panel p{{g, std::vector<float>(21952, 0.0f)}, {g, std::vector<std::uint8_t>(21952, 0)}};
  for (std::int64_t z = 0; z < 28; ++z)
    for (std::int64_t y = 0; y < 28; ++y)
      for (std::int64_t x = 0; x < 28; ++x)
        p.labels.voxels[linear_index(g.extents, z, y, x)] = static_cast<std::uint8_t>(x < 14 ? 1 : 2);
  const auto seen = [&](bool nested, const auto& is) {
    contact_sheet sheet{"test", {"one", "two"}, {{"row", p, p}}};
    sheet.nested = nested;
    write_contact_sheet(folder / "a.png", sheet);
    const picture drawn(folder / "a.png");
    int count = 0;
    for (int x = 20 + 100; x < 20 + 124; ++x) count += is(drawn.at(x, top + 60)) ? 1 : 0;
    return count;
  };
  const auto blue = [](const std::array<int, 3>& k) { return k[2] > k[0] + 60; };
  const auto orange = [](const std::array<int, 3>& k) { return k[0] > k[2] + 60; };
  EXPECT_GT(seen(false, blue), 0);
  EXPECT_GT(seen(false, orange), 0);
  // One label in the other, ending where it ends.
  for (std::uint8_t& label : p.labels.voxels) label = label == 1 ? 0 : 2;
  EXPECT_GT(seen(true, blue), 1);
  EXPECT_GT(seen(true, orange), 0);
  EXPECT_EQ(seen(false, blue), 0);  // told that they are separate labels, there is no label 1
}

// Any 28 labels are drawn differently.
TEST_F(contact_sheets, styles_are_distinct) {
  for (int a = 0; a < distinct_styles; ++a)
    for (int b = 0; b < a; ++b) {
      const outline_style one = label_style(a), other = label_style(b);
      const double far =
          std::abs(one.ink.r - other.ink.r) + std::abs(one.ink.g - other.ink.g) + std::abs(one.ink.b - other.ink.b);
      EXPECT_TRUE(far > 0.25 || one.dashes != other.dashes) << a << ' ' << b;
    }
}

TEST_F(contact_sheets, errors) {
  EXPECT_THROW(write_contact_sheet(folder / "a.png", {"empty", {}, {}}), error);
  grid g;
  g.extents = {2, 2, 2};
  const panel good{{g, std::vector<float>(8)}, {g, std::vector<std::uint8_t>(8)}};
  panel bad = good;
  bad.labels.voxels.pop_back();
  EXPECT_THROW(write_contact_sheet(folder / "a.png", {"bad", {}, {{"row", good, bad}}}), error);
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(write_contact_sheet(folder / "file" / "a.png", {"bad", {}, {{"row", good, good}}}), error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(reports, digests_are_sixteen_digits_and_a_report_is_one_line_and_a_file) {
  EXPECT_EQ(hexadecimal(0), "0000000000000000");
  EXPECT_EQ(hexadecimal(0xfedcba9876543210u), "fedcba9876543210");
  testing::internal::CaptureStdout();
  write_report(folder / "report.json", {{"b", 1}, {"a", "two"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"b\":1,\"a\":\"two\"}\n");
  std::ifstream file(folder / "report.json");
  EXPECT_EQ(report::parse(file).at("a"), "two");
}

TEST_F(reports, bytes_that_are_not_utf8_are_replaced) {
  const std::string latin = "caf\xe9", replaced = "caf\xef\xbf\xbd";  // U+FFFD
  EXPECT_EQ(as_utf8("caf\xc3\xa9 \"\n"), "caf\xc3\xa9 \"\n");
  EXPECT_EQ(as_utf8(latin), replaced);
  testing::internal::CaptureStdout();
  write_report(folder / "report.json", {{"name", latin}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"name\":\"" + replaced + "\"}\n");
  const page empty(100, 40, {0, 0, 0});
  text(empty.drawing.get(), 5, 20, 12, latin, {1, 1, 1});
  text_on_picture(empty.drawing.get(), 5, 30, 12, latin, {1, 1, 1});
  EXPECT_GT(width_of(empty.drawing.get(), latin), 0);
  EXPECT_EQ(cairo_status(empty.drawing.get()), CAIRO_STATUS_SUCCESS);
}

TEST_F(reports, unwritable_folder_is_named) {
  std::ofstream(folder / "file") << "x";
  require_writable_folder(folder / "new" / "deep");
  EXPECT_TRUE(fs::is_empty(folder / "new" / "deep"));
  for (const fs::path& bad : {folder / "file", folder / "file" / "below"})
    EXPECT_SAYS(require_writable_folder(bad), bad.string());
}

}  // namespace
