// SPDX-License-Identifier: Apache-2.0
// Color on the device: operations and fits leave the bits of the CPU, whatever the type and the batch.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <suture/suture.cuh>
#include <vector>

#include "support/device_array.cuh"
#include "support/executors.cuh"
#include "support/launches.cuh"

namespace {

using namespace suture;
using support::device_array;

// A ragged batch of tiles with masks, on both sides. Floats hold NaN, infinities and values outside of 0 .. 255.
template <class T>
struct batch {
  std::vector<grid> grids{
      {.extents = {1, 19, 41}}, {.extents = {1, 3, 1100}}, {.extents = {1, 1, 1}}, {.extents = {2, 16, 17}}};
  std::vector<std::vector<T>> values;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<device_array<T>> device_values;
  std::vector<device_array<std::uint8_t>> device_labels;
  std::vector<view<const T>> host, device;
  std::vector<view<const std::uint8_t>> host_maps, device_maps;

  batch() {
    std::mt19937 random(3);
    for (const grid& g : grids) {
      std::vector<T> v;
      std::vector<std::uint8_t> l;
      for (std::int64_t i = 0; i < g.voxels(); ++i) {
        for (int c = 0; c < 3; ++c) {
          float x = static_cast<float>(random() % 256);
          if (random() % 5 == 0) x = x < 128 ? 0 : 255;
          if constexpr (!std::is_integral_v<T>) {
            const auto kind = random() % 100;
            if (kind == 0) x = std::numeric_limits<float>::quiet_NaN();
            if (kind == 1) x = -std::numeric_limits<float>::infinity();
            if (kind == 2) x = 300;
            if (kind == 3) x = -1e-3f;
            if (kind > 50) x += static_cast<float>(random() % 1000) / 1000;
          }
          v.push_back(storage<T>::store(x));
        }
        l.push_back(static_cast<std::uint8_t>(random() % 4));
      }
      values.push_back(v);
      labels.push_back(l);
    }
    for (std::size_t i = 0; i < grids.size(); ++i) {
      device_values.emplace_back(values[i]);
      device_labels.emplace_back(labels[i]);
      host.push_back(channels_last<const T>(values[i].data(), grids[i], 3));
      device.push_back(channels_last<const T>(device_values[i].data(), grids[i], 3));
      host_maps.push_back(contiguous<const std::uint8_t>(labels[i].data(), grids[i]));
      device_maps.push_back(contiguous<const std::uint8_t>(device_labels[i].data(), grids[i]));
    }
  }
};

template <class T>
class color_device : public testing::Test {};
using stored_types = testing::Types<std::uint8_t, float>;
TYPED_TEST_SUITE(color_device, stored_types);

// The operation for the CPU and for the device, which differ in pointers to fitted statistics alone.
template <class T, class Operation>
void expect_same(const char* name, const batch<T>& b, const Operation& on_host, const Operation& on_device) {
  const std::uint64_t ids[] = {8, 2, 5, 11};
  const settings how{.seed = 5, .sample_ids = ids};
  const auto host_plan = plan(on_host, b.host, how);
  const auto device_plan = plan(on_device, b.device, how);
  std::vector<std::vector<float>> expected;
  std::vector<device_array<float>> found;
  std::vector<view<float>> host_outs, device_outs;
  for (const grid& g : b.grids) {
    const auto n = static_cast<std::size_t>(3 * g.voxels());
    expected.emplace_back(n);
    found.emplace_back(n);
    host_outs.push_back(contiguous(expected.back().data(), g, 3));
    device_outs.push_back(contiguous(found.back().data(), g, 3));
  }
  run(cpu{}, host_plan, image(b.host, host_outs));
  support::device_executor::run(device_plan, image(b.device, device_outs));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto values = found[i].values();
    for (std::size_t k = 0; k < values.size(); ++k)
      ASSERT_EQ(std::memcmp(&values[k], &expected[i][k], sizeof(float)), 0)
          << name << ", sample " << i << ", value " << k << ": " << values[k] << ", CPU " << expected[i][k];
  }
}
template <class T, class Operation>
void expect_same(const char* name, const batch<T>& b, const Operation& operation) {
  expect_same(name, b, operation, operation);
}

TYPED_TEST(color_device, operations_leave_the_bits_of_the_cpu) {
  const batch<TypeParam> b;
  expect_same("hed_jitter", b, random_hed_jitter{});
  expect_same("hed_jitter plus2", b, random_hed_jitter{.alpha = {.8f, 1.2f}, .units = hed_units::tellez_plus2});
  expect_same("hsv_jitter", b, random_hsv_jitter{.hue = {-1, 1}, .saturation = {-1, 1}, .value = {-1, 1}});
  expect_same("stain_jitter", b, random_stain_jitter{});
  expect_same("color_jitter", b, random_color_jitter{.hue = {-.5f, .5f}, .random_order = true});
  expect_same("grayscale", b, grayscale{.rule = gray_rule::pillow});
  expect_same("channel_normalize", b, channel_normalize{});
}

template <class Space, class T, class OnHost, class OnDevice>
void expect_same_fit(const batch<T>& b, const OnHost& on_host, const OnDevice& on_device) {
  SCOPED_TRACE(std::string(Space::name));
  const fit_color_moments<Space> how{.ddof = 1};
  std::vector<color_moments<Space>> expected(b.grids.size());
  fit(cpu{}, how, b.host, on_host, std::span(expected));
  const device_array<color_moments<Space>> results(b.grids.size());
  const cuda_workspace workspace(workspace_bytes(how, b.device));
  fit(cuda{nullptr, workspace}, how, b.device, on_device, results.span());
  const auto found = results.values();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i], expected[i]) << "sample " << i;

  color_moments<Space> target = expected[0];
  for (double& m : target.mean) m = 1.1 * m;
  for (const reinhard_rule rule : {reinhard_rule::plain, reinhard_rule::modified})
    expect_same("reinhard", b, reinhard<Space>{.fitted = expected, .target = target, .rule = rule},
                reinhard<Space>{.fitted = results.span(), .target = target, .rule = rule});
}

TYPED_TEST(color_device, fits_leave_the_bits_of_the_cpu) {
  const batch<TypeParam> b;
  expect_same_fit<lab>(b, everything{}, everything{});
  expect_same_fit<ruderman>(b, inside(b.host_maps), inside(b.device_maps));
  expect_same_fit<hsv>(b, labeled(b.host_maps, {{1, 2}, 3}), labeled(b.device_maps, {{1, 2}, 3}));
  expect_same_fit<hed>(b, everything{}, everything{});
}

TYPED_TEST(color_device, contrast_about_fitted_means) {
  const batch<TypeParam> b;
  const fit_moments how;
  std::vector<moments> expected(3 * b.grids.size());
  fit(cpu{}, how, b.host, everything{}, std::span(expected));
  const device_array<moments> results(expected.size());
  const cuda_workspace workspace(workspace_bytes(how, b.device));
  fit(cuda{nullptr, workspace}, how, b.device, everything{}, results.span());
  expect_same("color_jitter", b, random_color_jitter{.contrast = {.3f, .5f}, .fitted = expected},
              random_color_jitter{.contrast = {.3f, .5f}, .fitted = results.span()});
}

TEST(color_fit_device, stain_jitter_in_the_basis_of_each_tile) {
  const batch<std::uint8_t> b;
  const fit_macenko how;
  std::vector<stain_basis> expected(b.grids.size());
  fit(cpu{}, how, b.host, everything{}, std::span(expected));
  const device_array<stain_basis> results(expected);
  expect_same("stain_jitter", b, random_stain_jitter{.fitted = expected},
              random_stain_jitter{.fitted = results.span()});
  expect_same("stain_jitter shared", b, random_stain_jitter{.fitted = std::span(expected).first(1), .shared = true},
              random_stain_jitter{.fitted = results.span().first(1), .shared = true});
}

// A block makes several rows of tiles of a plane.
TEST(color_of_planes_device, leaves_the_bits_of_the_cpu_at_every_height) {
  const std::uint64_t ids[] = {3};
  const settings how{.seed = 5, .sample_ids = ids};
  for (const std::int64_t height : {1, 8, 9, 15, 16, 17, 31, 32, 33, 127}) {
    const grid g{.extents = {1, height, 35}};
    const auto n = static_cast<std::size_t>(g.voxels());
    std::mt19937 random(7);
    std::vector<std::uint8_t> pixels(3 * n), map(n);
    for (auto& v : pixels) v = static_cast<std::uint8_t>(random() % 256);
    for (auto& v : map) v = static_cast<std::uint8_t>(random() % 4);
    const device_array<std::uint8_t> device_pixels(pixels), device_map(map);
    const auto compare = [&](const auto& chain) {
      const auto planned = plan(chain, std::vector{g}, how);
      std::vector<float> expected(3 * n);
      std::vector<std::uint8_t> expected_map(n);
      const device_array<float> found(3 * n);
      const device_array<std::uint8_t> found_map(n);
      run(cpu{}, planned,
          image(channels_last<const std::uint8_t>(pixels.data(), g, 3), contiguous(expected.data(), g, 3)),
          labels(contiguous<const std::uint8_t>(map.data(), g), contiguous(expected_map.data(), g)));
      support::device_executor::run(
          planned, image(channels_last<const std::uint8_t>(device_pixels.data(), g, 3), contiguous(found.data(), g, 3)),
          labels(contiguous<const std::uint8_t>(device_map.data(), g), contiguous(found_map.data(), g)));
      EXPECT_EQ(std::memcmp(found.values().data(), expected.data(), 3 * n * sizeof(float)), 0) << height;
      EXPECT_EQ(found_map.values(), expected_map) << height;
    };
    compare(random_hed_jitter{});
    compare(random_affine{.rotate_deg = {180, 0, 0}} | random_hed_jitter{});
  }
}

// A user's operation, which normalizes the stains of some samples.
struct random_normalize {
  std::span<const stain_basis> fitted;
  float probability = .5f;

  static constexpr std::string_view name = "random_normalize";
  static constexpr std::uint16_t kind = 2048;
  macenko_normalize draw(draws&, const site&) const { return {.fitted = fitted}; }
};

// A thread makes four pixels of a row, in one piece where they lie so.
TEST(color_of_planes_device, leaves_the_bits_of_the_cpu_at_every_width) {
  const std::uint64_t ids[] = {3};
  const settings how{.seed = 5, .sample_ids = ids};
  for (const std::int64_t width : {1, 3, 4, 15, 16, 17, 127, 128, 132, 260})
    for (const bool interleaved : {false, true}) {
      const grid g{.extents = {width == 16 ? 20 : 1, 9, width}};
      const auto n = static_cast<std::size_t>(g.voxels());
      std::mt19937 random(7);
      std::vector<std::uint8_t> pixels(3 * n);
      for (auto& v : pixels) v = static_cast<std::uint8_t>(random() % 256);
      const device_array<std::uint8_t> device_pixels(pixels);
      const auto view_of = [&](const std::uint8_t* data) {
        return interleaved ? channels_last(data, g, 3) : contiguous(data, g, 3);
      };
      const auto compare = [&](const auto& on_host, const auto& on_device) {
        std::vector<suture::half> expected(3 * n);
        const device_array<suture::half> found(3 * n);
        const auto out = [&](suture::half* data) {
          return interleaved ? channels_last(data, g, 3) : contiguous(data, g, 3);
        };
        run(cpu{}, plan(on_host, std::vector{g}, how), image(view_of(pixels.data()), out(expected.data())));
        support::device_executor::run(plan(on_device, std::vector{g}, how),
                                      image(view_of(device_pixels.data()), out(found.data())));
        EXPECT_EQ(std::memcmp(found.values().data(), expected.data(), 6 * n), 0) << width;
      };
      std::vector<stain_basis> fitted(1);
      fit(cpu{}, fit_macenko{.least_pixels = 2}, std::vector{view_of(pixels.data())}, everything{}, std::span(fitted));
      for (const std::uint32_t unchanged : {0u, 1u}) {
        fitted[0].unchanged = unchanged;
        const device_array<stain_basis> device_fitted(fitted);
        const auto chain = [](std::span<const stain_basis> b) {
          return macenko::standard.normalize(b) | random_hed_jitter{} | channel_normalize{} | cast<suture::half>{};
        };
        compare(chain(fitted), chain(device_fitted.span()));
      }
      const device_array<stain_basis> device_fitted(fitted);
      for (const float p : {0.f, 1.f})
        compare(random_normalize{fitted, p} | cast<suture::half>{},
                random_normalize{device_fitted.span(), p} | cast<suture::half>{});
      const auto jitter = random_color_jitter{} | random_hed_jitter{} | cast<suture::half>{};
      compare(jitter, jitter);
    }
}

// Pixels of a turned source, four of a row at once: where all their taps lie inside, about its borders and far outside,
// of every layout, in planes and volumes.
template <class Border>
class color_between_pixels_device : public testing::Test {};
using borders = testing::Types<constant, edge, reflect, mirror, wrap>;
TYPED_TEST_SUITE(color_between_pixels_device, borders);

template <class Border, class T, class Turn>
void expect_same_turned(const char* what, const grid& g, const Turn& turn, bool interleaved, std::int64_t padding = 0) {
  SCOPED_TRACE(testing::Message() << what << ", interleaved " << interleaved << ", padding " << padding);
  view<const T> host{nullptr, g, {}, 3, 1};
  const std::int64_t between = interleaved ? 3 + padding : 1 + padding;
  const std::int64_t row = g.extents[2] * between + padding, plane = g.extents[1] * row;
  host.stride = {plane, row, between};
  if (!interleaved) host.channel_stride = g.extents[0] * plane + 5;
  std::vector<T> pixels(static_cast<std::size_t>(g.extents[0] * plane + 2 * host.channel_stride + 8));
  std::mt19937 random(11);
  for (T& v : pixels) v = static_cast<T>(random() % 256);
  const device_array<T> device_pixels(pixels);
  view<const T> device = host;
  host.data = pixels.data() + 1;
  device.data = device_pixels.data() + 1;
  const std::uint64_t ids[] = {3};
  const settings how{.seed = 5, .sample_ids = ids};
  const auto compare = [&](const auto& on_host, const auto& on_device) {
    const auto planned = plan(on_host, std::vector{g}, how);
    const grid made = planned.output_grid(0);
    const auto n = static_cast<std::size_t>(3 * made.voxels());
    std::vector<float> expected(n);
    const device_array<float> found(n);
    run(cpu{}, planned, image(host, contiguous(expected.data(), made, 3)));
    support::device_executor::run(plan(on_device, std::vector{g}, how),
                                  image(device, contiguous(found.data(), made, 3)));
    EXPECT_EQ(std::memcmp(found.values().data(), expected.data(), n * sizeof(float)), 0);
  };
  Border border{};
  if constexpr (Border::has_value) border.value = 245;
  const auto turned = turn | sampling<linear, Border>{.border = border};
  compare(turned | random_hed_jitter{}, turned | random_hed_jitter{});
  stain_basis fitted;
  fit(cpu{}, fit_macenko{.least_pixels = 2}, host, everything{}, std::span(&fitted, 1));
  for (const std::uint32_t unchanged : {0u, 1u}) {
    fitted.unchanged = unchanged;
    const device_array<stain_basis> device_fitted(std::vector{fitted});
    const auto chain = [&](std::span<const stain_basis> b) {
      return turned | macenko::standard.normalize(b) | random_hed_jitter{};
    };
    compare(chain({&fitted, 1}), chain(device_fitted.span()));
  }
}

TYPED_TEST(color_between_pixels_device, leaves_the_bits_of_the_cpu) {
  using level = std::uint8_t;
  const grid plane{.extents = {1, 53, 150}}, volume{.extents = {3, 20, 70}}, large{.extents = {1, 400, 400}};
  const affine turn{.rotate_deg = {20, 0, 0}};
  for (const bool interleaved : {true, false}) {
    for (const double angle : {0., 20., 90., 180., 231.})
      expect_same_turned<TypeParam, level>("turned", plane, affine{.rotate_deg = {angle, 0, 0}}, interleaved);
    for (const double scale : {.01, .3, 3.})
      expect_same_turned<TypeParam, level>("scaled", plane,
                                           affine{.rotate_deg = {20, 0, 0}, .scale = {1, scale, scale}}, interleaved);
    if constexpr (std::is_same_v<TypeParam, reflect>) {
      for (const double step : {62., 90.})  // of places in a row: up to 64 are counted from the first
        expect_same_turned<TypeParam, level>(
            "steps", large, affine{.scale = {1, 1 / step, 1 / step}} | center_crop{{1, 4, 4}}, interleaved);
      expect_same_turned<TypeParam, float>("float", plane, turn, interleaved);
    }
    expect_same_turned<TypeParam, level>("rows apart", plane, turn, interleaved, 2);
    expect_same_turned<TypeParam, level>("volume", volume, affine{.rotate_deg = {20, 10, 5}}, interleaved);
    expect_same_turned<TypeParam, level>("planes of a volume", volume, turn, interleaved);
  }
  expect_same_turned<TypeParam, level>("a row", {.extents = {1, 1, 6}}, turn, true);
  expect_same_turned<TypeParam, level>("a column", {.extents = {1, 6, 1}}, turn, true);
}

TEST(color_fit_device, does_not_show_the_batch_in_its_launches) {
  const device_array<float> values(3 * 5 * 70);
  for (const std::size_t samples : {1, 2, 100}) {
    const std::vector<view<const float>> images(samples,
                                                contiguous<const float>(values.data(), grid{.extents = {1, 5, 70}}, 3));
    const device_array<color_moments<lab>> results(samples);
    const fit_color_moments<lab> how;
    const cuda_workspace workspace(workspace_bytes(how, images));
    EXPECT_EQ(support::launches([&](cudaStream_t stream) {
                fit(cuda{stream, workspace}, how, images, everything{}, results.span());
              }),
              4u)
        << samples;
  }
}

}  // namespace
