// SPDX-License-Identifier: Apache-2.0
// Masks voxel for voxel against scipy.ndimage and scikit-image.
#include "support/oracle.hpp"
#include "suture/mask/body_mask.hpp"
#include "suture/mask/bounding_box.hpp"

namespace {

using suture::connectivity;

struct oracle_mask {
  support::array<std::uint8_t> in;
  suture::grid grid;
  std::vector<std::uint8_t> out;

  explicit oracle_mask(const support::oracle_case& c)
      : in(c.input<std::uint8_t>("x")),
        grid{.extents = {in.shape[0], in.shape[1], in.shape[2]}},
        out(in.values.size()) {}
  suture::view<const std::uint8_t> from() const { return suture::contiguous(in.values.data(), grid); }
  suture::view<std::uint8_t> to() { return suture::contiguous(out.data(), grid); }
};

// The cases whose operation begins with `op`; there must be some.
std::vector<support::oracle_case> cases_of(const std::string& op) {
  std::vector<support::oracle_case> found;
  for (auto& c : support::oracle_cases("labels"))
    if (c.op.starts_with(op)) found.push_back(c);
  EXPECT_FALSE(found.empty()) << op;
  return found;
}

TEST(OracleMask, Label) {
  SUTURE_NEEDS_ORACLES("labels");
  for (const auto& c : cases_of("scipy.ndimage.label")) {
    if (!c.params.contains("connectivity")) continue;
    const int neighbors = c.params.at("connectivity");
    const auto touching = neighbors == 6    ? connectivity::faces
                          : neighbors == 18 ? connectivity::edges
                                            : connectivity::corners;
    oracle_mask m(c);
    std::vector<std::int32_t> labels(m.out.size());
    std::uint32_t count = 0;
    std::vector<std::uint32_t> sizes(1000);
    const std::span<std::uint32_t> room = sizes;
    suture::label_components(suture::cpu{1}, m.from(), suture::contiguous(labels.data(), m.grid), touching, {&count, 1},
                             {&room, 1});
    EXPECT_EQ(labels, c.output<std::int32_t>("y").values) << c.name;
    EXPECT_EQ(count, c.expected.at("n").get<std::uint32_t>()) << c.name;
    std::sort(sizes.rbegin(), sizes.rend());
    sizes.resize(count);
    EXPECT_EQ(sizes, c.expected.at("sizes_sorted").get<std::vector<std::uint32_t>>()) << c.name;
  }
}

TEST(OracleMask, LargestComponent) {
  SUTURE_NEEDS_ORACLES("labels");
  for (const auto& c : cases_of("scipy.ndimage.label (6-conn) largest")) {
    oracle_mask m(c);
    suture::largest_component_result result{};
    suture::keep_largest_component(suture::cpu{1}, m.from(), m.to(), connectivity::faces, {&result, 1});
    EXPECT_EQ(m.out, c.output<std::uint8_t>("y").values) << c.name;
  }
}

TEST(OracleMask, Morphology) {
  SUTURE_NEEDS_ORACLES("labels");
  for (const std::string op : {"erosion", "dilation", "opening", "closing"})
    for (const auto& c : cases_of("scipy.ndimage.binary_" + op)) {
      suture::structuring_element e{};
      if (c.params.at("structure").is_string()) {
        ASSERT_EQ(c.params.at("structure"), "skimage.morphology.ball(2)");
        e = {suture::element_shape::ball, {2, 2, 2}};
      } else if (c.params.at("structure") == 26) {
        e.shape = suture::element_shape::box;
      }
      oracle_mask m(c);
      const suture::cpu cpu{1};
      if (op == "erosion") suture::binary_erosion(cpu, m.from(), m.to(), e);
      if (op == "dilation") suture::binary_dilation(cpu, m.from(), m.to(), e);
      if (op == "opening") suture::binary_opening(cpu, m.from(), m.to(), e);
      if (op == "closing") suture::binary_closing(cpu, m.from(), m.to(), e);
      EXPECT_EQ(m.out, c.output<std::uint8_t>("y").values) << c.name;
    }
}

TEST(OracleMask, FillHoles) {
  SUTURE_NEEDS_ORACLES("labels");
  for (const auto& c : cases_of("scipy.ndimage.binary_fill_holes")) {
    oracle_mask m(c);
    suture::fill_holes(suture::cpu{1}, m.from(), m.to());
    EXPECT_EQ(m.out, c.output<std::uint8_t>("y").values) << c.name;
  }
}

TEST(OracleMask, BoundingBox) {
  SUTURE_NEEDS_ORACLES("labels");
  for (const auto& c : cases_of("scipy.ndimage.find_objects")) {
    oracle_mask m(c);
    suture::bounding_box_result box{};
    suture::bounding_box(suture::cpu{1}, m.from(), {&box, 1});
    for (int k = 0; k < 3; ++k) {
      const auto& expected = c.expected.at("bbox").at(static_cast<std::size_t>(k));
      EXPECT_EQ(box.first[k], expected.at(0).get<std::int32_t>()) << c.name;
      EXPECT_EQ(box.last[k] + 1, expected.at(1).get<std::int32_t>()) << c.name;
    }
  }
}

// Boxes of single labels: one above a threshold at a time.
TEST(OracleMask, BoxesOfLabels) {
  SUTURE_NEEDS_ORACLES("labels");
  for (const auto& c : cases_of("skimage.measure.regionprops")) {
    oracle_mask m(c);
    for (const auto& region : c.expected) {
      for (std::size_t i = 0; i < m.out.size(); ++i) m.out[i] = m.in.values[i] == region.at("label").get<int>();
      suture::bounding_box_result box{};
      suture::bounding_box(suture::cpu{1}, m.to(), {&box, 1});
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(box.first[k], region.at("bbox").at(k).get<std::int32_t>()) << region;
        EXPECT_EQ(box.last[k] + 1, region.at("bbox").at(k + 3).get<std::int32_t>()) << region;
      }
    }
  }
}

}  // namespace
