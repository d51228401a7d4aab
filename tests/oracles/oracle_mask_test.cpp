// SPDX-License-Identifier: Apache-2.0
// Masks voxel for voxel against scipy.ndimage and scikit-image.
#include "support/oracle.hpp"
#include "suture/mask/body_mask.hpp"
#include "suture/mask/bounding_box.hpp"
#include "suture/mask/gray_morphology.hpp"

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

SUTURE_ORACLE_TEST(OracleMask, Label, support::calls("scipy.ndimage.label")) {
  const int neighbors = c.params.at("connectivity");
  const auto touching = neighbors == 6    ? connectivity::faces
                        : neighbors == 18 ? connectivity::edges
                                          : connectivity::corners;
  oracle_mask m(c);
  std::vector<std::int32_t> labels(m.out.size());
  std::uint32_t count = 0;
  std::vector<std::uint32_t> sizes(m.out.size());
  const std::span<std::uint32_t> room = sizes;
  suture::label_components(suture::cpu{1}, m.from(), suture::contiguous(labels.data(), m.grid), touching, {&count, 1},
                           {&room, 1});
  EXPECT_EQ(labels, c.output<std::int32_t>("y").values);
  EXPECT_EQ(count, c.expected.at("n").get<std::uint32_t>());
  std::sort(sizes.rbegin(), sizes.rend());
  sizes.resize(count);
  EXPECT_EQ(sizes, c.expected.at("sizes_sorted").get<std::vector<std::uint32_t>>());
}

SUTURE_ORACLE_TEST(OracleMask, LargestComponent, support::calls("scipy.ndimage.label (6-conn) largest")) {
  oracle_mask m(c);
  suture::largest_component_result result{};
  suture::keep_largest_component(suture::cpu{1}, m.from(), m.to(), connectivity::faces, {&result, 1});
  EXPECT_EQ(m.out, c.output<std::uint8_t>("y").values);
}

SUTURE_ORACLE_TEST(OracleMask, Morphology,
                   support::calls_one_of({"scipy.ndimage.binary_erosion", "scipy.ndimage.binary_dilation",
                                          "scipy.ndimage.binary_opening", "scipy.ndimage.binary_closing"},
                                         support::is_plain_morphology)) {
  suture::structuring_element e{};
  const auto& structure = c.params.at("structure");
  if (structure.is_string()) {  // skimage.morphology.ball(2)
    const std::string ball = structure;
    const std::int64_t radius = std::stoll(ball.substr(ball.find('(') + 1));
    e = {suture::element_shape::ball, {radius, radius, radius}};
  } else if (structure == 26) {
    e.shape = suture::element_shape::box;
  }
  oracle_mask m(c);
  const suture::cpu cpu{1};
  if (c.op.ends_with("erosion")) suture::binary_erosion(cpu, m.from(), m.to(), e);
  if (c.op.ends_with("dilation")) suture::binary_dilation(cpu, m.from(), m.to(), e);
  if (c.op.ends_with("opening")) suture::binary_opening(cpu, m.from(), m.to(), e);
  if (c.op.ends_with("closing")) suture::binary_closing(cpu, m.from(), m.to(), e);
  EXPECT_EQ(m.out, c.output<std::uint8_t>("y").values);
}

SUTURE_ORACLE_TEST(OracleMask, FillHoles, support::calls("scipy.ndimage.binary_fill_holes")) {
  oracle_mask m(c);
  suture::fill_holes(suture::cpu{1}, m.from(), m.to());
  EXPECT_EQ(m.out, c.output<std::uint8_t>("y").values);
}

SUTURE_ORACLE_TEST(OracleMask, BoundingBox, support::calls("scipy.ndimage.find_objects")) {
  oracle_mask m(c);
  suture::bounding_box_result box{};
  suture::bounding_box(suture::cpu{1}, m.from(), {&box, 1});
  for (int k = 0; k < 3; ++k) {
    const auto& expected = c.expected.at("bbox").at(static_cast<std::size_t>(k));
    EXPECT_EQ(box.first[k], expected.at(0).get<std::int32_t>());
    EXPECT_EQ(box.last[k] + 1, expected.at(1).get<std::int32_t>());
  }
}

// Boxes of single labels: one above a threshold at a time.
SUTURE_ORACLE_TEST(OracleMask, BoxesOfLabels, support::calls("skimage.measure.regionprops")) {
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

SUTURE_ORACLE_TEST(OracleMask, GrayMorphology,
                   support::calls_one_of({"scipy.ndimage.minimum_filter", "scipy.ndimage.maximum_filter"},
                                         [](const support::oracle_case& c) {
                                           return c.params.at("size").is_number() &&
                                                  c.params.at("size").get<int>() % 2 == 1 && c.has("mode", "reflect");
                                         })) {
  const auto in = c.input<float>("x");
  const suture::grid g{.extents = {in.shape[0], in.shape[1], in.shape[2]}};
  std::vector<float> out(in.values.size());
  const auto from = suture::contiguous(in.values.data(), g);
  const auto to = suture::contiguous(out.data(), g);
  const std::int64_t radius = c.params.at("size").get<std::int64_t>() / 2;
  const suture::structuring_element cube{suture::element_shape::box, {radius, radius, radius}};
  if (c.op.ends_with("minimum_filter"))
    suture::gray_erosion(suture::cpu{1}, from, to, cube);
  else
    suture::gray_dilation(suture::cpu{1}, from, to, cube);
  EXPECT_EQ(out, c.output<float>("y").values);
}

}  // namespace
