// SPDX-License-Identifier: Apache-2.0
// Snippets of docs/writing-an-operation.md.
#include <gtest/gtest.h>

#include <cmath>
#include <suture/suture.hpp>

namespace {

// [value]
// y = log(1 + max(x, 0) / knee): evens out bright vessels. x and knee in the units of the image.
// Errors: a knee that is not positive.
struct log_compress {
  float knee = 100;

  static constexpr std::string_view name = "log_compress";

  struct functor {
    float inverse_knee;
    SUTURE_FN float operator()(float x) const {
      const float positive = x > 0 ? x : 0.0f;
      return suture::math::log(suture::fma(positive, inverse_knee, 1.0f));
    }
  };

  functor prepare(const suture::site& where) const {
    suture::require(std::isfinite(knee) && knee > 0, where, "knee ", knee, " must be positive");
    return {1 / knee};
  }
};
// [/value]

// [random]
// log_compress with a knee drawn from `range`, every ratio alike.
struct random_log_compress {
  suture::interval range = {50, 200};
  float probability = 1;

  static constexpr std::string_view name = "random_log_compress";
  static constexpr std::uint16_t kind = 2048;

  log_compress draw(suture::draws& random, const suture::site& where) const {
    suture::require(range.low > 0 && range.low <= range.high, where, "range ", range, " must be positive and in order");
    return {.knee = random.log_uniform(range.low, range.high)};
  }
};
// [/random]

// [voxel]
// Voxels lost at random, each with probability `share`, read `value`.
struct lost_voxels {
  float share;
  float value;
  suture::random_field field;

  static constexpr std::string_view name = "lost_voxels";

  SUTURE_FN float operator()(float x, const suture::voxel& at) const {
    return field.uniform(at.element) < share ? value : x;
  }
};

struct random_lost_voxels {
  float largest_share = .05f;
  float value = 0;
  float probability = 1;

  static constexpr std::string_view name = "random_lost_voxels";
  static constexpr std::uint16_t kind = 2049;

  lost_voxels draw(suture::draws& random, const suture::site& where) const {
    suture::require(largest_share >= 0 && largest_share <= 1, where, "largest_share ", largest_share,
                    " is not in [0, 1]");
    return {random.uniform(0, largest_share), value, random.field(1)};
  }
};
// [/voxel]

// [geometry]
// Every n-th slice along z, the first one kept: a thick-slice reading of a thin-slice scan.
// Errors: n below 1.
struct every_nth_slice {
  std::int64_t n = 2;

  static constexpr std::string_view name = "every_nth_slice";
  static constexpr bool keeps_axes = true;  // the map never mixes z, y and x

  suture::geometry_step step(const suture::grid& input, const suture::site& where) const {
    suture::require(n >= 1, where, "n ", n, " must be at least 1");
    suture::geometry_step result{input, suture::affine_map{}};
    result.pull.linear[0][0] = static_cast<double>(n);  // output index z is input index n z
    result.output.extents[0] = (input.extents[0] + n - 1) / n;
    result.output.spacing[0] = input.spacing[0] * static_cast<double>(n);
    return result;
  }
};
// [/geometry]

// [random_geometry]
struct random_nth_slice {
  std::int64_t most = 3;
  float probability = 1;

  static constexpr std::string_view name = "random_nth_slice";
  static constexpr std::uint16_t kind = 2050;

  every_nth_slice draw(suture::draws& random, const suture::grid&, const suture::site& where) const {
    suture::require(most >= 1, where, "most ", most, " must be at least 1");
    return {.n = 1 + random.integer(most)};
  }
};
// [/random_geometry]

// Kinds from 2048 on are the user's.
template <class... Ops>
constexpr bool kinds_are_below_2048 = ((Ops::kind < 2048) && ...);
static_assert(
    kinds_are_below_2048<suture::random_affine, suture::random_elastic, suture::random_crop, suture::random_flip,
                         suture::random_rot90, suture::random_gamma, suture::gaussian_noise, suture::rician_noise,
                         suture::random_contrast, suture::random_brightness, suture::random_brightness_factor,
                         suture::random_bias_field, suture::poisson_noise, suture::random_histogram_shift,
                         suture::random_coarse_dropout>);

const suture::grid scan{.extents = {7, 8, 9}, .spacing = {1, 2, 2}};

std::vector<float> ramp() {
  std::vector<float> values(static_cast<std::size_t>(scan.voxels()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 50;
  return values;
}

template <class Pipeline>
std::vector<float> result(const Pipeline& pipeline, const suture::settings& s = {}) {
  const std::vector<float> values = ramp();
  const std::vector in{suture::contiguous(values.data(), scan)};
  const auto plan = suture::plan(pipeline, in, s);
  std::vector<float> out(static_cast<std::size_t>(plan.output_grid(0).voxels()));
  suture::run(suture::cpu{}, plan, suture::image(in, suture::batch_views(out.data(), plan.output_grids())));
  return out;
}

TEST(WritingAnOperation, Value) {
  const auto x = ramp(), y = result(log_compress{.knee = 80} | suture::clamp{.low = 0, .high = 100});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::log1p(std::max(static_cast<double>(x[i]), 0.0) / 80);
    EXPECT_NEAR(static_cast<double>(y[i]), exact, 2e-6);
  }
  EXPECT_THROW(result(log_compress{.knee = 0}), suture::error);
}

TEST(WritingAnOperation, Random) {
  const std::vector<std::uint64_t> ids{3};
  const auto at = [&](std::uint32_t epoch) {
    return result(random_log_compress{.range = {50, 200}}, {.seed = 1, .epoch = epoch, .sample_ids = ids});
  };
  EXPECT_EQ(at(0), at(0));
  EXPECT_NE(at(0), at(1));
  const double knee = (static_cast<double>(ramp().back())) / (std::exp(static_cast<double>(at(0).back())) - 1);
  EXPECT_GT(knee, 49.9);
  EXPECT_LT(knee, 200.1);
}

TEST(WritingAnOperation, PerVoxel) {
  const std::vector<std::uint64_t> ids{3};
  const auto x = ramp();
  const auto y = result(random_lost_voxels{.largest_share = .5f, .value = -1000}, {.seed = 1, .sample_ids = ids});
  std::size_t lost = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    lost += y[i] == -1000 ? 1 : 0;
    EXPECT_TRUE(y[i] == -1000 || y[i] == x[i]);
  }
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, x.size() * 6 / 10);
  EXPECT_EQ(lost_voxels::name, "lost_voxels");
}

TEST(WritingAnOperation, Geometry) {
  const auto x = ramp(), y = result(every_nth_slice{.n = 3});
  ASSERT_EQ(y.size(), 3u * 72);
  for (std::size_t z = 0; z < 3; ++z)
    for (std::size_t i = 0; i < 72; ++i) EXPECT_EQ(y[z * 72 + i], x[3 * z * 72 + i]);
  const suture::geometry_step step = every_nth_slice{.n = 3}.step(scan, {"test"});
  EXPECT_EQ(step.output.spacing, (suture::point3{3, 2, 2}));
  EXPECT_EQ(step.output.origin, scan.origin);
}

TEST(WritingAnOperation, RandomGeometryMeetsOtherGeometry) {
  const std::vector<std::uint64_t> ids{3};
  const auto recipe = random_nth_slice{.most = 3} | suture::resample{.spacing_mm = {1, 1, 1}} |
                      suture::random_crop{.size = {4, 5, 6}} | random_log_compress{};
  EXPECT_EQ(result(recipe, {.seed = 8, .sample_ids = ids}).size(), 120u);
}

}  // namespace
