// SPDX-License-Identifier: Apache-2.0
// The sums from which the moments of a patch are computed, strip by strip.
#pragma once

#include <algorithm>

#include "../../evaluate/stage.hpp"
#include "../common/lanes.hpp"

namespace suture::detail {

// Adds the sums of a part of a patch.
inline void merge(patch_sums& to, const patch_sums& part) {
  to.sums.merge(part.sums);
  to.count += part.count;
  to.excluded += part.excluded;
  to.least_complement = std::max(to.least_complement, part.least_complement);
  to.greatest = std::max(to.greatest, part.greatest);
}

// Exact sums of values and squares, extremes and counts. Whole strips are summed in doubles, as multiples of a unit:
// 2^-40 of a power of two above their values, so that sums of 2^13 values are exact. Squares have two sums, of their
// parts above and below 2^40 squares of the unit. A strip with a value that is no multiple of the unit is added value
// by value.
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
  // Strips between two flushes: each lane adds four values of a strip, so 2^11 values.
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
      total_.sums.add(p);
    }
  }

  bool add_whole(const float (&values)[strip_width]) {
    if (strips_ == most_strips) flush();
    if (!try_add(values)) {
      std::uint32_t largest = 0;
      for (int l = 0; l < strip_width; ++l) largest = std::max(largest, float_bits(values[l]) & 0x7fffffffu);
      if (largest >= 0x7f800000u || largest < limit_) return false;
      // The unit is 2^(place_ - 149); 2^-149 is the smallest subnormal.
      flush();
      const std::uint32_t exponent = largest >> 23;
      limit_ = (exponent + 1) << 23;
      place_ = std::max(static_cast<std::int32_t>(exponent) - 17, 0);
      clear();
      if (!try_add(values)) return false;
    }
    return true;
  }

  // Returns false, with nothing added, if a value is too large or has bits below the unit.
  bool try_add(const float (&values)[strip_width]) {
    std::uint32_t largest = 0, smallest = ~0u;  // magnitudes; zeros are always allowed
    float least[lanes], greatest[lanes];
    for (int l = 0; l < strip_width; ++l) {
      const std::uint32_t magnitude = float_bits(values[l]) & 0x7fffffffu;
      largest = std::max(largest, magnitude);
      smallest = std::min(smallest, magnitude - 1);
    }
    if (largest >= limit_) return false;
    // A value has 24 significant bits, none of which is below the unit if the first is at least 2^23 units.
    if (place_ > 0 && smallest < (static_cast<std::uint32_t>(place_ + 1) << 23) - 1 && !are_multiples(values))
      return false;
    for (int l = 0; l < lanes; ++l) {
      least[l] = least_[l];
      greatest[l] = greatest_[l];
      double sum = sum_[l], high = high_[l], low = low_[l];
      SUTURE_UNROLL
      for (int k = l; k < strip_width; k += lanes) {
        const float value = values[k] + 0.0f;
        least[l] = value < least[l] ? value : least[l];
        greatest[l] = value > greatest[l] ? value : greatest[l];
        const auto v = static_cast<double>(values[k]);
        const double next = fma(v, v, high);
        low += fma(v, v, high - next);
        high = next;
        sum += v;
      }
      sum_[l] = sum;
      high_[l] = high;
      low_[l] = low;
      least_[l] = least[l];
      greatest_[l] = greatest[l];
    }
    ++strips_;
    return true;
  }

  bool are_multiples(const float (&values)[strip_width]) const {
    constexpr double whole_numbers = 0x1.8p52;
    const double scale = power_of_two(149 - place_);
    bool all = true;
    for (int l = 0; l < strip_width; ++l) {
      const double units = static_cast<double>(values[l]) * scale;
      all = all && (units + whole_numbers) - whole_numbers == units;
    }
    return all;
  }

  // Sets the sums to 0. That of the upper parts of squares starts at a number so large that it rounds to multiples of
  // 2^40 squares of the unit.
  void clear() {
    for (int l = 0; l < lanes; ++l) {
      sum_[l] = low_[l] = 0;
      high_[l] = rounds_squares();
    }
  }
  double rounds_squares() const { return 1.5 * power_of_two(92 - 2 * (149 - place_)); }

  void flush() {
    if (strips_ == 0) return;
    const double per_unit = power_of_two(149 - place_), per_square = power_of_two(2 * (149 - place_));
    std::int64_t values = 0, high = 0, low = 0;
    for (int l = 0; l < lanes; ++l) {
      values += static_cast<std::int64_t>(sum_[l] * per_unit);
      high += static_cast<std::int64_t>((high_[l] - rounds_squares()) * per_square * 0x1p-40);
      low += static_cast<std::int64_t>(low_[l] * per_square);
    }
    const int128 sum = values, squares = static_cast<int128>(high) * (int128{1} << 40) + low;
    total_.sums.add(sum * (int128{1} << (place_ & 31)), place_ >> 5, static_cast<uint128>(squares) << (2 * place_ & 31),
                    2 * place_ >> 5);
    total_.count += static_cast<std::uint64_t>(strips_) * strip_width;
    any_strips_ = true;
    strips_ = 0;
    clear();
  }

  void add_extremes() {
    if (!any_strips_) return;
    for (int l = 0; l < lanes; ++l) {
      total_.least_complement = std::max(total_.least_complement, ~counted<float>::key(least_[l]));
      total_.greatest = std::max(total_.greatest, counted<float>::key(greatest_[l]));
    }
  }

  patch_sums total_{};
  double sum_[lanes] = {}, high_[lanes] = {}, low_[lanes] = {};
  float least_[lanes] = {infinity, infinity, infinity, infinity, infinity, infinity, infinity, infinity};
  float greatest_[lanes] = {-infinity, -infinity, -infinity, -infinity, -infinity, -infinity, -infinity, -infinity};
  std::uint32_t limit_ = 0;  // values with these bits or more are too large
  std::int32_t place_ = 0, strips_ = 0;
  bool any_strips_ = false;

  static constexpr float infinity = __builtin_inff();
};

}  // namespace suture::detail
