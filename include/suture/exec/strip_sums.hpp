// SPDX-License-Identifier: Apache-2.0
// The sums behind the moments of a patch, strip by strip.
#pragma once

#include <algorithm>

#include "../core/stage.hpp"
#include "lanes.hpp"

namespace suture::detail {

inline void settle(patch_sums& to, const patch_sums& part) {
  to.sums.merge(part.sums);
  to.count += part.count;
  to.excluded += part.excluded;
  to.least_complement = std::max(to.least_complement, part.least_complement);
  to.greatest = std::max(to.greatest, part.greatest);
}

// Exact sums of values and squares, extremes and counts. Whole strips are summed as multiples of 2^-40 of a power of
// two above their values: a value, and the products of its upper and lower 20 bits, then add up in doubles without
// rounding. A strip that holds a value which is no such multiple is added value by value.
class strip_sums {
public:
  void add(const float (&values)[strip_width], int count) {
    if (count < strip_width || !add_whole(values)) add_each(values, count);
  }

  const patch_sums& finish() {
    flush();
    add_extremes();
    return total_;
  }

private:
  static constexpr int lanes = 8;
  // A lane takes four values of a strip: of the products, below 2^42, it holds 2^11.
  static constexpr int most_strips = 1 << 9;

  void add_each(const float* values, int count) {
    for (int l = 0; l < count; ++l) {
      if (!counted<float>::finite(values[l])) {
        ++total_.excluded;
        continue;
      }
      ++total_.count;
      const std::uint32_t key = counted<float>::key(values[l]);
      total_.least_complement = std::max(total_.least_complement, ~key);
      total_.greatest = std::max(total_.greatest, key);
      partial_sums p;
      add_value(p, values[l], total_.sums);
      total_.sums.take(p);
    }
  }

  bool add_whole(const float (&values)[strip_width]) {
    if (strips_ == most_strips) flush();
    if (!try_add(values)) {
      std::uint32_t largest = 0;
      for (int l = 0; l < strip_width; ++l) largest = std::max(largest, float_bits(values[l]) & 0x7fffffffu);
      if (largest >= 0x7f800000u || largest < limit_) return false;
      // The place of a unit counts from 2^-149, the least subnormal.
      flush();
      const std::uint32_t exponent = largest >> 23;
      limit_ = (exponent + 1) << 23;
      place_ = std::max(static_cast<std::int32_t>(exponent) - 17, 0);
      if (!try_add(values)) return false;
    }
    return true;
  }

  // False, with nothing added, where a value is too large or has bits below the unit.
  bool try_add(const float (&values)[strip_width]) {
    const float limit = float_from_bits(limit_);
    const double scale = power_of_two(149 - place_);
    constexpr double whole_numbers = 0x1.8p52, upper = 0x1p20;
    double whole[strip_width], high[strip_width];
    std::int64_t fractions = 0;
    for (int l = 0; l < strip_width; ++l) {
      const double units = static_cast<double>(values[l]) * scale;
      whole[l] = (units + whole_numbers) - whole_numbers;
      high[l] = (units * (1 / upper) + whole_numbers) - whole_numbers;
      fractions |= whole[l] == units ? 0 : -1;
    }
    float least[strip_width], greatest[strip_width];
    for (int l = 0; l < strip_width; ++l) least[l] = greatest[l] = values[l] + 0.0f;
    for (int half = strip_width / 2; half >= lanes; half /= 2)
      for (int l = 0; l < half; ++l) {
        least[l] = least[l] < least[l + half] ? least[l] : least[l + half];
        greatest[l] = greatest[l] > greatest[l + half] ? greatest[l] : greatest[l + half];
      }
    std::int32_t beyond = 0;
    for (int l = 0; l < lanes; ++l) beyond |= !(least[l] > -limit) | !(greatest[l] < limit);
    if ((fractions | beyond) != 0) return false;  // not a number is no multiple of the unit either
    for (int l = 0; l < lanes; ++l) {
      least_[l] = least[l] < least_[l] ? least[l] : least_[l];
      greatest_[l] = greatest[l] > greatest_[l] ? greatest[l] : greatest_[l];
    }
    for (int l = 0; l < lanes; ++l) {
      double sum = sum_[l], high_high = high_high_[l], high_low = high_low_[l], low_low = low_low_[l];
      SUTURE_UNROLL
      for (int k = l; k < strip_width; k += lanes) {
        const double low = fma(high[k], -upper, whole[k]);
        sum += whole[k];
        high_high = fma(high[k], high[k], high_high);
        high_low = fma(high[k], low, high_low);
        low_low = fma(low, low, low_low);
      }
      sum_[l] = sum;
      high_high_[l] = high_high;
      high_low_[l] = high_low;
      low_low_[l] = low_low;
    }
    ++strips_;
    return true;
  }

  void flush() {
    if (strips_ == 0) return;
    const auto take = [](double(&of)[lanes]) {
      std::int64_t sum = 0;
      for (double& lane : of) {
        sum += static_cast<std::int64_t>(lane);
        lane = 0;
      }
      return static_cast<int128>(sum);
    };
    const int128 sum = take(sum_);
    const int128 squares = take(high_high_) * (int128{1} << 40) + take(high_low_) * (1 << 21) + take(low_low_);
    total_.sums.take(sum * (int128{1} << (place_ & 31)), place_ >> 5,
                     static_cast<uint128>(squares) << (2 * place_ & 31), 2 * place_ >> 5);
    total_.count += static_cast<std::uint64_t>(strips_) * strip_width;
    any_strips_ = true;
    strips_ = 0;
  }

  void add_extremes() {
    if (!any_strips_) return;
    for (int l = 0; l < lanes; ++l) {
      total_.least_complement = std::max(total_.least_complement, ~counted<float>::key(least_[l]));
      total_.greatest = std::max(total_.greatest, counted<float>::key(greatest_[l]));
    }
  }

  patch_sums total_{};
  double sum_[lanes] = {}, high_high_[lanes] = {}, high_low_[lanes] = {}, low_low_[lanes] = {};
  float least_[lanes] = {infinity, infinity, infinity, infinity, infinity, infinity, infinity, infinity};
  float greatest_[lanes] = {-infinity, -infinity, -infinity, -infinity, -infinity, -infinity, -infinity, -infinity};
  std::uint32_t limit_ = 0;  // the bits of what values must stay below
  std::int32_t place_ = 0, strips_ = 0;
  bool any_strips_ = false;

  static constexpr float infinity = __builtin_inff();
};

}  // namespace suture::detail
