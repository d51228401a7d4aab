// SPDX-License-Identifier: Apache-2.0
// Snippets of docs/writing-an-operation.md.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <suture/suture.hpp>

namespace {

// [value]
// y = log(1 + max(x, 0) / knee): evens out bright vessels. x and knee in the units of the image.
// Errors: a knee that is not positive.
struct log_compress {
  float knee = 100;

  static constexpr std::string_view name = "log_compress";
  static constexpr auto fields = suture::named("knee", &log_compress::knee);

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

// [color]
// Light of another temperature: red times 1 + warmth, blue times 1 - warmth. Errors: a warmth outside (-1, 1).
struct warm_light {
  float warmth = 0;

  static constexpr std::string_view name = "warm_light";
  static constexpr auto fields = suture::named("warmth", &warm_light::warmth);

  struct functor {
    float red, blue;
    SUTURE_FN suture::rgb operator()(const suture::rgb& x) const {
      return {{suture::fma(x.c[0], red, 0.0f), x.c[1], suture::fma(x.c[2], blue, 0.0f)}};
    }
  };

  functor prepare(const suture::site& where) const {
    suture::require(warmth > -1 && warmth < 1, where, "warmth ", warmth, " is not in (-1, 1)");
    return {1 + warmth, 1 - warmth};
  }
};
// [/color]

// [given]
// y = x gains[i] for sample i of the batch: what is known of each scanner. Errors: fewer gains than samples.
struct scanner_gain {
  std::span<const float> gains;

  static constexpr std::string_view name = "scanner_gain";

  struct functor {
    float gain;
    SUTURE_FN float operator()(float x) const { return suture::fma(x, gain, 0.0f); }
  };

  functor prepare(const suture::site& where) const {
    const auto sample = static_cast<std::size_t>(where.sample);
    suture::require(sample < gains.size(), where, "there are ", gains.size(), " gains only");
    return {gains[sample]};
  }
};
// [/given]

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

// [point_filter]
// y = the greatest of the voxel and its two neighbors along z: a slab of three slices by maximum intensity.
struct thin_slab {
  static constexpr std::string_view name = "thin_slab";

  struct functor {
    SUTURE_FN bool active(std::int32_t) const { return true; }
    template <class Read>
    SUTURE_FN float operator()(const Read& read, const std::int32_t (&extents)[3], std::int32_t z, std::int32_t y,
                               std::int32_t x, std::int32_t) const {
      const float below = read(suture::edge::index(z - 1, extents[0]), y, x);
      const float above = read(suture::edge::index(z + 1, extents[0]), y, x);
      const float most = above > below ? above : below, own = read(z, y, x);
      return own > most ? own : most;
    }
  };

  functor prepare(const suture::site&) const { return {}; }
};
// [/point_filter]

// [separable_filter]
// y = the mean of 2 radius + 1 voxels along each axis, the patch continued by its outermost voxels.
struct box_mean {
  std::int32_t radius_voxels = 1;

  static constexpr std::string_view name = "box_mean";

  struct functor {
    std::int32_t reach;
    float weight;
    SUTURE_FN bool active(std::int32_t) const { return reach > 0; }
    SUTURE_FN std::int32_t radius(int, std::int32_t) const { return reach; }
    SUTURE_FN void weights_along(int, std::int32_t, float* weights) const {
      for (std::int32_t k = 0; k <= 2 * reach; ++k) weights[k] = weight;
    }
    SUTURE_FN std::int32_t index(std::int32_t i, std::int32_t extent) const { return suture::edge::index(i, extent); }
  };

  functor prepare(const suture::site& where) const {
    suture::require(radius_voxels >= 0 && radius_voxels <= suture::largest_radius, where, "radius ", radius_voxels,
                    " is not in [0, ", suture::largest_radius, "]");
    return {radius_voxels, 1 / static_cast<float>(2 * radius_voxels + 1)};
  }
};
// [/separable_filter]

// [statistic]
// y = (x - mean) / max(deviation, 1e-8), by channel of the patch.
struct standardize_patch {
  static constexpr std::string_view name = "standardize_patch";

  struct functor {
    struct with_moments {
      float mean, inverse;
      SUTURE_FN float operator()(float x) const { return suture::fma(x - mean, inverse, 0.0f); }
    };
    SUTURE_FN bool active(std::int32_t) const { return true; }
    SUTURE_FN with_moments with(const suture::moments& patch, std::int32_t) const {
      const double deviation = patch.standard_deviation > 1e-8 ? patch.standard_deviation : 1e-8;
      return {patch.center, static_cast<float>(suture::math::detail::divide(1.0, deviation))};
    }
  };

  functor prepare(const suture::site&) const { return {}; }
};
// [/statistic]

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

TEST(WritingAnOperation, Color) {
  const suture::grid g{.extents = {1, 2, 3}};
  const std::vector<float> tile{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180};
  const auto plan = suture::plan(warm_light{.warmth = .25f} | suture::rescale{.slope = 2}, g, {});
  std::vector<float> y(tile.size());
  suture::run(suture::cpu{}, plan,
              suture::image(suture::channels_last(tile.data(), g, 3), suture::channels_last(y.data(), g, 3)));
  for (std::size_t i = 0; i < tile.size(); ++i) {
    const float factor = i % 3 == 0 ? 1.25f : i % 3 == 1 ? 1 : .75f;
    EXPECT_EQ(y[i], 2 * factor * tile[i]);
  }
  EXPECT_THROW(suture::plan(warm_light{.warmth = 1}, g, {}), suture::error);
}

TEST(WritingAnOperation, GivenForEachSample) {
  const std::vector<float> gains{2, .5f}, x = ramp();
  const std::vector in(2, suture::contiguous(x.data(), scan));
  const auto plan = suture::plan(scanner_gain{gains}, in);
  std::vector<float> y(2 * x.size());
  suture::run(suture::cpu{}, plan, suture::image(in, suture::batch_views(y.data(), plan.output_grids())));
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], gains[i / x.size()] * x[i % x.size()]);
  EXPECT_THROW(suture::plan(scanner_gain{gains}, std::vector(3, in[0])), suture::error);
}

TEST(WritingAnOperation, TwoOfOnesOwnSideBySide) {
  // [own_first]
  using suture::operator|;  // in the namespace of your operations, or where a chain is made
  const auto recipe = log_compress{} | standardize_patch{} | suture::cast<suture::half>{};
  // [/own_first]
  const auto plan = suture::plan(recipe, scan, {});
  EXPECT_EQ(plan.stages(), 3);
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

TEST(WritingAnOperation, PointFilter) {
  const auto x = ramp(), y = result(thin_slab{} | suture::brightness{.offset = 1});
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[std::min(i + 72, i % 72 + 6 * 72)] + 1);
}

TEST(WritingAnOperation, SeparableFilter) {
  const auto x = ramp(), y = result(box_mean{.radius_voxels = 1});
  const std::size_t inside = (3 * 8 + 4) * 9 + 4;  // of a ramp the mean is the middle
  EXPECT_NEAR(y[inside], x[inside], 1e-4);
  EXPECT_NEAR(y[0], x[0] + (72 + 9 + 1) / 3.0f, 1e-4);
  EXPECT_EQ(result(box_mean{.radius_voxels = 0}), x);
  EXPECT_THROW(result(box_mean{.radius_voxels = 16}), suture::error);
}

TEST(WritingAnOperation, PatchStatistics) {
  double sum = 0, squares = 0;
  for (float value : result(standardize_patch{})) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 504, 0, 1e-5);
  EXPECT_NEAR(squares / 504, 1, 1e-5);
}

TEST(Operations, FiltersAndPatchStatistics) {
  // clang-format off
  const auto augment = suture::random_affine{.rotate_deg = 15} | suture::center_crop{{16, 24, 24}}
                       | suture::gaussian_noise{.sigma = {0, .1f}, .probability = .1f}
                       | suture::random_gaussian_blur{.sigma = {.5f, 1}, .channel_probability = .5f, .probability = .2f}
                       | suture::random_patch_contrast{.probability = .15f}
                       | suture::random_low_resolution{.channel_probability = .5f, .probability = .25f}
                       | suture::random_patch_gamma{.probability = .3f} | suture::cast<suture::half>{};
  // clang-format on
  const suture::grid g{.extents = {20, 30, 30}};
  const std::vector<suture::grid> grids{g};
  const std::vector<std::uint64_t> ids{3};
  const auto plan = suture::plan(augment, grids, {.sample_ids = ids});
  EXPECT_EQ(plan.stages(), 5);
}

TEST(WritingAnOperation, RandomGeometryMeetsOtherGeometry) {
  const std::vector<std::uint64_t> ids{3};
  const auto recipe = random_nth_slice{.most = 3} | suture::resample{.spacing_mm = {1, 1, 1}} |
                      suture::random_crop{.size = {4, 5, 6}} | random_log_compress{};
  EXPECT_EQ(result(recipe, {.seed = 8, .sample_ids = ids}).size(), 120u);
}

}  // namespace
