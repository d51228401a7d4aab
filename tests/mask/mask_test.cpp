// SPDX-License-Identifier: Apache-2.0
// Masks on the CPU against naive references, on random volumes of awkward sizes, and every bad input.
#include <gtest/gtest.h>

#include <random>

#include "ref/mask.hpp"
#include "support/aligned_memory.hpp"
#include "support/expect_says.hpp"
#include "support/sanitizers.hpp"
#include "suture/suture.hpp"

namespace {

using reference::size3;
using bytes = std::vector<std::uint8_t>;

suture::grid grid_of(const size3& n) { return {.extents = {n[0], n[1], n[2]}}; }

template <class T>
suture::view<T> view_of(std::vector<T>& v, const size3& n) {
  return suture::contiguous(v.data(), grid_of(n));
}

bytes random_mask(const size3& n, double density, unsigned seed) {
  std::mt19937 engine(seed);
  bytes mask(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  for (auto& v : mask) v = std::generate_canonical<double, 32>(engine) < density;
  return mask;
}

// Blobs: a random mask smoothed by the majority of its neighbors, so that runs are long and holes are closed.
bytes blobs(const size3& n, unsigned seed) {
  bytes mask = random_mask(n, .5, seed), result(mask.size());
  reference::each_voxel(n, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    int set = 0, all = 0;
    for (std::int64_t dz = -1; dz <= 1; ++dz)
      for (std::int64_t dy = -1; dy <= 1; ++dy)
        for (std::int64_t dx = -2; dx <= 2; ++dx)
          if (reference::inside(n, z + dz, y + dy, x + dx)) {
            ++all;
            set += mask[reference::at(n, z + dz, y + dy, x + dx)];
          }
    result[reference::at(n, z, y, x)] = 2 * set > all;
  });
  return result;
}

struct test_mask {
  std::string name;
  size3 size;
  bytes voxels;
};

std::vector<test_mask> test_masks() {
  std::vector<test_mask> all;
  for (const size3& n : {size3{1, 1, 1}, size3{1, 1, 15}, size3{1, 16, 17}, size3{3, 1, 127}, size3{5, 7, 1},
                         size3{1, 40, 130}, size3{4, 9, 64}, size3{6, 11, 65}, size3{7, 15, 16}, size3{2, 5, 200}}) {
    for (const double density : {.1, .3, .5, .7, .95})
      all.push_back({"random", n, random_mask(n, density, static_cast<unsigned>(n[2]))});
    all.push_back({"blobs", n, blobs(n, static_cast<unsigned>(n[2]))});
    all.push_back({"empty", n, bytes(all.back().voxels.size(), 0)});
    all.push_back({"full", n, bytes(all.back().voxels.size(), 1)});
  }
  bytes one(3 * 17 * 70, 0);
  one[reference::at({3, 17, 70}, 1, 16, 63)] = 200;  // any value but 0 is set
  all.push_back({"one voxel", {3, 17, 70}, one});
  // A spiral: one long thin component whose runs are united late.
  const size3 n{1, 41, 150};
  bytes spiral(41 * 150, 0);
  for (std::int64_t y = 0; y < 41; y += 2)
    for (std::int64_t x = 0; x < 150; ++x) spiral[reference::at(n, 0, y, x)] = 1;
  for (std::int64_t y = 1; y < 41; y += 2) spiral[reference::at(n, 0, y, y % 4 == 1 ? 149 : 0)] = 1;
  all.push_back({"spiral", n, spiral});
  return all;
}

bytes binary(const bytes& mask) {
  bytes result(mask.size());
  for (std::size_t i = 0; i < mask.size(); ++i) result[i] = mask[i] != 0;
  return result;
}

std::string describe(const test_mask& m) {
  return m.name + " " + std::to_string(m.size[0]) + "x" + std::to_string(m.size[1]) + "x" + std::to_string(m.size[2]);
}

constexpr suture::connectivity all_connectivities[] = {suture::connectivity::faces, suture::connectivity::edges,
                                                       suture::connectivity::corners};

TEST(Components, AreThoseOfFloodFill) {
  for (test_mask& m : test_masks())
    for (const auto touching : all_connectivities)
      for (const int threads : {1, 2}) {
        if (threads == 2 && m.name != "blobs" && m.name != "spiral") continue;
        SCOPED_TRACE(describe(m));
        const auto expected = reference::components(m.voxels, m.size, static_cast<int>(touching));
        auto expected_sizes = reference::sizes(expected);
        std::vector<std::int32_t> labels(m.voxels.size(), -1);
        std::uint32_t count = 99;
        std::vector<std::uint32_t> sizes(m.voxels.size() + 1, 99);
        const std::span<std::uint32_t> room = sizes;
        suture::label_components(suture::cpu{threads}, view_of(m.voxels, m.size), view_of(labels, m.size), touching,
                                 {&count, 1}, {&room, 1});
        ASSERT_EQ(labels, expected);
        ASSERT_EQ(count, expected_sizes.size());
        expected_sizes.resize(sizes.size(), 0);
        ASSERT_EQ(sizes, expected_sizes);
      }
}

// Runs are flattened side by side: one that wrote the parent of another could take back what that one had found.
TEST(Components, ARunIsFlattenedWithoutTouchingOthers) {
  std::uint64_t words[5] = {1, 1, 1, 1, 1};      // a column of five rows, a run in each
  std::uint32_t parent[6] = {0, 1, 1, 2, 3, 4};  // by slot; slot 0 is the outside
  const suture::detail::masks::bit_volume bits{words, {1, 5, 1}, 1};
  const suture::detail::masks::flatten_runs flatten{{bits, 0, parent}};
  flatten(0, 4, 0);
  EXPECT_EQ(std::vector(parent, parent + 6), (std::vector<std::uint32_t>{0, 1, 1, 2, 3, 1}));
  for (std::int32_t row = 0; row < 4; ++row) flatten(0, row, 0);
  EXPECT_EQ(std::vector(parent, parent + 6), (std::vector<std::uint32_t>{0, 1, 1, 1, 1, 1}));
}

TEST(Components, SizesBeyondTheRoomAreLeftOut) {
  bytes mask{1, 0, 1, 1, 0, 1, 1, 1};
  std::vector<std::int32_t> labels(8);
  std::uint32_t count = 0;
  std::vector<std::uint32_t> sizes{7, 7, 7};
  const auto room = std::span<std::uint32_t>(sizes).first(2);
  suture::label_components(suture::cpu{1}, view_of(mask, {1, 1, 8}), view_of(labels, {1, 1, 8}),
                           suture::connectivity::faces, {&count, 1}, {&room, 1});
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{1, 2, 7}));
}

TEST(Components, LargestAndNotSmall) {
  if (support::thread_sanitizer) GTEST_SKIP() << "one thread cannot race";
  for (test_mask& m : test_masks())
    for (const auto touching : all_connectivities) {
      SCOPED_TRACE(describe(m));
      bytes out(m.voxels.size(), 9);
      suture::largest_component_result result{};
      suture::keep_largest_component(suture::cpu{1}, view_of(m.voxels, m.size), view_of(out, m.size), touching,
                                     {&result, 1});
      const bytes expected = reference::largest(m.voxels, m.size, static_cast<int>(touching));
      ASSERT_EQ(out, expected);
      const auto voxels = static_cast<std::uint32_t>(std::count(expected.begin(), expected.end(), 1));
      ASSERT_EQ(result.voxels, voxels);
      ASSERT_EQ(result.status, voxels > 0 ? suture::mask_status::ok : suture::mask_status::empty);
      for (const std::uint32_t least : {0u, 1u, 2u, 5u, 1000u}) {
        suture::remove_small_components(suture::cpu{1}, view_of(m.voxels, m.size), view_of(out, m.size), touching,
                                        least);
        ASSERT_EQ(out, reference::at_least(m.voxels, m.size, static_cast<int>(touching), least));
      }
    }
}

TEST(Components, OfEquallyLargeOnesTheFirst) {
  bytes mask{0, 1, 1, 0, 1, 1, 0, 1, 1}, out(9);
  suture::largest_component_result result{};
  suture::keep_largest_component(suture::cpu{1}, view_of(mask, {1, 1, 9}), view_of(out, {1, 1, 9}),
                                 suture::connectivity::faces, {&result, 1});
  EXPECT_EQ(out, (bytes{0, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(FillHoles, AreWhatTheOutsideDoesNotReach) {
  for (test_mask& m : test_masks())
    for (const auto enclosed : {suture::hole_filling::volume, suture::hole_filling::slices}) {
      SCOPED_TRACE(describe(m));
      bytes out(m.voxels.size(), 9);
      suture::fill_holes(suture::cpu{1}, view_of(m.voxels, m.size), view_of(out, m.size), enclosed);
      ASSERT_EQ(out, reference::holes_filled(m.voxels, m.size, enclosed == suture::hole_filling::slices));
    }
}

TEST(Morphology, LooksAtEveryVoxelOfTheElement) {
  if (support::thread_sanitizer) GTEST_SKIP() << "one thread cannot race";
  using suture::element_shape;
  const std::vector<suture::structuring_element> elements{
      {},
      {element_shape::box, {1, 1, 1}},
      {element_shape::box, {0, 2, 5}},
      {element_shape::box, {2, 0, 1}},
      {element_shape::box, {0, 0, 63}},
      {element_shape::box, {0, 0, 0}},
      {element_shape::cross, {3, 3, 3}},
      {element_shape::cross, {0, 2, 2}},
      {element_shape::cross, {2, 2, 0}},
      {element_shape::ball, {2, 2, 2}},
      {element_shape::ball, {0, 5, 5}},
      {element_shape::ball, {3, 3, 0}},
  };
  std::vector<test_mask> masks = test_masks();
  std::erase_if(masks, [](const test_mask& m) {
    return m.voxels.size() > 1000 && (m.name == "random" || m.name == "empty" || m.name == "full");
  });
  for (test_mask& m : masks)
    for (const auto& e : elements)
      for (const bool border : {false, true}) {
        SCOPED_TRACE(describe(m));
        const auto shape = static_cast<int>(e.shape);
        const size3 r{e.radius[0], e.radius[1], e.radius[2]};
        const bytes mask = binary(m.voxels);
        bytes eroded(mask.size(), 9), dilated = eroded, opened = eroded, closed = eroded;
        const auto in = view_of(m.voxels, m.size);
        suture::binary_erosion(suture::cpu{1}, in, view_of(eroded, m.size), e, border);
        suture::binary_dilation(suture::cpu{1}, in, view_of(dilated, m.size), e, border);
        suture::binary_opening(suture::cpu{1}, in, view_of(opened, m.size), e, border);
        suture::binary_closing(suture::cpu{1}, in, view_of(closed, m.size), e, border);
        if (support::any_sanitizer && mask.size() > 1000) continue;  // the reference would take a minute
        ASSERT_EQ(eroded, reference::eroded(mask, m.size, shape, r, border));
        ASSERT_EQ(dilated, reference::dilated(mask, m.size, shape, r, border));
        ASSERT_EQ(opened, reference::dilated(eroded, m.size, shape, r, border));
        ASSERT_EQ(closed, reference::eroded(dilated, m.size, shape, r, border));
      }
}

TEST(BoundingBox, HoldsWhatIsAboveTheThreshold) {
  for (const test_mask& m : test_masks()) {
    SCOPED_TRACE(describe(m));
    std::vector<float> image(m.voxels.size());
    suture::bounding_box_result expected{suture::mask_status::empty, {0, 0, 0}, {-1, -1, -1}};
    reference::each_voxel(m.size, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
      const std::size_t i = reference::at(m.size, z, y, x);
      image[i] = m.voxels[i] != 0 ? 5.5f : i % 3 == 0 ? std::nanf("") : 5.0f;
      if (m.voxels[i] == 0) return;
      const std::int64_t p[3] = {z, y, x};
      for (int k = 0; k < 3; ++k) {
        const auto v = static_cast<std::int32_t>(p[k]);
        const bool first = expected.status == suture::mask_status::empty;
        expected.first[k] = first ? v : std::min(expected.first[k], v);
        expected.last[k] = first ? v : std::max(expected.last[k], v);
      }
      expected.status = suture::mask_status::ok;
    });
    suture::bounding_box_result result{};
    suture::bounding_box(suture::cpu{1}, view_of(image, m.size), {&result, 1}, 5);
    ASSERT_EQ(result.status, expected.status);
    for (int k = 0; k < 3; ++k) {
      ASSERT_EQ(result.first[k], expected.first[k]);
      ASSERT_EQ(result.last[k], expected.last[k]);
    }
  }
}

TEST(BoundingBox, OfAnyChannel) {
  std::vector<std::int16_t> image(2 * 4 * 5 * 6, -3);
  const size3 n{4, 5, 6};
  image[reference::at(n, 1, 2, 3)] = 1;
  image[120 + reference::at(n, 2, 4, 0)] = 7;
  suture::bounding_box_result result{};
  suture::bounding_box(suture::cpu{1}, suture::contiguous(image.data(), grid_of(n), 2), {&result, 1});
  const std::int32_t first[3] = {1, 2, 0}, last[3] = {2, 4, 3};
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(result.first[k], first[k]);
    EXPECT_EQ(result.last[k], last[k]);
  }
}

template <class T>
void expect_box_of_what_float_rounds() {
  const size3 n{1, 1, 3};
  const std::vector<T> image = {16777215, 16777216, 16777217};  // the last one rounds to 2^24
  suture::bounding_box_result result{};
  suture::bounding_box(suture::cpu{1}, suture::contiguous(image.data(), grid_of(n)), {&result, 1}, 0x1p24f);
  EXPECT_EQ(result.status, suture::mask_status::ok);
  EXPECT_EQ(result.first[2], 2);
  EXPECT_EQ(result.last[2], 2);
}
TEST(BoundingBox, ComparesIntegersThatFloatRounds) {
  expect_box_of_what_float_rounds<std::int32_t>();
  expect_box_of_what_float_rounds<std::int64_t>();
}

// Values of MONAI's CropForeground by its formulas, worked by hand.
TEST(CropForeground, PlacesTheBox) {
  const suture::grid g{.extents = {20, 30, 40}, .spacing = {3, 2, 1}, .origin = {100, 200, 300}};
  const suture::bounding_box_result found{suture::mask_status::ok, {1, 10, 35}, {4, 19, 38}};
  const auto expect = [&](const suture::crop_foreground& how, const suture::extent3& start,
                          const suture::extent3& size) {
    const suture::box_crop box = how.placed(found, g);
    EXPECT_EQ(box.start, start);
    EXPECT_EQ(box.size, size);
  };
  expect({}, {1, 10, 35}, {4, 10, 4});
  expect({.margin = {2, 2, 2}}, {0, 8, 33}, {7, 14, 7});
  expect({.margin = {2, 2, 2}, .allow_smaller = false}, {-1, 8, 33}, {8, 14, 8});
  expect({.divisible_by = {8, 8, 8}}, {-1, 7, 33}, {8, 16, 8});
  expect({.divisible_by = {0, 1, 3}}, {1, 10, 34}, {4, 10, 6});
  const suture::box_crop whole =
      suture::crop_foreground{.margin = {2, 2, 2}}.placed({suture::mask_status::empty, {0, 0, 0}, {-1, -1, -1}}, g);
  EXPECT_EQ(whole.start, (suture::extent3{0, 0, 0}));
  EXPECT_EQ(whole.size, g.extents);
  const suture::geometry_step step = suture::box_crop{{-1, 8, 33}, {8, 14, 8}}.step(g, {"test"});
  EXPECT_EQ(step.output.extents, (suture::extent3{8, 14, 8}));
  EXPECT_EQ(step.output.origin, (suture::point3{97, 216, 333}));
  EXPECT_EQ(step.pull.offset, (suture::point3{-1, 8, 33}));
}

TEST(BodyMask, IsItsSteps) {
  const size3 n{6, 40, 70};
  std::mt19937 engine(3);
  std::vector<std::int16_t> image(6 * 40 * 70, -1000);
  reference::each_voxel(n, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    const bool body = (y - 18) * (y - 18) * 4 + (x - 30) * (x - 30) < 700, table = y == 38;
    const bool lung = (y - 18) * (y - 18) + (x - 24) * (x - 24) < 30;
    auto& v = image[reference::at(n, z, y, x)];
    if (body || table || (x == 5 && y > 18)) v = 40;
    if (lung) v = -800;
    v = static_cast<std::int16_t>(v + static_cast<int>(engine() % 1200) - 600);
  });
  for (const std::int64_t opening : {0, 1, 2}) {
    const bytes expected = reference::body(image, n, -300, opening);
    bytes out(image.size(), 9);
    suture::largest_component_result result{};
    suture::body_mask(suture::cpu{2}, view_of(image, n), view_of(out, n), {&result, 1}, {.opening_radius = opening});
    ASSERT_EQ(out, expected) << opening;
    EXPECT_EQ(result.status, suture::mask_status::ok);
  }
  bytes out(image.size(), 9);
  suture::largest_component_result result{};
  suture::body_mask(suture::cpu{1}, view_of(image, n), view_of(out, n), {&result, 1}, {.threshold = 5000});
  EXPECT_EQ(result.status, suture::mask_status::empty);
  EXPECT_EQ(out, bytes(image.size(), 0));
}

// A batch of different sizes, one given backwards with gaps between its voxels, through memory the caller owns.
TEST(Masks, BatchesAndStrides) {
  const size3 small{3, 20, 33}, large{5, 17, 90};
  bytes a = blobs(small, 1), b = blobs(large, 2);
  bytes b_spread(b.size() * 2, 1);
  for (std::size_t i = 0; i < b.size(); ++i) b_spread[2 * (b.size() - 1 - i)] = b[i];
  suture::view<std::uint8_t> reversed{&b_spread[2 * (b.size() - 1)], grid_of(large), {-17 * 90 * 2, -90 * 2, -2}};
  const std::vector<suture::view<std::uint8_t>> in{view_of(a, small), reversed};
  bytes out_a(a.size(), 9), out_b(b_spread.size(), 9);
  suture::view<std::uint8_t> out_reversed{&out_b[2 * (b.size() - 1)], grid_of(large), {-17 * 90 * 2, -90 * 2, -2}};
  const std::vector<suture::view<std::uint8_t>> out{view_of(out_a, small), out_reversed};
  std::vector<suture::largest_component_result> results(2);
  const support::aligned_memory workspace(suture::workspace_bytes(suture::mask_work::keep_largest_component{}, in));
  suture::keep_largest_component(suture::cpu{1, workspace.span()}, in, out, suture::connectivity::edges, results);
  EXPECT_EQ(out_a, reference::largest(a, small, 2));
  const bytes expected = reference::largest(b, large, 2);
  for (std::size_t i = 0; i < b.size(); ++i) {
    ASSERT_EQ(out_b[2 * (b.size() - 1 - i)], expected[i]);
    ASSERT_EQ(out_b[2 * i + 1], 9) << "between the voxels";
  }
  // Memory for one sample at a time is enough, less is not.
  const std::size_t least = suture::workspace_bytes(suture::mask_work::keep_largest_component{}, in[1]);
  EXPECT_LT(least, workspace.span().size());
  suture::keep_largest_component(suture::cpu{1, workspace.span().first(least)}, in, out, suture::connectivity::edges,
                                 results);
  EXPECT_EQ(out_a, reference::largest(a, small, 2));
  EXPECT_THROW(suture::keep_largest_component(suture::cpu{1, workspace.span().first(least - 1)}, in, out,
                                              suture::connectivity::edges, results),
               suture::error);
  // In place.
  suture::fill_holes(suture::cpu{1}, in[0], in[0], suture::hole_filling::slices);
  EXPECT_EQ(a, reference::holes_filled(blobs(small, 1), small, true));
}

// Every order of axes in memory, the output's the reverse of the input's, through words that are not full either way.
TEST(Masks, AnyOrderOfAxes) {
  const size3 n{67, 70, 130};
  const bytes mask = random_mask(n, .5, 3);
  int axes[3] = {0, 1, 2};
  do {
    bytes from(mask.size()), to(mask.size(), 9);
    suture::view<std::uint8_t> in = view_of(from, n), out = view_of(to, n);
    std::int64_t step = 1, out_step = 1;
    for (int j = 2; j >= 0; --j) {
      in.stride[axes[j]] = step;
      step *= in.grid.extents[axes[j]];
      out.stride[axes[2 - j]] = out_step;
      out_step *= in.grid.extents[axes[2 - j]];
    }
    const auto each = [&](const auto& use) {
      std::size_t i = 0;
      for (std::int64_t z = 0; z < in.grid.extents[0]; ++z)
        for (std::int64_t y = 0; y < in.grid.extents[1]; ++y)
          for (std::int64_t x = 0; x < in.grid.extents[2]; ++x, ++i)
            use(i, in.data[z * in.stride[0] + y * in.stride[1] + x * in.stride[2]],
                out.data[z * out.stride[0] + y * out.stride[1] + x * out.stride[2]]);
    };
    each([&](std::size_t i, std::uint8_t& value, const std::uint8_t&) { value = mask[i]; });
    suture::binary_erosion(suture::cpu{1}, in, out, {suture::element_shape::box, {0, 0, 0}}, false);
    each([&](std::size_t i, const std::uint8_t&, const std::uint8_t& value) {
      ASSERT_EQ(value, mask[i] != 0) << axes[0] << axes[1] << axes[2] << " voxel " << i;
    });
  } while (std::next_permutation(axes, axes + 3));
}

// From a CT to its body mask, the box of the body, and the crop to it.
TEST(Masks, CropToTheBody) {
  const size3 n{6, 30, 40};
  std::vector<std::int16_t> ct(6 * 30 * 40, -1000);
  reference::each_voxel(n, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    if (z > 1 && y > 9 && y < 22 && x > 14 && x < 29)
      ct[reference::at(n, z, y, x)] = static_cast<std::int16_t>(x * 10 - z);
  });
  bytes mask(ct.size());
  const std::vector<suture::view<const std::int16_t>> cts{
      suture::contiguous<const std::int16_t>(ct.data(), grid_of(n))};
  const std::vector<suture::view<std::uint8_t>> masks{view_of(mask, n)};

  // [masks]
  std::vector<suture::largest_component_result> results(cts.size());
  suture::body_mask(suture::cpu{}, cts, masks, results, {.opening_radius = 1});

  std::vector<suture::bounding_box_result> boxes(cts.size());
  suture::bounding_box(suture::cpu{}, masks, boxes);
  const suture::box_crop crop = suture::crop_foreground{.margin = {2, 3, 3}}.placed(boxes[0], cts[0].grid);
  // [/masks]

  EXPECT_EQ(results[0].status, suture::mask_status::ok);
  EXPECT_EQ(crop.start, (suture::extent3{0, 7, 12}));
  EXPECT_EQ(crop.size, (suture::extent3{6, 18, 20}));
  // As an operation of a pipeline.
  const auto plan = suture::plan(crop | suture::cast<std::int16_t>{}, cts, {});
  std::vector<std::int16_t> out(6 * 18 * 20);
  suture::run(suture::cpu{}, plan, suture::image(cts[0], suture::contiguous(out.data(), plan.output_grid(0))));
  for (std::int64_t z = 0; z < 6; ++z)
    for (std::int64_t y = 0; y < 18; ++y)
      for (std::int64_t x = 0; x < 20; ++x)
        ASSERT_EQ(out[reference::at({6, 18, 20}, z, y, x)], ct[reference::at(n, z, y + 7, x + 12)]);
}

template <class F>
void expect_error(const F& f, const std::string& words) {
  const std::string said = message(f);
  EXPECT_NE(said.find(words), std::string::npos) << said << "; expected: " << words;
}

TEST(Masks, BadInput) {
  const size3 n{2, 3, 4};
  bytes mask(24, 1), out(24), twice(48);
  std::vector<std::int32_t> labels(24);
  std::uint32_t count = 0;
  suture::largest_component_result result{};
  suture::bounding_box_result box{};
  const suture::cpu cpu{1};
  const auto in = view_of(mask, n);
  const auto to = view_of(out, n);
  using suture::connectivity;
  using suture::element_shape;
  expect_error(
      [&] {
        suture::binary_erosion(cpu, in, to, {element_shape::box, {1, -1, 1}});
      },
      "binary_erosion: radius (1, -1, 1) must not be negative");
  expect_error([&] { suture::binary_dilation(cpu, in, to, {element_shape::ball, {64, 64, 64}}); }, "exceeds 63");
  expect_error([&] { suture::binary_opening(cpu, in, to, {element_shape::ball, {1, 2, 2}}); }, "must be equal");
  expect_error([&] { suture::body_mask(cpu, in, to, {&result, 1}, {.opening_radius = -1}); }, "must not be negative");
  expect_error([&] { suture::body_mask(cpu, in, to, {&result, 1}, {.threshold = std::nanf("")}); }, "finite");
  expect_error([&] { suture::body_mask(cpu, in, to, {}); }, "0 results for 1 samples");
  expect_error([&] { suture::remove_small_components(cpu, in, to, connectivity::faces, -1); }, "least size -1");
  expect_error(
      [&] {
        suture::fill_holes(cpu, in, view_of(out, {2, 4, 3}));
      },
      "fill_holes: sample 0: output extents (2, 4, 3) differ from the input's (2, 3, 4)");
  expect_error(
      [&] {
        suture::fill_holes(cpu, suture::view<std::uint8_t>{nullptr, in.grid, in.stride}, to);
      },
      "null pointer");
  expect_error([&] { suture::fill_holes(cpu, suture::contiguous(twice.data(), grid_of(n), 2), to); }, "one expected");
  expect_error([&] { suture::fill_holes(cpu, view_of(twice, n), suture::contiguous(twice.data() + 5, grid_of(n))); },
               "overlaps");
  expect_error(
      [&] {
        suture::label_components(cpu,
                                 suture::contiguous(reinterpret_cast<const std::uint8_t*>(labels.data()), grid_of(n)),
                                 view_of(labels, n), connectivity::faces, {&count, 1});
      },
      "overlaps");
  expect_error([&] { suture::bounding_box(cpu, in, {&box, 1}, std::nanf("")); }, "threshold");
  expect_error([&] { suture::fill_holes(cpu, std::vector<suture::view<std::uint8_t>>{}, to); }, "no samples");
  expect_error(
      [&] {
        const suture::grid huge{.extents = {2048, 2048, 2048}};
        suture::fill_holes(cpu, suture::contiguous(mask.data(), huge), suture::contiguous(out.data(), huge));
      },
      "2^32");
  const suture::grid g = grid_of(n);
  expect_error([&] { suture::crop_foreground{.margin = {-1, 0, 0}}.placed(box, g); }, "margin");
  expect_error(
      [&] {
        suture::crop_foreground{}.placed({suture::mask_status::ok, {0, 0, 0}, {1, 2, 4}}, g);
      },
      "leaves the extents");
  expect_error([&] { suture::box_crop{{0, 0, 0}, {1, 0, 1}}.step(g, {"box_crop"}); }, "must be positive");
}

}  // namespace
