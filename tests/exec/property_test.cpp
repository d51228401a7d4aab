// SPDX-License-Identifier: Apache-2.0
// What must hold whatever the numbers are: copies are exact, mirrors undo themselves, label sets never gain a value,
// content lands where the map says, and a sample's bits do not depend on its batch or on who asks for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "ref/elastic.hpp"
#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "suture/ops/geometry/flip.hpp"
#include "suture/ops/geometry/rot90.hpp"
#include "suture/ops/value/cast.hpp"
#include "suture/ops/value/gamma.hpp"
#include "suture/ops/value/gaussian_noise.hpp"
#include "suture/ops/value/window.hpp"

namespace {

using support::expect_close;
using support::image_result;
using support::label_result;

class generator {
public:
  explicit generator(std::uint64_t seed) : state_(seed * 2862933555777941757ULL + 3037000493ULL) {}
  std::uint32_t bits() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state_ >> 32U);
  }
  double unit() { return bits() * 0x1p-32; }

private:
  std::uint64_t state_;
};

// Any value of the type that float holds exactly. Floating-point ones stay within a quarter of what float can hold,
// so that the difference of two voxels is finite, and have no negative zero.
template <class T>
T any_value(generator& random) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(static_cast<std::int32_t>(random.bits())) * 0x1p-20F;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<std::int32_t>(random.bits()) >> 7;  // 25 bits with sign
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random.bits());
  } else {
    for (;;) {
      const auto bits = static_cast<std::uint16_t>(random.bits());
      const float value = suture::storage<T>::load(T{bits});
      if (std::abs(value) <= 0x1p126F && bits != 0x8000) return T{bits};
    }
  }
}

template <class T>
std::vector<T> any_image(const suture::extent3& n, std::uint64_t seed) {
  generator random(seed);
  std::vector<T> v(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  for (T& value : v) value = any_value<T>(random);
  return v;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Every edge size stands along every axis once.
const suture::extent3 edge_sizes[]{{1, 1, 1},   {1, 15, 17},  {17, 1, 16},   {16, 17, 1},  {15, 16, 15},
                                   {127, 3, 2}, {2, 127, 15}, {16, 15, 127}, {17, 17, 17}, {3, 2, 1}};

std::string text(const suture::extent3& n) {
  return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

template <class T>
class Storage : public testing::Test {};
using storage_types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, float,
                                     suture::half, suture::bfloat16>;
TYPED_TEST_SUITE(Storage, storage_types);

TYPED_TEST(Storage, IdentityIsAnExactCopy) {
  for (const suture::extent3& n : edge_sizes) {
    SCOPED_TRACE(text(n));
    const suture::grid g{.extents = n};
    const auto x = any_image<TypeParam>(n, 1);
    EXPECT_TRUE(same_bits(image_result<TypeParam>(suture::affine_matrix{} | suture::cast<TypeParam>{}, x, g), x));
    EXPECT_TRUE(
        same_bits(image_result<TypeParam>(
                      suture::affine_matrix{} | suture::sampling<suture::nearest>{} | suture::cast<TypeParam>{}, x, g),
                  x));
    EXPECT_TRUE(same_bits(image_result<TypeParam>(suture::cast<TypeParam>{}, x, g), x));
    if constexpr (std::is_integral_v<TypeParam>) {
      EXPECT_EQ(label_result(suture::affine_matrix{} | suture::cast<TypeParam>{}, x, g), x);
    }
  }
}

TYPED_TEST(Storage, FlipReversesAndTwiceIsACopy) {
  for (const suture::extent3& n : edge_sizes)
    for (const suture::vec3<bool> axes :
         {suture::vec3<bool>{true, false, false}, {false, true, false}, {false, false, true}, {true, true, true}}) {
      SCOPED_TRACE(text(n));
      const suture::grid g{.extents = n};
      const auto x = any_image<TypeParam>(n, 2);
      const auto mirrored = suture::flip{axes} | suture::cast<TypeParam>{};
      const auto y = image_result<TypeParam>(mirrored, x, g);
      std::vector<TypeParam> expected;
      for (std::int64_t z = 0; z < n[0]; ++z)
        for (std::int64_t yy = 0; yy < n[1]; ++yy)
          for (std::int64_t xx = 0; xx < n[2]; ++xx)
            expected.push_back(x[static_cast<std::size_t>(
                ((axes[0] ? n[0] - 1 - z : z) * n[1] + (axes[1] ? n[1] - 1 - yy : yy)) * n[2] +
                (axes[2] ? n[2] - 1 - xx : xx))]);
      EXPECT_TRUE(same_bits(y, expected));
      EXPECT_TRUE(same_bits(image_result<TypeParam>(mirrored, y, g), x));
    }
}

// Exact at voxel centers: the cubic kernels interpolate, and every border reads nothing outside.
TEST(Copies, AreExactUnderEveryInterpolation) {
  for (const suture::extent3& n : edge_sizes) {
    SCOPED_TRACE(text(n));
    const suture::grid g{.extents = n};
    const auto x = any_image<float>(n, 3);
    const suture::affine_matrix same{};
    EXPECT_EQ(image_result<float>(same | suture::sampling<suture::nearest, suture::edge>{}, x, g), x);
    EXPECT_EQ(image_result<float>(same | suture::sampling<suture::linear, suture::mirror>{}, x, g), x);
    EXPECT_EQ(image_result<float>(same | suture::sampling<suture::catmull_rom, suture::reflect>{}, x, g), x);
    EXPECT_EQ(image_result<float>(same | suture::sampling<suture::torch_cubic, suture::constant>{}, x, g), x);
    // A spline returns its samples up to the rounding of the filter.
    expect_close(image_result<float>(same | suture::sampling<suture::cubic_bspline, suture::wrap>{}, x, g), x,
                 3e-5 * 4096);
  }
}

TEST(Copies, SurviveResamplingThereAndBack) {
  for (const suture::extent3& n : edge_sizes) {
    SCOPED_TRACE(text(n));
    const suture::grid g{.extents = n};
    const auto x = any_image<float>(n, 4);
    // With the corners aligned, every second voxel of twice the density falls on a voxel.
    const suture::extent3 dense{2 * n[0] - 1, 2 * n[1] - 1, 2 * n[2] - 1};
    const auto between = suture::coordinate_map::align_corners;
    const auto up = image_result<float>(suture::resize{dense, between}, x, g);
    EXPECT_EQ(image_result<float>(suture::resize{n, between}, up, suture::grid{.extents = dense}), x);
    // An odd multiple of the density puts a voxel at the center of every voxel.
    const suture::extent3 triple{3 * n[0], 3 * n[1], 3 * n[2]};
    const auto there = suture::resize{triple} | suture::sampling<suture::nearest, suture::edge>{};
    const auto back = suture::resize{n} | suture::sampling<suture::nearest, suture::edge>{};
    EXPECT_EQ(image_result<float>(back, image_result<float>(there, x, g), suture::grid{.extents = triple}), x);
  }
}

TEST(Copies, SurviveFourQuarterTurns) {
  const suture::extent3 n{3, 15, 17};
  const auto x = any_image<std::int16_t>(n, 5);
  const suture::rot90 turn{.axes = {1, 2}};
  const suture::grid g{.extents = n};
  const suture::grid turned{.extents = {3, 17, 15}};
  const auto ops = turn | suture::cast<std::int16_t>{};
  const auto once = image_result<std::int16_t>(ops, x, g);
  EXPECT_FALSE(same_bits(once, x));
  const auto twice = image_result<std::int16_t>(ops, once, turned);
  const auto thrice = image_result<std::int16_t>(ops, twice, g);
  EXPECT_TRUE(same_bits(image_result<std::int16_t>(ops, thrice, turned), x));
  EXPECT_TRUE(same_bits(image_result<std::int16_t>(turn | turn | turn | turn | suture::cast<std::int16_t>{}, x, g), x));
}

TEST(Affine, ThenItsInverseIsTheIdentity) {
  const suture::matrix3 a{{{0.9, -0.3, 0.2}, {0.25, 1.1, -0.15}, {-0.1, 0.2, 0.8}}};
  const suture::point3 t{3.25, -1.5, 0.75};
  const suture::matrix3 b = suture::inverse(a);
  const suture::point3 back = b * t;
  for (const suture::extent3& n : edge_sizes) {
    SCOPED_TRACE(text(n));
    const auto x = any_image<float>(n, 6);
    // One interpolation, however many maps: inside, nothing is lost but the rounding of the map.
    const auto y =
        image_result<float>(suture::affine_matrix{a, t} | suture::affine_matrix{b, {-back[0], -back[1], -back[2]}} |
                                suture::sampling<suture::linear, suture::edge>{},
                            x, suture::grid{.extents = n});
    expect_close(y, x, 1e-5 * 4096);
  }
}

template <class Label>
void expect_no_new_labels(const std::vector<Label>& before, const std::vector<Label>& after,
                          std::set<Label> allowed = {}) {
  allowed.insert(before.begin(), before.end());
  for (const Label label : after) ASSERT_TRUE(allowed.count(label)) << static_cast<std::int64_t>(label);
}

TEST(Labels, NeverGainAValue) {
  const suture::extent3 n{17, 16, 33};
  generator random(8);
  std::vector<std::int16_t> x(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  for (auto& v : x) v = static_cast<std::int16_t>(100 * (random.bits() % 3) - 300 + 7 * (random.bits() % 2));
  const suture::grid g{.extents = n, .spacing = {2, 1, 0.75}};
  const std::uint64_t id = 11;
  for (std::uint32_t epoch = 0; epoch < 8; ++epoch) {
    const suture::settings s{.seed = 5, .epoch = epoch, .sample_ids = {&id, 1}};
    const auto geometry = suture::resample{.spacing_mm = {1, 1, 1}} |
                          suture::random_affine{.rotate_deg = 180, .scale = {.5F, 2}, .shear = .2F, .translate = 9} |
                          suture::random_elastic{.control_spacing_mm = 12, .max_displacement_mm = 4};
    using edge_vote = suture::sampling<suture::linear, suture::edge, suture::vote>;
    using filled_vote = suture::sampling<suture::linear, suture::constant, suture::vote>;
    using filled_nearest = suture::sampling<suture::linear, suture::constant, suture::nearest>;
    expect_no_new_labels(x, label_result(geometry | edge_vote{}, x, g, s));
    expect_no_new_labels(x, label_result(geometry | filled_vote{.label_outside = -1}, x, g, s), {-1});
    expect_no_new_labels(x, label_result(geometry | filled_nearest{.label_outside = -1}, x, g, s), {-1});
  }
}

// A blob of light put where the map says a voxel comes from must appear, by its center of mass, at that voxel.
TEST(Content, LandsWhereItsVoxelWent) {
  const suture::grid g{.extents = {40, 44, 48}, .spacing = {1.5, 1, 1.25}};
  const std::uint64_t id = 3;
  const auto ops = suture::random_affine{.rotate_deg = 30, .scale = {.9F, 1.1F}, .shear = .1F, .translate = 4} |
                   suture::random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 5} |
                   suture::crop{.start = {2, 3, 4}, .size = {36, 38, 40}};
  const suture::point3 landings[]{{18, 19, 20}, {12, 24, 14}, {25, 13.5, 27.25}};
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
    for (const suture::point3& landing : landings) {
      const suture::settings s{.seed = 77, .epoch = epoch, .sample_ids = {&id, 1}};
      const std::vector<suture::grid> batch{g};
      const auto plan = suture::plan(ops, batch, s);
      const auto& map = plan.geometry(0);
      // Where output position `landing` comes from: crop, then displacement, then affine, in double.
      const suture::point3 p = map.to_deformed(landing);
      std::array<reference::volume, 3> control;
      const auto& c = map.drawn.control_points;
      for (int k = 0; k < 3; ++k) {
        control[static_cast<std::size_t>(k)] = reference::volume({c[0], c[1], c[2]});
        for (std::int32_t z = 0; z < c[0]; ++z)
          for (std::int32_t y = 0; y < c[1]; ++y)
            for (std::int32_t x = 0; x < c[2]; ++x)
              control[static_cast<std::size_t>(k)].at(z, y, x) =
                  static_cast<double>(suture::control_value(map.drawn, k, z, y, x));
      }
      const reference::point u =
          reference::bspline_displacement(control, support::point(p), {g.extents[0], g.extents[1], g.extents[2]}, 0);
      const suture::point3 from = map.to_source({p[0] + u[0], p[1] + u[1], p[2] + u[2]});

      std::vector<float> image(static_cast<std::size_t>(g.voxels()));
      std::size_t i = 0;
      for (std::int64_t z = 0; z < g.extents[0]; ++z)
        for (std::int64_t y = 0; y < g.extents[1]; ++y)
          for (std::int64_t x = 0; x < g.extents[2]; ++x) {
            const double d[3]{static_cast<double>(z) - from[0], static_cast<double>(y) - from[1],
                              static_cast<double>(x) - from[2]};
            image[i++] = static_cast<float>(std::exp(-(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) / (2 * 1.5 * 1.5)));
          }
      const auto y = image_result<float>(ops, image, g, s);
      double mass = 0;
      double moment[3]{};
      i = 0;
      for (int z = 0; z < 36; ++z)
        for (int yy = 0; yy < 38; ++yy)
          for (int x = 0; x < 40; ++x) {
            const auto v = static_cast<double>(y[i++]);
            mass += v;
            moment[0] += v * z;
            moment[1] += v * yy;
            moment[2] += v * x;
          }
      ASSERT_GT(mass, 10);
      // The map bends within the blob, so its center is off by a fraction of a voxel.
      for (int k = 0; k < 3; ++k) EXPECT_NEAR(moment[k] / mass, landing[k], 0.15) << "axis " << k << " epoch " << epoch;
    }
}

auto recipe() {
  return suture::window{.center = 0, .width = 60000} | suture::resample{.spacing_mm = {1, 1, 1}} |
         suture::random_affine{.rotate_deg = 20, .scale = {.8F, 1.2F}, .probability = .7F} |
         suture::random_elastic{.control_spacing_mm = 10, .max_displacement_mm = 2, .probability = .5F} |
         suture::random_crop{.size = {5, 9, 17}} | suture::random_gamma{.probability = .5F} |
         suture::gaussian_noise{.sigma = .05F};
}

struct ragged {
  std::vector<suture::grid> grids;
  std::vector<std::vector<std::int16_t>> images;
  std::vector<std::uint64_t> ids;
};

ragged ragged_batch() {
  ragged b;
  const suture::extent3 sizes[]{{15, 16, 17}, {5, 127, 18}, {33, 9, 40}, {16, 16, 16}, {7, 20, 64}, {15, 16, 17}};
  const suture::point3 spacings[]{{1, 1, 1}, {2, 1, 1.5}, {1, 1.3, 0.7}, {3, 1, 2}, {1, 1, 1}, {1.5, 1, 1}};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    b.grids.push_back({.extents = sizes[i], .spacing = spacings[i]});
    b.images.push_back(any_image<std::int16_t>(sizes[i], i + 20));
    b.ids.push_back(1000 + 17 * i);
  }
  return b;
}

std::vector<std::uint64_t> digests_of(const ragged& all, const std::vector<std::size_t>& order, int threads = 0) {
  std::vector<suture::view<const std::int16_t>> in;
  std::vector<std::uint64_t> ids;
  for (const std::size_t i : order) {
    in.push_back(suture::contiguous(all.images[i].data(), all.grids[i]));
    ids.push_back(all.ids[i]);
  }
  const auto plan = suture::plan(recipe(), in, {.seed = 9, .epoch = 2, .sample_ids = ids, .same_ids = true});
  const auto grids = plan.output_grids();
  std::vector<float> y(static_cast<std::size_t>(grids[0].voxels()) * order.size());
  const auto out = suture::batch_views(y.data(), grids);
  suture::run(suture::cpu{.threads = threads}, plan, suture::image(in, out));
  std::vector<std::uint64_t> digests;
  for (const auto& view : out) digests.push_back(suture::digest(view));
  return digests;
}

TEST(Batches, DoNotChangeASample) {
  const ragged all = ragged_batch();
  const std::vector<std::size_t> forward{0, 1, 2, 3, 4, 5};
  const auto together = digests_of(all, forward);
  EXPECT_EQ(std::set<std::uint64_t>(together.begin(), together.end()).size(), together.size());
  for (const std::size_t i : forward) EXPECT_EQ(digests_of(all, {i})[0], together[i]) << "alone: sample " << i;
  const std::vector<std::size_t> shuffled{4, 2, 5, 0, 3, 1, 2};
  const auto mixed = digests_of(all, shuffled);
  for (std::size_t k = 0; k < shuffled.size(); ++k) EXPECT_EQ(mixed[k], together[shuffled[k]]) << "at place " << k;
  EXPECT_EQ(digests_of(all, forward, 1), together);
  EXPECT_EQ(digests_of(all, forward, 3), together);
}

TEST(Evaluators, GiveTheBitsOfTheRun) {
  const ragged all = ragged_batch();
  std::vector<suture::view<const std::int16_t>> in;
  for (std::size_t i = 0; i < all.grids.size(); ++i)
    in.push_back(suture::contiguous(all.images[i].data(), all.grids[i]));
  const auto plan = suture::plan(recipe(), in, {.seed = 9, .epoch = 2, .sample_ids = all.ids});
  const auto grids = plan.output_grids();
  std::vector<float> y(static_cast<std::size_t>(grids[0].voxels()) * in.size());
  const auto out = suture::batch_views(y.data(), grids);
  const auto bound = suture::image(in, out);
  suture::run(suture::cpu{}, plan, bound);

  std::vector<std::byte> memory(suture::workspace_bytes(plan, bound) + 256);
  auto* start = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
  const auto evaluate =
      suture::prepare(suture::cpu{.workspace = {start, suture::workspace_bytes(plan, bound)}}, plan, bound);
  std::size_t at = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(in.size()); ++i)
    for (std::int32_t z = 0; z < 5; ++z)
      for (std::int32_t yy = 0; yy < 9; ++yy)
        for (std::int32_t x = 0; x < 17; ++x, ++at) {
          const float alone = evaluate(i, z, yy, x);
          ASSERT_EQ(std::memcmp(&alone, &y[at], sizeof alone), 0) << i << ": " << z << ' ' << yy << ' ' << x;
        }
}

TEST(Views, OfAnyStrideGiveTheSameValues) {
  const suture::extent3 n{5, 16, 17};
  const suture::grid g{.extents = n};
  const std::int64_t channels = 3;
  const auto voxels = static_cast<std::size_t>(g.voxels());
  generator random(12);
  std::vector<std::uint8_t> planar(voxels * 3);
  for (auto& v : planar) v = static_cast<std::uint8_t>(random.bits());
  std::vector<std::uint8_t> interleaved(planar.size());
  for (std::size_t v = 0; v < voxels; ++v)
    for (std::size_t c = 0; c < 3; ++c) interleaved[3 * v + c] = planar[c * voxels + v];
  const auto ops = suture::affine{.rotate_deg = {25, 10, -40}, .scale = {1.1, 0.9, 1}};
  const std::vector<suture::grid> batch{g};
  const auto plan = suture::plan(ops, batch);

  const auto expected = image_result<float>(ops, planar, g, {}, channels);
  std::vector<float> y(planar.size());
  suture::run(
      suture::cpu{}, plan,
      suture::image(suture::channels_last(interleaved.data(), g, channels), suture::contiguous(y.data(), g, channels)));
  EXPECT_EQ(y, expected);

  std::vector<float> last(planar.size());
  suture::run(
      suture::cpu{}, plan,
      suture::image(suture::contiguous(planar.data(), g, channels), suture::channels_last(last.data(), g, channels)));
  for (std::size_t v = 0; v < voxels; ++v)
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(last[3 * v + c], expected[c * voxels + v]);

  // Rows with a gap, read backwards along y.
  const std::int64_t row = 20;
  std::vector<std::uint8_t> padded(static_cast<std::size_t>(n[0] * n[1] * row), 255);
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t yy = 0; yy < n[1]; ++yy)
      for (std::int64_t x = 0; x < n[2]; ++x)
        padded[static_cast<std::size_t>((z * n[1] + n[1] - 1 - yy) * row + x)] =
            planar[static_cast<std::size_t>((z * n[1] + yy) * n[2] + x)];
  const suture::view<const std::uint8_t> backwards{padded.data() + (n[1] - 1) * row, g, {n[1] * row, -row, 1}, 1, 0};
  std::vector<float> one(voxels);
  suture::run(suture::cpu{}, plan, suture::image(backwards, suture::contiguous(one.data(), g)));
  EXPECT_TRUE(std::equal(one.begin(), one.end(), expected.begin()));
}

}  // namespace
