// SPDX-License-Identifier: Apache-2.0
// Bias fields of MRI: a smooth factor over the image, exp of a polynomial.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../image/grid.hpp"
#include "../../math/exponential.hpp"
#include "../common/interval.hpp"

namespace suture {

// The polynomials a bias field is a sum of, each -1 .. 1 where its coordinate is:
//   legendre   P_i(Z) P_j(Y) P_k(X), as in MONAI
//   monomial   Z^i Y^j X^k, as in TorchIO
enum class bias_basis { legendre, monomial };

namespace detail {

inline constexpr int most_bias_degree = 5;
inline constexpr int most_bias_terms = 56;  // i + j + k <= 5

// The polynomial in monomials, whatever basis it was given in, in the order of Horner's scheme along x, y, z.
struct bias_functor {
  // Four coefficients, which a device reads at once.
  struct alignas(16) quadruple {
    float c[4];
  };
  quadruple terms[most_bias_terms / 4];  // from the highest powers down, that of z fastest and that of x slowest
  float start[3], step[3];               // the coordinate of an index is start + step index
  std::int32_t degree;                   // at least 3, so that the most common degrees have one size
  std::uint32_t planar;                  // in y and x alone, with all products of their powers

  SUTURE_FN float operator()(float value, const voxel& at) const {
    return degree == 3 ? at_voxel<3>(value, at) : at_voxel<any>(value, at);
  }

  // operator() for voxels side by side along x, which share the polynomial in x.
  template <int Count>
  SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const {
    if (degree == 3)
      at_row<3>(values, first);
    else if (degree == 4)
      at_row<4>(values, first);
    else
      at_row<5>(values, first);
  }

  // operator() for voxels side by side along any axis. Rows along x are preferred where transposing takes less time
  // than the polynomials of all voxels.
  bool needs_strips_along_x() const { return degree > 3 || planar; }
  template <int Count>
  SUTURE_INLINE void apply_line(float (&values)[Count], const voxel& first, int axis, std::uint64_t) const {
    if (axis == 0)
      at_line<3, 0>(values, first);
    else if (axis == 1)
      at_line<3, 1>(values, first);
    else
      at_row<3>(values, first);
  }

private:
  static constexpr int any = 0;  // a degree known at run time

  // Unrolled loops read a whole quadruple once.
  template <int Degree>
  SUTURE_FN float term(int term_index) const {
    if constexpr (Degree == any) return terms[term_index / 4].c[term_index % 4];
    const quadruple q = terms[term_index / 4];
    return q.c[term_index % 4];
  }

  SUTURE_FN float coordinate(int axis, std::int32_t index) const {
    return fma(static_cast<float>(index), step[axis], start[axis]);
  }

  // Calls take(k, coefficient of X^k) for the polynomial of the row, from the highest power down.
  template <int Degree, class Take>
  SUTURE_FN void each_power(const voxel& at, const Take& take) const {
    const int highest = Degree == any ? degree : Degree;
    const float z = coordinate(0, at.z), y = coordinate(1, at.y);
    int next = 0;
    if (planar) {
      SUTURE_TRY_UNROLL
      for (int k = highest; k >= 0; --k) {
        float in_y = term<Degree>(next++);
        SUTURE_TRY_UNROLL
        for (int j = highest; j > 0; --j) in_y = fma(in_y, y, term<Degree>(next++));
        take(k, in_y);
      }
    } else {
      SUTURE_TRY_UNROLL
      for (int k = highest; k >= 0; --k) {
        float in_y = 0;
        SUTURE_TRY_UNROLL
        for (int j = highest - k; j >= 0; --j) {
          float in_z = term<Degree>(next++);
          SUTURE_TRY_UNROLL
          for (int i = highest - k - j; i > 0; --i) in_z = fma(in_z, z, term<Degree>(next++));
          in_y = j == highest - k ? in_z : fma(in_y, y, in_z);
        }
        take(k, in_y);
      }
    }
  }

  // The polynomial of each_power where it is not planar, of a degree known to the compiler: loops become vectors.
  template <int Degree, int K, int J>
  SUTURE_INLINE float in_z(float z) const {
    constexpr int powers = Degree - K, before_k = powers * (powers + 1) * (powers + 2) / 6;
    int next = before_k + (powers - J) * (powers - J + 1) / 2;
    float sum = term<any>(next++);
    SUTURE_UNROLL
    for (int i = powers - J; i > 0; --i) sum = fma(sum, z, term<any>(next++));
    return sum;
  }
  template <int Degree, int K, int J = 0>
  SUTURE_INLINE float in_y(float z, float y) const {
    if constexpr (J == Degree - K)
      return in_z<Degree, K, J>(z);
    else
      return fma(in_y<Degree, K, J + 1>(z, y), y, in_z<Degree, K, J>(z));
  }
  template <int Degree, int K = 0>
  SUTURE_INLINE float in_x(float z, float y, float x) const {
    if constexpr (K == Degree)
      return in_y<Degree, K>(z, y);
    else
      return fma(in_x<Degree, K + 1>(z, y, x), x, in_y<Degree, K>(z, y));
  }

  template <int Degree, int Axis, int Count>
  SUTURE_INLINE void at_line(float (&values)[Count], const voxel& first) const {
    const float x = coordinate(2, first.x);
    for (std::int32_t l = 0; l < Count; ++l) {
      const float z = coordinate(0, first.z + (Axis == 0 ? l : 0)), y = coordinate(1, first.y + (Axis == 1 ? l : 0));
      values[l] = fma(values[l], math::exp(in_x<Degree>(z, y, x)), 0.0f);
    }
  }

  template <int Degree>
  SUTURE_FN float at_voxel(float value, const voxel& at) const {
    const int highest = Degree == any ? degree : Degree;
    const float x = coordinate(2, at.x);
    float sum = 0;
    each_power<Degree>(at, [&](int k, float c) { sum = k == highest ? c : fma(sum, x, c); });
    return fma(value, math::exp(sum), 0.0f);
  }

  template <int Degree, int Count>
  SUTURE_FN void at_row(float (&values)[Count], const voxel& first) const {
    float power[Degree + 1];
    each_power<Degree>(first, [&](int k, float c) { power[k] = c; });
    for (int l = 0; l < Count; ++l) {
      const float x = coordinate(2, first.x + l);
      float sum = power[Degree];
      SUTURE_UNROLL
      for (int k = Degree - 1; k >= 0; --k) sum = fma(sum, x, power[k]);
      values[l] = fma(values[l], math::exp(sum), 0.0f);
    }
  }
};

// Coefficient of t^power in the Legendre polynomial of a degree, exact.
inline constexpr double legendre_coefficient[most_bias_degree + 1][most_bias_degree + 1] = {
    {1}, {0, 1}, {-.5, 0, 1.5}, {0, -1.5, 0, 2.5}, {.375, 0, -3.75, 0, 4.375}, {0, 1.875, 0, -8.75, 0, 7.875}};

// Calls f(number, i, j, k) for every term of a bias field in the published order and returns how many there are.
template <class F>
int for_each_bias_term(int degree, bool planar, const F& f) {
  int term_index = 0;
  for (int i = 0; i <= (planar ? 0 : degree); ++i)
    for (int j = 0; j <= degree - i; ++j)
      for (int k = 0; k <= (planar ? j : degree - i - j); ++k) f(term_index++, i, j, k);
  return term_index;
}

}  // namespace detail

// y = x exp(sum of c_ijk P_i(Z) P_j(Y) P_k(X)): Z, Y and X go from -1 at the first voxel of an axis of the grid to 1 at
// the last and are 0 on an axis of one voxel; P by the basis. The coefficients stand in the published order:
//   i + j + k <= degree, i outermost and k innermost: 4, 10, 20, 35, 56 of them for degree 1 .. 5
//   legendre in a plane (one voxel along z): P_j(Y) P_k(X) with k <= j <= degree, j outermost: 3, 6, 10, 15, 21. Their
//   total degree reaches 2 degree; it is MONAI's rule.
// Those left out are 0. `extents` is the grid the operation stands on.
// Errors: a degree outside 0 .. 5, a coefficient that is not finite or beyond those of the degree, coefficients whose
// magnitudes add up to more than 80 (the field would leave the range of float), extents that are not positive.
// Source: MONAI RandBiasField, TorchIO v1 BiasField; Van Leemput et al. 1999.
struct bias_field {
  std::array<float, detail::most_bias_terms> coefficients;
  extent3 extents;
  int degree = 3;
  bias_basis basis = bias_basis::legendre;

  static constexpr std::string_view name = "bias_field";
  static constexpr auto fields = named("coefficients", &bias_field::coefficients);
  static constexpr auto parameters =
      named("coefficients", required(&bias_field::coefficients), "extents", required(&bias_field::extents), "degree",
            &bias_field::degree, "basis", &bias_field::basis);

  detail::bias_functor prepare(const site& where) const {
    constexpr int most = detail::most_bias_degree;
    require(degree >= 0 && degree <= most, where, "degree ", degree, " is not in 0 .. ", most);
    for (int axis = 0; axis < 3; ++axis)
      require(extents[axis] >= 1 && extents[axis] <= 2097152, where, "extents ", extents, " must be in 1 .. 2097152");
    double magnitude = 0;
    for (const float c : coefficients) {
      require(std::isfinite(c), where, "coefficient ", c, " must be finite");
      magnitude += std::abs(static_cast<double>(c));
    }
    require(magnitude <= 80, where, "magnitudes of the coefficients add up to ", magnitude, ", more than 80");

    const bool legendre = basis == bias_basis::legendre, planar = legendre && extents[0] == 1;
    double monomial[most + 1][most + 1][most + 1] = {};
    const int terms = detail::for_each_bias_term(degree, planar, [&](int term_index, int i, int j, int k) {
      const double c = static_cast<double>(coefficients[static_cast<std::size_t>(term_index)]);
      if (!legendre) {
        monomial[i][j][k] = c;
        return;
      }
      const auto& table = detail::legendre_coefficient;
      for (int z = 0; z <= i; ++z)
        for (int y = 0; y <= j; ++y)
          for (int x = 0; x <= k; ++x)
            monomial[z][y][x] = fma(c, table[i][z] * table[j][y] * table[k][x], monomial[z][y][x]);
    });
    for (auto n = static_cast<std::size_t>(terms); n < coefficients.size(); ++n)
      require(coefficients[n] == 0, where, "coefficient ", n, " is ", coefficients[n], ", but degree ", degree, " has ",
              terms);

    detail::bias_functor f{};
    f.degree = degree < 3 ? 3 : degree;
    f.planar = planar ? 1u : 0u;
    const int highest = f.degree;
    int next = 0;
    for (int k = highest; k >= 0; --k)
      for (int j = planar ? highest : highest - k; j >= 0; --j)
        for (int i = planar ? 0 : highest - k - j; i >= 0; --i, ++next)
          f.terms[next / 4].c[next % 4] = static_cast<float>(monomial[i][j][k]);
    for (int axis = 0; axis < 3; ++axis) {
      const auto last = static_cast<double>(extents[axis] - 1);
      f.start[axis] = last > 0 ? -1.0f : 0.0f;
      f.step[axis] = last > 0 ? static_cast<float>(2 / last) : 0.0f;
    }
    return f;
  }
};

// bias_field over the grid it stands on, one for all channels, each coefficient drawn uniformly from `coefficients`.
// `{.coefficients = {-.5f, .5f}, .basis = bias_basis::monomial}` is TorchIO's.
// Errors: coefficients not from low to high; those of bias_field, whatever was drawn.
struct random_bias_field {
  interval coefficients = {0, .1f};
  int degree = 3;
  bias_basis basis = bias_basis::legendre;
  float probability = 1;

  static constexpr std::string_view name = "random_bias_field";
  static constexpr std::uint16_t kind = 38;
  static constexpr auto parameters =
      named("coefficients", &random_bias_field::coefficients, "degree", &random_bias_field::degree, "basis",
            &random_bias_field::basis, "probability", &random_bias_field::probability);

  // 56 slots whatever the degree.
  bias_field draw(draws& random, const grid& g, const site& where) const {
    detail::check_interval(coefficients, "coefficients", where);
    require(degree >= 0 && degree <= detail::most_bias_degree, where, "degree ", degree, " is not in 0 .. ",
            detail::most_bias_degree);
    bias_field field{.coefficients = {}, .extents = g.extents, .degree = degree, .basis = basis};
    for (float& c : field.coefficients) c = random.uniform(coefficients.low, coefficients.high);
    const bool planar = basis == bias_basis::legendre && g.extents[0] == 1;
    const int terms = detail::for_each_bias_term(degree, planar, [](int, int, int, int) {});
    const float largest = std::max(std::abs(coefficients.low), std::abs(coefficients.high));
    require(static_cast<double>(largest) * terms <= 80, where, "coefficients ", coefficients, " of ", terms,
            " terms may add up to more than 80");
    for (auto n = static_cast<std::size_t>(terms); n < field.coefficients.size(); ++n) field.coefficients[n] = 0;
    return field;
  }
};

}  // namespace suture
