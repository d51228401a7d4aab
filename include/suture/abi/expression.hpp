// SPDX-License-Identifier: Apache-2.0
// Value operations that a caller writes as expressions. The type states the expression, and the request has its
// numbers:
//   value<where<compare<less, x, number<0>>, call<plus, x, number<1>>, x>>    x < a ? x + b : x, for numbers a and b
// Each function evaluates its arguments once. Products are computed as fma(a, b, 0), which no compiler contracts with a
// sum, so the bits are the same on every platform.
#pragma once

#include <string_view>

#include "../base/config.hpp"
#include "../base/numeric.hpp"
#include "../math/cube_root.hpp"
#include "../math/elementary.hpp"
#include "../math/error_function.hpp"
#include "reader.hpp"

namespace suture::abi {

namespace expression {

// x is the value of a voxel, number<Index> a number of the request. Every term has float at(float x, const float*
// numbers), its value, and `count`, one more than the largest index that it reads from `numbers`.
struct x {
  static constexpr int count = 0;
  SUTURE_FN static float at(float value, const float*) { return value; }
};
template <int Index>
struct number {
  static_assert(Index >= 0 && Index < 256);
  static constexpr int count = Index + 1;
  SUTURE_FN static float at(float, const float* numbers) { return numbers[Index]; }
};

template <class... Terms>
constexpr int count_of() {
  int most = 0;
  ((most = Terms::count > most ? Terms::count : most), ...);
  return most;
}

struct plus {
  SUTURE_FN static float of(float a, float b) { return a + b; }
};
struct minus {
  SUTURE_FN static float of(float a, float b) { return a - b; }
};
struct times {
  SUTURE_FN static float of(float a, float b) { return suture::fma(a, b, 0.0f); }
};
struct over {
  SUTURE_FN static float of(float a, float b) { return math::detail::divide(a, b); }
};
// Returns b where a or b is NaN, as `greater` does.
struct lesser {
  SUTURE_FN static float of(float a, float b) { return a < b ? a : b; }
};
struct greater {
  SUTURE_FN static float of(float a, float b) { return a > b ? a : b; }
};
// Returns NaN where a is negative, unless b is 0.
struct power {
  SUTURE_FN static float of(float a, float b) { return math::pow(a, b); }
};
struct negative {
  SUTURE_FN static float of(float a) { return -a; }
};
struct magnitude {
  SUTURE_FN static float of(float a) { return float_from_bits(float_bits(a) & 0x7fffffffu); }
};
struct square_root {
  SUTURE_FN static float of(float a) { return math::sqrt(a); }
};
struct cube_root {
  SUTURE_FN static float of(float a) { return math::cbrt(a); }
};
struct exponential {
  SUTURE_FN static float of(float a) { return math::exp(a); }
};
struct exponential2 {
  SUTURE_FN static float of(float a) { return math::exp2(a); }
};
struct logarithm {
  SUTURE_FN static float of(float a) { return math::log(a); }
};
struct logarithm2 {
  SUTURE_FN static float of(float a) { return math::log2(a); }
};
struct sine {
  SUTURE_FN static float of(float a) { return math::sin(a); }
};
struct cosine {
  SUTURE_FN static float of(float a) { return math::cos(a); }
};
struct error_function {
  SUTURE_FN static float of(float a) { return math::erf(a); }
};

// Applies a function or a comparison to one or two terms.
template <class Function, class... Terms>
struct call {
  static constexpr int count = count_of<Terms...>();
  SUTURE_FN static auto at(float value, const float* numbers) { return Function::of(Terms::at(value, numbers)...); }
};

// Computes a^Exponent by repeated squaring, from the highest binary digit of |Exponent| down. A negative exponent gives
// the reciprocal of that power.
template <class Term, int Exponent>
struct whole_power {
  static_assert(Exponent >= -64 && Exponent <= 64);
  static constexpr int count = Term::count;
  SUTURE_FN static float at(float value, const float* numbers) {
    const float a = Term::at(value, numbers);
    constexpr int magnitude = Exponent < 0 ? -Exponent : Exponent;
    if constexpr (magnitude == 0) {
      return 1.0f;
    } else {
      const float product = of<magnitude>(a);
      return Exponent < 0 ? math::detail::divide(1.0f, product) : product;
    }
  }

private:
  template <int N>
  SUTURE_FN static float of(float a) {
    if constexpr (N == 1) {
      return a;
    } else {
      const float half = of<N / 2>(a);
      const float square = times::of(half, half);
      return N % 2 == 0 ? square : times::of(square, a);
    }
  }
};

// A condition has bool at(float x, const float* numbers) and `count`, as a term has.
struct less {
  SUTURE_FN static bool of(float a, float b) { return a < b; }
};
struct less_equal {
  SUTURE_FN static bool of(float a, float b) { return a <= b; }
};
struct more {
  SUTURE_FN static bool of(float a, float b) { return a > b; }
};
struct more_equal {
  SUTURE_FN static bool of(float a, float b) { return a >= b; }
};
struct equal {
  SUTURE_FN static bool of(float a, float b) { return a == b; }
};
struct unequal {
  SUTURE_FN static bool of(float a, float b) { return a != b; }
};
template <class Comparison, class A, class B>
using compare = call<Comparison, A, B>;
template <class... Conditions>
struct all_of {
  static constexpr int count = count_of<Conditions...>();
  SUTURE_FN static bool at(float value, const float* numbers) { return (Conditions::at(value, numbers) && ...); }
};
template <class... Conditions>
struct any_of {
  static constexpr int count = count_of<Conditions...>();
  SUTURE_FN static bool at(float value, const float* numbers) { return (Conditions::at(value, numbers) || ...); }
};
template <class Condition>
struct not_of {
  static constexpr int count = Condition::count;
  SUTURE_FN static bool at(float value, const float* numbers) { return !Condition::at(value, numbers); }
};

template <class Condition, class Then, class Otherwise>
struct where {
  static constexpr int count = count_of<Condition, Then, Otherwise>();
  SUTURE_FN static float at(float value, const float* numbers) {
    return Condition::at(value, numbers) ? Then::at(value, numbers) : Otherwise::at(value, numbers);
  }
};

}  // namespace expression

// The value operation of an expression. A request passes at least one number for it, so that `numbers` is never empty.
template <class Term>
struct value {
  static constexpr std::string_view name = "value";
  static constexpr bool depends_on_grid_alone = true;
  static constexpr int count = Term::count > 0 ? Term::count : 1;

  float numbers[count] = {};

  SUTURE_FN float operator()(float x) const { return Term::at(x, numbers); }
};

template <class Term>
struct codec<value<Term>> {
  static value<Term> read(reader& r, std::string_view) {
    value<Term> made;
    for (float& number : made.numbers) number = r.next<float>("numbers");
    return made;
  }
};

// An operation of a user's header. A request passes the listed members, which are floats; other members keep their
// defaults.
template <class Operation, float Operation::*... Members>
struct own : Operation {};
template <class Operation, float Operation::*... Members>
struct codec<own<Operation, Members...>> {
  static own<Operation, Members...> read(reader& r, std::string_view) {
    own<Operation, Members...> made{};
    ((made.*Members = r.next<float>("parameters")), ...);
    return made;
  }
};

}  // namespace suture::abi
