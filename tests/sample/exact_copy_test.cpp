// SPDX-License-Identifier: Apache-2.0
// A copy is a copy: where the output stands on a voxel of the source it holds that voxel, whatever that is and whatever
// stands beside it, and a tap of weight 0 is not read. Expected values are found by index here, or in double, never by
// the library.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "support/aligned_memory.hpp"

namespace {

using namespace suture;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float most = std::numeric_limits<float>::max();
const float special[] = {infinity, -infinity, std::nanf(""), most, -most, 3e38f, -3e38f, -0.0f, 0.0f, 1e-45f, -1e-45f};

// Left of the geometry it makes taps something that has passed a functor.
struct unchanged {
  static constexpr std::string_view name = "unchanged";
  float operator()(float x) const { return x; }
};

// Ordinary values, every `rare`th of them a special one.
std::vector<float> values_of(std::int64_t count, unsigned seed, unsigned rare) {
  std::mt19937 random(seed);
  std::vector<float> v(static_cast<std::size_t>(count));
  for (float& x : v) {
    x = static_cast<float>(random() % 2001) - 1000;
    if (random() % rare == 0) x = special[random() % std::size(special)];
  }
  return v;
}

// All NaNs are stored as one.
std::uint32_t stored_bits(float v) {
  std::uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return std::isnan(v) ? 0x7fffffffu : bits;
}

// The run, and every voxel of it by the evaluator, which must have the same bits.
template <class Pipeline, class T = float>
std::vector<T> result_of(const Pipeline& pipeline, const std::vector<T>& in, const grid& g, std::int64_t channels,
                         bool last = false) {
  const std::uint64_t id = 1;
  const auto p = plan(pipeline, g, {.seed = 2, .sample_ids = {&id, 1}});
  const grid to = p.output_grid(0);
  std::vector<T> out(static_cast<std::size_t>(to.voxels() * channels));
  const auto from = last ? channels_last<const T>(in.data(), g, channels) : contiguous<const T>(in.data(), g, channels);
  const auto pair = image(from, contiguous(out.data(), to, channels));
  run(cpu{}, p, pair);
  const support::aligned_memory workspace(workspace_bytes(p, pair));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, pair);
  std::size_t different = 0, i = 0;
  for (std::int32_t c = 0; c < channels; ++c)
    for (std::int32_t z = 0; z < to.extents[0]; ++z)
      for (std::int32_t y = 0; y < to.extents[1]; ++y)
        for (std::int32_t x = 0; x < to.extents[2]; ++x, ++i) {
          const auto alone = evaluate(0, z, y, x, c);
          if constexpr (std::is_same_v<std::remove_const_t<decltype(alone)>, pixel<T>>)
            different += std::memcmp(&alone.c[c], &out[i], sizeof out[i]) != 0;
          else
            different += std::memcmp(&alone, &out[i], sizeof out[i]) != 0;
        }
  EXPECT_EQ(different, 0u) << "voxels that differ from the evaluator's";
  return out;
}

// Holds the result against the voxels of the source at from(z, y, x), a negative index for `outside`.
template <class Pipeline, class From>
void expect_copied(const Pipeline& pipeline, const From& from, float outside = 0) {
  for (const extent3 n : {extent3{5, 6, 70}, extent3{1, 9, 33}, extent3{7, 4, 3}})
    for (const unsigned rare : {2u, 40u}) {
      constexpr std::int64_t channels = 2;
      const grid g{.extents = n};
      const std::vector<float> in = values_of(channels * g.voxels(), static_cast<unsigned>(n[2]) + rare, rare);
      const extent3 m = plan(pipeline, g, {.sample_ids = std::vector<std::uint64_t>{1}}).output_grid(0).extents;
      const std::vector<float> out = result_of(pipeline, in, g, channels);
      std::size_t i = 0, wrong = 0;
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t z = 0; z < m[0]; ++z)
          for (std::int64_t y = 0; y < m[1]; ++y)
            for (std::int64_t x = 0; x < m[2]; ++x, ++i) {
              const extent3 at = from(z, y, x, n);
              const bool inside =
                  at[0] >= 0 && at[1] >= 0 && at[2] >= 0 && at[0] < n[0] && at[1] < n[1] && at[2] < n[2];
              const float expected =
                  inside ? in[static_cast<std::size_t>(((c * n[0] + at[0]) * n[1] + at[1]) * n[2] + at[2])] : outside;
              wrong += stored_bits(out[i]) != stored_bits(expected) ? 1 : 0;
            }
      EXPECT_EQ(wrong, 0u) << "of " << out.size() << ", extents " << n << ", one of " << rare << " special";
    }
}

// Every way of making a copy, by one interpolation.
template <class Interpolation>
void expect_copies() {
  const sampling<Interpolation, constant> zero{};
  const auto same = [](auto z, auto y, auto x, const extent3&) { return extent3{z, y, x}; };
  expect_copied(identity{} | zero, same);
  expect_copied(identity{} | sampling<Interpolation, edge>{}, same);
  expect_copied(identity{} | sampling<Interpolation, reflect>{}, same);
  expect_copied(identity{} | sampling<Interpolation, mirror>{}, same);
  expect_copied(identity{} | sampling<Interpolation, wrap>{}, same);
  expect_copied(unchanged{} | identity{} | zero, [&](auto z, auto y, auto x, const extent3&) {
    return extent3{z, y, x};
  });
  for (int axes = 1; axes < 8; ++axes) {
    const bool flipped[3] = {(axes & 1) != 0, (axes & 2) != 0, (axes & 4) != 0};
    expect_copied(flip{{flipped[0], flipped[1], flipped[2]}} | zero, [&](auto z, auto y, auto x, const extent3& n) {
      return extent3{flipped[0] ? n[0] - 1 - z : z, flipped[1] ? n[1] - 1 - y : y, flipped[2] ? n[2] - 1 - x : x};
    });
  }
  expect_copied(permute{{2, 0, 1}} | zero, [](auto z, auto y, auto x, const extent3&) { return extent3{y, x, z}; });
  expect_copied(rot90{} | sampling<Interpolation, edge>{}, [](auto z, auto y, auto x, const extent3& n) {
    return extent3{z, x, n[2] - 1 - y};
  });
  expect_copied(
      pad{.before = {1, 2, 3}, .after = {0, 1, 40}} | sampling<Interpolation, constant>{.border = {-7}},
      [](auto z, auto y, auto x, const extent3&) {
        return extent3{z - 1, y - 2, x - 3};
      },
      -7);
  expect_copied(affine_matrix{.translation = {0, -1, 2}, .about_center = false} | zero,
                [](auto z, auto y, auto x, const extent3&) {
                  return extent3{z, y - 1, x + 2};
                });
  // Where a deformation might have been, and where voxels are reached by another way.
  expect_copied(random_elastic{.max_displacement_mm = .1, .probability = 0} | zero, same);
  expect_copied(random_affine{.rotate_deg = 20, .probability = 0} | flip{{true, false, true}} | zero,
                [](auto z, auto y, auto x, const extent3& n) {
                  return extent3{n[0] - 1 - z, y, n[2] - 1 - x};
                });
}

TEST(copies, by_nearest) { expect_copies<nearest>(); }
TEST(copies, by_linear) { expect_copies<linear>(); }
TEST(copies, by_catmull_rom) { expect_copies<catmull_rom>(); }
TEST(copies, by_torch_cubic) { expect_copies<torch_cubic>(); }

// Where output i lies along a resampled axis: at source index (first + i step) / parts, in whole numbers.
struct exact_places {
  std::int64_t first, step, parts;
};

// Along an axis of n voxels all voxels are NaN but those of one parity: a place that meets one of these holds it, on
// the run and alone, and a place that meets a NaN holds a NaN. What is not asked for here is what lies between voxels.
template <class Interpolation, class Pipeline>
void expect_met(const Pipeline& pipeline, const grid& g, int axis, const exact_places& places, std::int64_t at_least) {
  const std::int64_t n = g.extents[axis];
  std::int64_t met = 0, wrong = 0;
  for (const std::int64_t parity : {0, 1}) {
    std::vector<float> in(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      in[static_cast<std::size_t>(i)] = i % 2 == parity ? static_cast<float>(i + 1) : std::nanf("");
    const std::vector<float> out = result_of(pipeline | sampling<Interpolation, edge>{}, in, g, 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int64_t place = places.first + static_cast<std::int64_t>(i) * places.step;
      if (place % places.parts != 0 || place < 0 || place / places.parts >= n) continue;
      ++met;
      wrong += stored_bits(out[i]) != stored_bits(in[static_cast<std::size_t>(place / places.parts)]) ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << met << " places " << places.first << " + i " << places.step << " / " << places.parts
                      << " along axis " << axis;
  EXPECT_GE(met, 2 * at_least);
}

// Both sides of a voxel stand on it: no step of these resamplings is a binary fraction, so that each place is rounded.
template <class Interpolation>
void expect_resampled_copies() {
  constexpr std::int64_t n = 90;
  for (int axis = 0; axis < 3; ++axis) {
    const auto along = [&](std::int64_t extent) {
      extent3 e{1, 1, 1};
      e[axis] = extent;
      return e;
    };
    const vec3<bool> axes{axis == 0, axis == 1, axis == 2};
    for (const auto& [out, in] : {std::pair{2, 3}, {3, 2}, {4, 3}, {7, 5}, {7, 10}, {9, 10}}) {
      grid g{.extents = along(n)};
      g.spacing[axis] = static_cast<double>(out) / in;  // a step of 1 mm is in / out voxels
      const resample to_mm{.spacing_mm = {1, 1, 1}, .map = coordinate_map::origin_preserving};
      const std::int64_t last = plan(to_mm, g).output_grid(0).extents[axis] - 1, meets = (last + out) / out;
      expect_met<Interpolation>(to_mm, g, axis, {0, in, out}, meets);
      expect_met<Interpolation>(to_mm | flip{axes}, g, axis, {last * in, -in, out}, meets);
      expect_met<Interpolation>(flip{axes} | to_mm, g, axis, {(n - 1) * out, -in, out}, meets);
    }
    const grid g{.extents = along(n)};
    for (const std::int64_t parts : {3, 5, 7}) {
      const resample ends{.map = coordinate_map::align_corners, .extents = along((n - 1) * parts + 1)};
      expect_met<Interpolation>(ends, g, axis, {0, 1, parts}, n);
      // (i + 1/2) / parts - 1/2
      const resample halves{.map = coordinate_map::half_pixel, .extents = along(n * parts)};
      expect_met<Interpolation>(halves, g, axis, {(1 - parts) / 2, 1, parts}, n);
    }
    const affine_matrix tenths{.linear = diagonal({axis == 0 ? .1 : 1, axis == 1 ? .1 : 1, axis == 2 ? .1 : 1}),
                               .translation = {axis == 0 ? -.7 : 0, axis == 1 ? -.7 : 0, axis == 2 ? -.7 : 0},
                               .about_center = false};
    expect_met<Interpolation>(tenths, g, axis, {-7, 1, 10}, 9);
  }
}
TEST(copies, of_resampled_places_by_linear) { expect_resampled_copies<linear>(); }
TEST(copies, of_resampled_places_by_catmull_rom) { expect_resampled_copies<catmull_rom>(); }
TEST(copies, of_resampled_places_by_torch_cubic) { expect_resampled_copies<torch_cubic>(); }

// A long axis, where the errors of 200,000 steps add up to 2^-23 voxel.
TEST(copies, of_resampled_places_of_a_long_axis) {
  const grid g{.extents = {1, 1, 66667}};
  const resample ends{.map = coordinate_map::align_corners, .extents = {1, 1, 66666 * 3 + 1}};
  expect_met<linear>(ends, g, 2, {0, 1, 3}, 66667);
  expect_met<linear>(flip{{false, false, true}} | ends, g, 2, {66666 * 3, -1, 3}, 66667);
}

// A place half way between two voxels belongs to the upper one: floor(x + 1/2), found here in whole numbers.
TEST(copies, of_resampled_ties) {
  constexpr std::int64_t n = 90;
  const grid g{.extents = {1, 1, n}};
  std::vector<float> in(n);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  for (const std::int64_t parts : {6, 10, 14}) {  // places i / parts
    const resample ends{.map = coordinate_map::align_corners, .extents = {1, 1, (n - 1) * parts + 1}};
    const std::vector<float> up = result_of(ends | sampling<nearest, edge>{}, in, g, 1);
    const std::vector<float> down = result_of(flip{{false, false, true}} | ends | sampling<nearest, edge>{}, in, g, 1);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i <= (n - 1) * parts; ++i) {
      const auto expected = static_cast<float>((2 * i + parts) / (2 * parts));
      wrong += up[static_cast<std::size_t>(i)] != expected ? 1 : 0;
      wrong += down[static_cast<std::size_t>((n - 1) * parts - i)] != expected ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << parts;
  }
}

// Other element types, and channels side by side.
TEST(copies, of_half_and_of_channels_side_by_side) {
  const grid g{.extents = {4, 5, 37}};
  for (const std::int64_t channels : {1, 3, 4}) {
    std::vector<half> in;
    for (const float v : values_of(channels * g.voxels(), 3, 3)) in.push_back(storage<half>::store(v));
    const std::vector<half> out =
        result_of(flip{{false, true, false}} | sampling<linear, mirror>{} | cast<half>{}, in, g, channels, true);
    std::size_t wrong = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t z = 0; z < 4; ++z)
        for (std::int64_t y = 0; y < 5; ++y)
          for (std::int64_t x = 0; x < 37; ++x)
            wrong += out[static_cast<std::size_t>(((c * 4 + z) * 5 + y) * 37 + x)].bits !=
                             in[static_cast<std::size_t>(((z * 5 + 4 - y) * 37 + x) * channels + c)].bits
                         ? 1
                         : 0;
    EXPECT_EQ(wrong, 0u) << channels;
  }
}

// Colors of float pixels, turned and mirrored, in planes and volumes.
TEST(copies, of_colors) {
  for (const extent3 n : {extent3{1, 20, 37}, extent3{3, 20, 37}}) {
    const grid g{.extents = n};
    const std::vector<float> in = values_of(3 * g.voxels(), 5, 4);
    const std::vector<float> out =
        result_of(rot90{} | sampling<linear, reflect>{} | random_color_jitter{.probability = 0}, in, g, 3, true);
    std::size_t wrong = 0, i = 0;
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t z = 0; z < n[0]; ++z)
        for (std::int64_t y = 0; y < n[2]; ++y)
          for (std::int64_t x = 0; x < n[1]; ++x, ++i)
            wrong += stored_bits(out[i]) !=
                             stored_bits(in[static_cast<std::size_t>(((z * n[1] + x) * n[2] + n[2] - 1 - y) * 3 + c)])
                         ? 1
                         : 0;
    EXPECT_EQ(wrong, 0u) << n;
  }
}

// The weights of Keys' cubic or of linear interpolation about i + t, from i - 1 on, in double.
template <class Interpolation>
std::vector<double> weights_at(double t) {
  if (std::is_same_v<Interpolation, linear>) return {0, 1 - t, t, 0};
  const double a = std::is_same_v<Interpolation, catmull_rom> ? -.5 : -.75;
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

// What lies at taps of weight 0 makes no difference, and what is mixed is right. Places are halves of voxels.
template <class Interpolation>
void expect_unread(const matrix3& linear_part) {
  const grid g{.extents = {8, 9, 40}};
  const affine_matrix map{.linear = linear_part, .translation = {1, 4, 2}, .about_center = false};
  const auto pipeline = map | sampling<Interpolation, edge>{};
  const auto count = static_cast<std::size_t>(g.voxels());
  for (const unsigned rare : {7u, 60u}) {
    const std::vector<float> dirty = values_of(g.voxels(), rare, rare);
    std::vector<float> clean = dirty;
    for (float& v : clean)
      if (!(std::abs(v) <= 1000) || (v == 0 && std::signbit(v))) v = 77;
    const std::vector<float> of_dirty = result_of(pipeline, dirty, g, 1), of_clean = result_of(pipeline, clean, g, 1);
    std::size_t i = 0, differ = 0, wrong = 0, untouched = 0;
    for (std::int64_t z = 0; z < 8; ++z)
      for (std::int64_t y = 0; y < 9; ++y)
        for (std::int64_t x = 0; x < 40; ++x, ++i) {
          double place[3];
          std::vector<double> w[3];
          std::int64_t base[3];
          const std::int64_t out[3] = {z, y, x};
          for (int k = 0; k < 3; ++k) {
            place[k] = map.translation[k];
            for (int j = 0; j < 3; ++j) place[k] += linear_part[k][j] * static_cast<double>(out[j]);
            base[k] = static_cast<std::int64_t>(std::floor(place[k]));
            w[k] = weights_at<Interpolation>(place[k] - std::floor(place[k]));
          }
          bool is_clean = true;
          double sum = 0, sizes = 0;
          for (int a = 0; a < 4; ++a)
            for (int b = 0; b < 4; ++b)
              for (int j = 0; j < 4; ++j) {
                const double weight = w[0][static_cast<std::size_t>(a)] * w[1][static_cast<std::size_t>(b)] *
                                      w[2][static_cast<std::size_t>(j)];
                if (weight == 0) continue;
                const auto at = [&](int k, int tap) {
                  return std::clamp<std::int64_t>(base[k] + tap - 1, 0, g.extents[k] - 1);
                };
                const auto place_in = static_cast<std::size_t>((at(0, a) * 9 + at(1, b)) * 40 + at(2, j));
                is_clean = is_clean && stored_bits(dirty[place_in]) == stored_bits(clean[place_in]);
                sum += weight * static_cast<double>(clean[place_in]);
                sizes += std::abs(weight * static_cast<double>(clean[place_in]));
              }
          if (is_clean) {
            ++untouched;
            differ += stored_bits(of_dirty[i]) != stored_bits(of_clean[i]) ? 1 : 0;
            wrong += std::abs(static_cast<double>(of_dirty[i]) - sum) <= 2e-6 * sizes + 1e-44 ? 0 : 1;
          }
        }
    EXPECT_EQ(differ, 0u) << "of " << untouched;
    EXPECT_EQ(wrong, 0u) << "of " << untouched;
    EXPECT_GT(untouched, count / 100);
  }
}

template <class Interpolation>
void expect_unread_everywhere() {
  const auto rows = [](double zz, double yy, double xx) { return matrix3{{{zz, 0, 0}, {0, yy, 0}, {0, 0, xx}}}; };
  expect_unread<Interpolation>(rows(1, 1, .5));
  expect_unread<Interpolation>(rows(1, .5, 1));
  expect_unread<Interpolation>(rows(.5, 1, -1));
  expect_unread<Interpolation>(rows(.5, .5, .5));
  expect_unread<Interpolation>(matrix3{{{1, 0, 0}, {0, .5, .5}, {0, -.5, .5}}});
  expect_unread<Interpolation>(matrix3{{{0, .5, 0}, {0, 0, .5}, {.5, 0, 1}}});
}
TEST(weights_of_zero, read_nothing_by_linear) { expect_unread_everywhere<linear>(); }
TEST(weights_of_zero, read_nothing_by_catmull_rom) { expect_unread_everywhere<catmull_rom>(); }
TEST(weights_of_zero, read_nothing_by_torch_cubic) { expect_unread_everywhere<torch_cubic>(); }

// The prefilter of B-splines runs through every line, one axis after the other.
TEST(voxels_that_are_not_finite, take_the_channel_with_them_by_b_splines) {
  const grid g{.extents = {5, 6, 40}};
  std::vector<float> in(2 * 5 * 6 * 40, 3.0f);
  in[(2 * 6 + 3) * 40 + 17] = std::nanf("");
  const std::vector<float> out = result_of(identity{} | sampling<cubic_bspline, mirror>{}, in, g, 2);
  for (std::size_t i = 0; i < out.size() / 2; ++i) ASSERT_TRUE(std::isnan(out[i])) << i;
  for (std::size_t i = out.size() / 2; i < out.size(); ++i) ASSERT_NEAR(out[i], 3, 1e-5) << i;
}

// A displacement can take a place so little short of a voxel that its fraction is rounded to 1.
template <class Interpolation>
void expect_voxel_ahead() {
  for (const float t : {0.0f, 1.0f}) {
    float w[4];
    Interpolation::weights(t, w);
    for (const float beside : {40.0f, infinity}) {
      const float v[4] = {beside, t == 0 ? 7 : beside, t == 0 ? beside : 7, -beside};
      EXPECT_EQ(Interpolation::combine(v, w), 7) << t;
    }
  }
}
TEST(weights_of_zero, at_either_end_of_a_cubic) {
  expect_voxel_ahead<catmull_rom>();
  expect_voxel_ahead<torch_cubic>();
}

// The first of six voxels is the first of three coarse ones, which stand for voxels 1, 3 and 5.
TEST(weights_of_zero, read_nothing_of_a_low_resolution) {
  const grid g{.extents = {1, 1, 6}};
  for (const float value : {infinity, -infinity, std::nanf(""), most}) {
    const std::vector<float> in{1, -most, 3, value, 5, 6};
    const std::vector<float> out =
        result_of(identity{} | random_low_resolution{.zoom = {.5f, .5f}, .axes = {false, false, true}}, in, g, 1);
    EXPECT_EQ(out[0], -most) << value;
  }
}

// A voxel that is not finite makes the mixtures it is in so, and no other voxel.
TEST(voxels_that_are_not_finite, stay_where_they_are_mixed) {
  const grid g{.extents = {1, 1, 6}};
  const affine_matrix half_a_voxel{.translation = {0, 0, .5}, .about_center = false};
  for (const float value : {infinity, -infinity, std::nanf("")}) {
    const std::vector<float> in{1, 2, value, 4, 5, 6};
    const std::vector<float> out = result_of(half_a_voxel | sampling<linear, edge>{}, in, g, 1);
    EXPECT_EQ(out[0], 1.5f);
    EXPECT_FALSE(std::isfinite(out[1]));
    EXPECT_FALSE(std::isfinite(out[2]));
    EXPECT_EQ(out[3], 4.5f);
    EXPECT_EQ(out[4], 5.5f);
    EXPECT_EQ(out[5], 6);
  }
}

}  // namespace
