// SPDX-License-Identifier: Apache-2.0
// Every elementary function gives the same bits on the device as on the host.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "support/device_array.cuh"
#include "suture/math/elementary.hpp"
#include "suture/rng/philox.hpp"

namespace {

namespace math = suture::math;

// Arguments from all over the domain: the bits of counters one stride apart, and of Philox words.
SUTURE_FN float any_float(std::uint32_t i) { return suture::bit_cast<float>(i * 16411u); }
SUTURE_FN double any_double(std::uint32_t i) {
  const suture::philox_block w = suture::philox4x32({{i, 0, 0, 0}}, {{1, 2}});
  // Every fourth of any size, the others around one.
  const std::uint64_t bits = (std::uint64_t{w[0]} << 32) | w[1];
  return (i & 3u) == 0 ? suture::bit_cast<double>(bits)
                       : static_cast<double>(static_cast<std::int32_t>(w[2])) * 0x1p-24;
}

#define SUTURE_UNARY(name, result, argument)                                               \
  struct name##_of {                                                                       \
    SUTURE_FN result operator()(std::uint32_t i) const { return math::name(argument(i)); } \
  };
#define SUTURE_UNARY_DOUBLE(name)                                                            \
  struct name##_double_of {                                                                  \
    SUTURE_FN double operator()(std::uint32_t i) const { return math::name(any_double(i)); } \
  };
SUTURE_UNARY(log2, float, any_float)
SUTURE_UNARY(log, float, any_float)
SUTURE_UNARY(exp2, float, any_float)
SUTURE_UNARY(exp, float, any_float)
SUTURE_UNARY(sqrt, float, any_float)
SUTURE_UNARY(sin, float, any_float)
SUTURE_UNARY(cos, float, any_float)
SUTURE_UNARY(sinpi, float, any_float)
SUTURE_UNARY(cospi, float, any_float)
SUTURE_UNARY(erf, float, any_float)
SUTURE_UNARY(cbrt, float, any_float)
SUTURE_UNARY_DOUBLE(sin)
SUTURE_UNARY_DOUBLE(cos)
SUTURE_UNARY_DOUBLE(tan)
SUTURE_UNARY_DOUBLE(exp)
SUTURE_UNARY_DOUBLE(log)
SUTURE_UNARY_DOUBLE(sqrt)

struct pow_of {
  SUTURE_FN float operator()(std::uint32_t i) const {
    const suture::philox_block w = suture::philox4x32({{i, 0, 0, 0}}, {{3, 4}});
    const float x = suture::bit_cast<float>((i & 1u) != 0 ? w[0] : w[0] >> 1);
    const float y =
        (i & 2u) != 0 ? suture::bit_cast<float>(w[1]) : static_cast<float>(static_cast<std::int32_t>(w[1])) * 0x1p-28f;
    return math::pow(x, y);
  }
};

struct atan2_of {
  SUTURE_FN float operator()(std::uint32_t i) const {
    const suture::philox_block w = suture::philox4x32({{i, 0, 0, 0}}, {{5, 6}});
    if ((i & 1u) != 0) return math::atan2(suture::bit_cast<float>(w[0]), suture::bit_cast<float>(w[1]));
    return math::atan2(static_cast<float>(static_cast<std::int32_t>(w[0])),
                       static_cast<float>(static_cast<std::int32_t>(w[1])));
  }
};

template <class Function, class T>
__global__ void evaluate(Function function, T* out, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = function(i);
}

template <class Function>
class SameBits : public ::testing::Test {};

using functions = ::testing::Types<log2_of, log_of, exp2_of, exp_of, pow_of, sqrt_of, sin_of, cos_of, sinpi_of,
                                   cospi_of, atan2_of, erf_of, cbrt_of, sin_double_of, cos_double_of, tan_double_of,
                                   exp_double_of, log_double_of, sqrt_double_of>;
TYPED_TEST_SUITE(SameBits, functions);

TYPED_TEST(SameBits, OnHostAndDevice) {
  using T = decltype(TypeParam{}(0u));
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr std::uint32_t count = 1u << 18;
  const support::device_array<T> out(count);
  evaluate<<<count / 256, 256>>>(TypeParam{}, out.data(), count);
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  const std::vector<T> device = out.values();
  std::uint32_t numbers = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const T host = TypeParam{}(i);
    if (std::isnan(host)) {  // whose bits IEEE 754 leaves open
      ASSERT_TRUE(std::isnan(device[i])) << i;
      continue;
    }
    ++numbers;
    ASSERT_EQ(suture::bit_cast<bits>(device[i]), suture::bit_cast<bits>(host)) << i << ": " << device[i] << ' ' << host;
  }
  EXPECT_GT(numbers, count / 4);
}

}  // namespace
