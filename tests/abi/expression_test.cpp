// SPDX-License-Identifier: Apache-2.0
// Expressions as types: each term against the arithmetic that it stands for, and whole powers against long double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "suture/abi/expression.hpp"

namespace suture::abi::expression {
namespace {

const float values[] = {-1000, -2.5f, -1, -0.0f, 0, 1e-30f, .5f, 1, 3, 77.25f, 1e30f};

template <class Term>
float made(float value, std::initializer_list<float> numbers = {}) {
  abi::value<Term> op;
  std::copy(numbers.begin(), numbers.end(), op.numbers);
  return op(value);
}

TEST(Expression, ReadsAsManyNumbersAsItNames) {
  static_assert(abi::value<x>::count == 1 && abi::value<call<plus, x, number<3>>>::count == 4);
  static_assert(where<compare<less, x, number<0>>, number<5>, x>::count == 6);
  for (const float v : values) EXPECT_EQ((made<call<plus, x, number<1>>>(v, {100, 2})), v + 2);
}

TEST(Expression, IsTheArithmeticThatItNames) {
  for (const float v : values) {
    EXPECT_EQ((made<call<minus, x, number<0>>>(v, {3})), v - 3);
    EXPECT_EQ((made<call<times, x, number<0>>>(v, {3})), v * 3);
    EXPECT_EQ((made<call<over, x, number<0>>>(v, {3})), v / 3);
    EXPECT_EQ((made<call<negative, x>>(v)), -v);
    EXPECT_EQ((made<call<magnitude, x>>(v)), std::abs(v));
    EXPECT_EQ((made<call<square_root, call<magnitude, x>>>(v)), std::sqrt(std::abs(v)));
    EXPECT_EQ((made<call<lesser, x, number<0>>>(v, {3})), std::min(v, 3.0f));
    EXPECT_EQ((made<call<greater, x, number<0>>>(v, {3})), std::max(v, 3.0f));
    EXPECT_EQ((made<where<compare<more, x, number<0>>, number<1>, number<2>>>(v, {0, 5, 6})), v > 0 ? 5 : 6);
    EXPECT_EQ((made<where<all_of<compare<more_equal, x, number<0>>, compare<less_equal, x, number<1>>>, number<1>, x>>(
                  v, {0, 5})),
              v >= 0 && v <= 5 ? 5 : v);
    EXPECT_EQ((made<where<any_of<compare<equal, x, number<0>>, compare<unequal, x, x>>, number<1>, x>>(v, {3, 9})),
              v == 3 ? 9 : v);
    EXPECT_EQ((made<where<not_of<compare<less, x, number<0>>>, x, number<0>>>(v, {3})), v < 3 ? 3 : v);
  }
}

TEST(Expression, MagnitudeOfMinusZeroIsZero) {
  EXPECT_EQ((made<call<over, number<0>, call<magnitude, x>>>(-0.0f, {1})), std::numeric_limits<float>::infinity());
  EXPECT_EQ((made<call<magnitude, x>>(-std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
}

TEST(Expression, MinAndMaxTakeTheSecondBesideNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ((made<call<lesser, x, number<0>>>(nan, {3})), 3);
  EXPECT_EQ((made<call<greater, x, number<0>>>(nan, {3})), 3);
  EXPECT_TRUE(std::isnan(made<call<lesser, number<0>, x>>(nan, {3})));
}

TEST(Expression, WholePowersAreProducts) {
  for (const float v : values) {
    EXPECT_EQ((made<whole_power<x, 0>>(v)), 1);
    EXPECT_EQ((made<whole_power<x, 1>>(v)), v);
    EXPECT_EQ((made<whole_power<x, 2>>(v)), v * v);
    EXPECT_EQ((made<whole_power<x, 3>>(v)), v * v * v);
    EXPECT_EQ((made<whole_power<x, -1>>(v)), 1 / v);
    const auto near = [&]<int N>(std::integral_constant<int, N>) {
      const float exact = static_cast<float>(std::pow(static_cast<long double>(v), N));
      const float got = made<whole_power<x, N>>(v);
      if (std::isinf(exact) || std::abs(exact) < std::numeric_limits<float>::min()) return;  // a product may end there
      EXPECT_NEAR(got, exact, std::abs(exact) * 64 * 6e-8f) << v << "^" << N;
    };
    near(std::integral_constant<int, 5>{});
    near(std::integral_constant<int, 7>{});
    near(std::integral_constant<int, 12>{});
    near(std::integral_constant<int, 64>{});
  }
  EXPECT_TRUE(std::isnan(made<call<power, x, number<0>>>(-2, {2})));  // of an exponent that may change
}

// An argument that is written once is computed once, whatever is around it: forty magnitudes are forty terms.
template <int N>
struct nested {
  using type = call<magnitude, typename nested<N - 1>::type>;
};
template <>
struct nested<0> {
  using type = x;
};
TEST(Expression, NestsWithoutGrowing) { EXPECT_EQ(made<nested<40>::type>(-3), 3); }

}  // namespace
}  // namespace suture::abi::expression
