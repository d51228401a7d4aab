// SPDX-License-Identifier: Apache-2.0
// Storage types and value functors give the same bits in a kernel as on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <suture/base/numeric_cuda.cuh>
#include <suture/ops/value/brightness.hpp>
#include <suture/ops/value/cast.hpp>
#include <suture/ops/value/clamp.hpp>
#include <suture/ops/value/contrast.hpp>
#include <suture/ops/value/gamma.hpp>
#include <suture/ops/value/gaussian_noise.hpp>
#include <suture/ops/value/invert.hpp>
#include <suture/ops/value/rescale.hpp>
#include <suture/ops/value/rician_noise.hpp>
#include <suture/ops/value/scale_intensity.hpp>
#include <suture/ops/value/window.hpp>
#include <type_traits>
#include <vector>

#include "support/device_array.cuh"

namespace {

using support::device_array;

const suture::site here{"device"};
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

suture::voxel at_element(std::uint64_t element) { return {0, 0, 0, 0, 0, element, 0}; }

template <class F, class In, class Out>
__global__ void apply(F f, const In* in, Out* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  if constexpr (std::is_invocable_v<F, In, suture::voxel>) {
    out[i] = f(in[i], {0, 0, 0, 0, 0, static_cast<std::uint64_t>(i), 0});
  } else {
    out[i] = f(in[i]);
  }
}

template <class Out, class F, class In>
std::vector<Out> on_device(const F& f, const std::vector<In>& in) {
  const int n = static_cast<int>(in.size());
  const device_array<In> from(in);
  device_array<Out> to(in.size());
  apply<<<(n + 127) / 128, 128>>>(f, from.data(), to.data(), n);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return to.values();
}

// Stored intensities, the neighborhood of zero and one, and a stride over all floats.
std::vector<float> grid_of_values() {
  std::vector<float> values{0.0f, -0.0f, infinity, -infinity, not_a_number, -not_a_number, 0x1p-149f, -0x1p-149f};
  for (int hu = -1100; hu <= 3100; hu += 3) values.push_back(static_cast<float>(hu));
  for (int k = -1500; k <= 3000; ++k) values.push_back(static_cast<float>(k) / 1000);
  for (int k = -1030; k <= 1030; ++k) values.push_back(0.25f * static_cast<float>(k));  // ties
  for (const float edge : {0.0f, 1.0f, -160.0f, 240.0f, 39.5f, 127.0f, 255.0f, 32767.0f, 65535.0f, 65520.0f, 0x1p31f})
    for (const float x : {edge, -edge}) {
      values.push_back(std::nextafter(x, infinity));
      values.push_back(std::nextafter(x, -infinity));
      values.push_back(x + 0.5f);
    }
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 300007)
    values.push_back(suture::float_from_bits(static_cast<std::uint32_t>(bits)));
  return values;
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// float results in flight: the bits of NaN are settled when they are stored.
bool same_value(float a, float b) {
  return same_bits(suture::storage<float>::store(a), suture::storage<float>::store(b));
}

template <class F>
void expect_same_values(const F& f, const char* name) {
  const std::vector<float> in = grid_of_values();
  const std::vector<float> out = on_device<float>(f, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    float expected;
    if constexpr (std::is_invocable_v<F, float, suture::voxel>) {
      expected = f(in[i], at_element(i));
    } else {
      expected = f(in[i]);
    }
    ASSERT_TRUE(same_value(out[i], expected))
        << name << '(' << std::hexfloat << in[i] << ") = " << out[i] << ", host " << expected;
  }
}

TEST(value_device, windows_and_ranges) {
  using suture::voi_function;
  const auto linear = voi_function::linear;
  expect_same_values(suture::window{.center = 40, .width = 400}.prepare(here), "window");
  expect_same_values(suture::window{.center = 40, .width = 400, .low = -1, .high = 0}.prepare(here), "window below 0");
  expect_same_values(suture::window{.center = .3f, .width = .7f, .low = .1f, .high = .9f}.prepare(here),
                     "narrow window");
  expect_same_values(suture::window{.center = 40, .width = 1, .function = linear}.prepare(here), "step");
  expect_same_values(suture::window{.center = .5f, .width = 1, .function = linear}.prepare(here), "step at 0");
  expect_same_values(suture::sigmoid_window{.center = 40, .width = 400, .low = 0, .high = 255}.prepare(here),
                     "sigmoid");
  expect_same_values(suture::scale_intensity{.a_min = -57, .a_max = 164}.prepare(here), "scale");
  expect_same_values(suture::scale_intensity{.a_min = -57, .a_max = 164, .clip = true}.prepare(here), "scale and clip");
  expect_same_values(suture::rescale{.slope = 1.5f, .intercept = -1024}, "rescale");
  expect_same_values(suture::clamp{.low = 0, .high = 1}.prepare(here), "clamp");
  expect_same_values(suture::clamp{.low = -1, .high = -0.0f}.prepare(here), "clamp below 0");
  expect_same_values(suture::clamp{.low = -0.0f, .high = infinity}.prepare(here), "clamp above 0");
  expect_same_values(suture::invert{.pivot = .5f}.prepare(here), "invert");
}

TEST(value_device, gamma_contrast_and_brightness) {
  expect_same_values(suture::gamma{.exponent = .7f}.prepare(here), "gamma .7");
  expect_same_values(suture::gamma{.exponent = 1.5f, .range = {-160, 240}}.prepare(here), "gamma 1.5");
  expect_same_values(suture::contrast{.factor = 1.25f, .pivot = .5f}, "contrast");
  expect_same_values(suture::brightness{.offset = .1f}, "brightness");
  expect_same_values(suture::brightness_factor{.factor = -1.2f}, "brightness_factor");
}

TEST(value_device, noise) {
  suture::draws random(42, 7, 3, 1);
  expect_same_values(suture::gaussian_noise{.sigma = .02f, .mean = .1f}.draw(random, here), "gaussian_noise");
  expect_same_values(suture::rician_noise{.sigma = .02f, .mean = .1f}.draw(random, here), "rician_noise");
}

template <class T>
struct load {
  SUTURE_FN float operator()(T v) const { return suture::storage<T>::load(v); }
};

template <class T>
class storage_device : public testing::Test {};
using stored_types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, float,
                                    suture::half, suture::bfloat16>;
TYPED_TEST_SUITE(storage_device, stored_types);

TYPED_TEST(storage_device, stores_the_same_bits) {
  const std::vector<float> in = grid_of_values();
  const auto out = on_device<TypeParam>(suture::cast<TypeParam>{}, in);
  for (std::size_t i = 0; i < in.size(); ++i)
    ASSERT_TRUE(same_bits(out[i], suture::cast<TypeParam>{}(in[i]))) << std::hexfloat << in[i];
}

TYPED_TEST(storage_device, loads_the_same_values) {
  std::vector<TypeParam> in;
  for (std::uint32_t k = 0; k < 65536; k += 1) {
    const std::uint32_t bits = sizeof(TypeParam) == 4 ? k * 65537u : k;
    TypeParam value;
    std::memcpy(&value, &bits, sizeof(TypeParam));
    in.push_back(value);
  }
  const auto out = on_device<float>(load<TypeParam>{}, in);
  for (std::size_t i = 0; i < in.size(); ++i)
    ASSERT_TRUE(same_value(out[i], suture::storage<TypeParam>::load(in[i]))) << i;
}

// CUDA's 16-bit floats are suture's under another name.
template <class Cuda, class Own>
void expect_twin() {
  const std::vector<float> in = grid_of_values();
  const auto stored = on_device<Cuda>(suture::cast<Cuda>{}, in);
  const auto loaded = on_device<float>(load<Cuda>{}, stored);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Own own = suture::storage<Own>::store(in[i]);
    const Cuda host = suture::storage<Cuda>::store(in[i]);
    ASSERT_EQ(std::memcmp(&stored[i], &own, sizeof own), 0) << std::hexfloat << in[i];
    ASSERT_EQ(std::memcmp(&host, &own, sizeof own), 0) << std::hexfloat << in[i];
    ASSERT_TRUE(same_value(loaded[i], suture::storage<Own>::load(own))) << std::hexfloat << in[i];
    ASSERT_TRUE(same_value(suture::storage<Cuda>::load(host), suture::storage<Own>::load(own)));
  }
  EXPECT_EQ(suture::storage_name<Cuda>(), suture::storage_name<Own>());
}

TEST(storage_device_cuda, half_is_half) { expect_twin<__half, suture::half>(); }
TEST(storage_device_cuda, bfloat16_is_bfloat16) { expect_twin<__nv_bfloat16, suture::bfloat16>(); }

}  // namespace
