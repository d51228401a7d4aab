// SPDX-License-Identifier: Apache-2.0
// Storage types against rules stated independently: a search for the nearest value in a table, the compiler's own
// 16-bit float, and rounding in double. Squares are transposed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <suture/base/numeric.hpp>
#include <suture/base/simd.hpp>
#include <type_traits>
#include <vector>

namespace {

using suture::bfloat16;
using suture::half;
using suture::storage;

constexpr float infinity = std::numeric_limits<float>::infinity();

// The float values a test visits: every 4093rd of all bit patterns, and the neighbors of whatever it names.
template <class Visit>
void for_many_floats(Visit visit) {
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4093)
    visit(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (const float x : {0.0f, -0.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()})
    visit(x);
}

// A 16-bit format of `mantissa` mantissa bits: value k of the table is what the bits k mean, in ascending order.
std::vector<double> values_of_format(int mantissa) {
  const int exponents = 1 << (15 - mantissa), bias = exponents / 2 - 1;
  std::vector<double> values;
  for (int exponent = 0; exponent < exponents - 1; ++exponent)
    for (int m = 0; m < 1 << mantissa; ++m)
      values.push_back(exponent == 0 ? std::ldexp(m, 1 - bias - mantissa)
                                     : std::ldexp(m + (1 << mantissa), exponent - bias - mantissa));
  values.push_back(std::ldexp(1, exponents - 1 - bias));  // infinity takes the place of the next power of two
  return values;
}

std::uint16_t nearest_in(const std::vector<double>& values, float x) {
  if (std::isnan(x)) return 0x7fff;
  const int sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(x));
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  int k = static_cast<int>(above - values.begin());
  if (above == values.end()) {
    k = static_cast<int>(values.size()) - 1;
  } else if (k > 0) {
    const double up = *above - magnitude, down = magnitude - *(above - 1);
    if (down < up || (down == up && k % 2 == 1)) --k;
  }
  return static_cast<std::uint16_t>(sign | k);
}

struct half_format {
  using type = half;
  static constexpr int mantissa = 10;
};
struct bfloat16_format {
  using type = bfloat16;
  static constexpr int mantissa = 7;
};

template <class Format>
class sixteen_bit_float : public testing::Test {};
using formats = testing::Types<half_format, bfloat16_format>;
TYPED_TEST_SUITE(sixteen_bit_float, formats);

TYPED_TEST(sixteen_bit_float, every_value_loads_exactly_and_returns) {
  using T = typename TypeParam::type;
  const std::vector<double> values = values_of_format(TypeParam::mantissa);
  const unsigned infinity_bits = static_cast<unsigned>(values.size()) - 1;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const unsigned magnitude = bits & 0x7fffu;
    const float loaded = storage<T>::load({static_cast<std::uint16_t>(bits)});
    // What a caller's `float x = value` gives.
    const float converted = T{static_cast<std::uint16_t>(bits)};
    ASSERT_EQ(std::bit_cast<std::uint32_t>(converted), std::bit_cast<std::uint32_t>(loaded)) << bits;
    const unsigned returned = storage<T>::store(loaded).bits;
    if (magnitude > infinity_bits) {
      ASSERT_TRUE(std::isnan(loaded)) << bits;
      ASSERT_EQ(returned, 0x7fffu) << bits;
      continue;
    }
    ASSERT_EQ(std::signbit(loaded), bits >= 0x8000u) << bits;
    ASSERT_EQ(std::abs(static_cast<double>(loaded)),
              magnitude == infinity_bits ? std::numeric_limits<double>::infinity() : values[magnitude])
        << bits;
    ASSERT_EQ(returned, bits);
  }
}

TYPED_TEST(sixteen_bit_float, stores_the_nearest_value_ties_to_even) {
  using T = typename TypeParam::type;
  const std::vector<double> values = values_of_format(TypeParam::mantissa);
  for_many_floats([&](float x) { ASSERT_EQ(storage<T>::store(x).bits, nearest_in(values, x)) << std::hexfloat << x; });
  // Every tie and its neighbors.
  for (std::size_t k = 1; k < values.size(); ++k) {
    const float tie = static_cast<float>(0.5 * (values[k - 1] + values[k]));
    for (const float x : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, infinity)}) {
      ASSERT_EQ(storage<T>::store(x).bits, nearest_in(values, x)) << std::hexfloat << x;
      ASSERT_EQ(storage<T>::store(-x).bits, nearest_in(values, -x)) << std::hexfloat << -x;
    }
  }
}

TEST(half, known_values) {
  const auto stored = [](float x) { return storage<half>::store(x).bits; };
  EXPECT_EQ(stored(1.0f), 0x3c00);
  EXPECT_EQ(stored(-2.0f), 0xc000);
  EXPECT_EQ(stored(65504.0f), 0x7bff);
  EXPECT_EQ(stored(65519.99f), 0x7bff);
  EXPECT_EQ(stored(65520.0f), 0x7c00);
  EXPECT_EQ(stored(-1e30f), 0xfc00);
  EXPECT_EQ(stored(0x1p-24f), 0x0001);
  EXPECT_EQ(stored(0x1p-25f), 0x0000);
  EXPECT_EQ(stored(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(stored(-0x1p-26f), 0x8000);
  EXPECT_EQ(stored(0x1.ffcp-15f), 0x0400);  // rounds up into the normal numbers
  EXPECT_EQ(stored(std::numeric_limits<float>::quiet_NaN()), 0x7fff);
  EXPECT_EQ(stored(-std::numeric_limits<float>::quiet_NaN()), 0x7fff);
}

TEST(bfloat16, known_values) {
  const auto stored = [](float x) { return storage<bfloat16>::store(x).bits; };
  EXPECT_EQ(stored(1.0f), 0x3f80);
  EXPECT_EQ(stored(0x1.01p0f), 0x3f80);  // tie, down to even
  EXPECT_EQ(stored(0x1.03p0f), 0x3f82);  // tie, up to even
  EXPECT_EQ(stored(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(stored(-infinity), 0xff80);
  EXPECT_EQ(stored(std::numeric_limits<float>::quiet_NaN()), 0x7fff);
}

#if defined(__FLT16_MAX__)
TEST(half, converts_as_the_compilers_own) {
  for (unsigned bits = 0; bits <= 0xffffu; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(pattern));
    const float converted = half{pattern};
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(converted)) << bits;
    else
      ASSERT_EQ(std::bit_cast<std::uint32_t>(converted), std::bit_cast<std::uint32_t>(expected)) << bits;
  }
}

TEST(half, agrees_with_the_compilers_own) {
  for_many_floats([](float x) {
    if (std::isnan(x)) return;
    ASSERT_EQ(storage<half>::store(x).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)))
        << std::hexfloat << x;
  });
}
#endif

template <class T>
class integer_storage : public testing::Test {};
using integers = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>;
TYPED_TEST_SUITE(integer_storage, integers);

// Rounded by the processor in double, where every float and every bound is exact.
template <class T>
T nearest_integer(float x) {
  if (std::isnan(x)) return 0;
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = static_cast<double>(std::numeric_limits<T>::max());
  return static_cast<T>(std::clamp(std::nearbyint(static_cast<double>(x)), low, high));
}

TYPED_TEST(integer_storage, stores_the_nearest_integer_ties_to_even_saturating) {
  for_many_floats(
      [](float x) { ASSERT_EQ(storage<TypeParam>::store(x), nearest_integer<TypeParam>(x)) << std::hexfloat << x; });
  // Every half step and its neighbors across the 16-bit ranges, and around powers of two beyond.
  std::vector<double> centers;
  for (int k = -140000; k <= 140000; ++k) centers.push_back(0.5 * k);
  for (int e = 17; e < 34; ++e)
    for (int k = -8; k <= 8; ++k) centers.push_back(std::ldexp(1, e) + 0.5 * k);
  for (const double center : centers)
    for (const float sign : {1.0f, -1.0f}) {
      const float at = sign * static_cast<float>(center);
      for (const float x : {std::nextafter(at, -infinity), at, std::nextafter(at, infinity)})
        ASSERT_EQ(storage<TypeParam>::store(x), nearest_integer<TypeParam>(x)) << std::hexfloat << x;
    }
}

TYPED_TEST(integer_storage, limits) {
  using limits = std::numeric_limits<TypeParam>;
  EXPECT_EQ(storage<TypeParam>::store(infinity), limits::max());
  EXPECT_EQ(storage<TypeParam>::store(-infinity), limits::min());
  EXPECT_EQ(storage<TypeParam>::store(0x1p40f), limits::max());
  EXPECT_EQ(storage<TypeParam>::store(-0x1p40f), limits::min());
  EXPECT_EQ(storage<TypeParam>::store(std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(storage<TypeParam>::store(-std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(storage<TypeParam>::store(0.5f), 0);
  EXPECT_EQ(storage<TypeParam>::store(1.5f), 2);
  EXPECT_EQ(storage<TypeParam>::store(2.5f), 2);
}

TYPED_TEST(integer_storage, every_16_bit_value_loads_exactly_and_returns) {
  using limits = std::numeric_limits<TypeParam>;
  const std::int64_t low = std::max<std::int64_t>(limits::min(), -65536);
  const std::int64_t high = std::min<std::int64_t>(limits::max(), 65536);
  for (std::int64_t k = low; k <= high; ++k) {
    const float loaded = storage<TypeParam>::load(static_cast<TypeParam>(k));
    ASSERT_EQ(static_cast<double>(loaded), static_cast<double>(k));
    ASSERT_EQ(storage<TypeParam>::store(loaded), k);
  }
}

TEST(int32, loads_the_nearest_float) {
  EXPECT_EQ(storage<std::int32_t>::load(1 << 24), 16777216.0f);
  EXPECT_EQ(storage<std::int32_t>::load((1 << 24) + 1), 16777216.0f);  // ties to even
  EXPECT_EQ(storage<std::int32_t>::load((1 << 24) + 3), 16777220.0f);
  EXPECT_EQ(storage<std::int32_t>::load(INT32_MAX), 2147483648.0f);
  EXPECT_EQ(storage<std::int32_t>::load(INT32_MIN), -2147483648.0f);
}

TEST(int32, saturates_where_the_range_ends) {
  EXPECT_EQ(storage<std::int32_t>::store(2147483520.0f), 2147483520);
  EXPECT_EQ(storage<std::int32_t>::store(2147483648.0f), INT32_MAX);
  EXPECT_EQ(storage<std::int32_t>::store(-2147483648.0f), INT32_MIN);
  EXPECT_EQ(storage<std::int32_t>::store(-2147483904.0f), INT32_MIN);
  EXPECT_EQ(storage<std::int32_t>::store(8388607.5f), 8388608);
  EXPECT_EQ(storage<std::int32_t>::store(-8388606.5f), -8388606);
}

TEST(float32, keeps_everything_but_the_payload_of_nan) {
  for_many_floats([](float x) {
    const std::uint32_t stored = std::bit_cast<std::uint32_t>(storage<float>::store(storage<float>::load(x)));
    ASSERT_EQ(stored, std::isnan(x) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(x)) << std::hexfloat << x;
  });
}

TEST(storage_types, are_named_and_listed) {
  EXPECT_EQ(suture::storage_name<std::int8_t>(), "int8");
  EXPECT_EQ(suture::storage_name<std::uint8_t>(), "uint8");
  EXPECT_EQ(suture::storage_name<std::int16_t>(), "int16");
  EXPECT_EQ(suture::storage_name<std::uint16_t>(), "uint16");
  EXPECT_EQ(suture::storage_name<std::int32_t>(), "int32");
  EXPECT_EQ(suture::storage_name<float>(), "float32");
  EXPECT_EQ(suture::storage_name<half>(), "float16");
  EXPECT_EQ(suture::storage_name<bfloat16>(), "bfloat16");
  EXPECT_TRUE(suture::is_image_storage_v<half>);
  EXPECT_FALSE(suture::is_image_storage_v<double>);
  EXPECT_FALSE(suture::is_image_storage_v<std::int64_t>);
  EXPECT_EQ(sizeof(half), 2u);
  EXPECT_EQ(sizeof(bfloat16), 2u);
  EXPECT_TRUE(std::is_trivially_copyable_v<half> && std::is_trivially_copyable_v<bfloat16>);
}

template <class T>
void expect_columns() {
  constexpr int count = 16;
  T from[count][count], to[count][count];
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) from[i][j] = static_cast<T>(count * i + j);
  suture::detail::simd::transpose(from, to);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) EXPECT_EQ(to[j][i], static_cast<T>(count * i + j)) << i << " " << j;
}

TEST(Simd, RowsBecomeColumns) {
  expect_columns<float>();
  expect_columns<std::int32_t>();
  expect_columns<std::uint16_t>();
  expect_columns<std::uint8_t>();
}

}  // namespace
