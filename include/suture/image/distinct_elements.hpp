// SPDX-License-Identifier: Apache-2.0
// Tests whether two indices of an array lie at the same address, from counts and strides alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

namespace suture::detail {

__extension__ typedef __int128 wide_integer;

// An axis of an array: the positive distance between neighbors, and the largest difference of two indices.
struct index_axis {
  std::int64_t stride, most;
};

// The inverse of a modulo m; a and m are coprime.
inline std::int64_t inverse_modulo(std::int64_t a, std::int64_t m) {
  std::int64_t r = m, next_r = a % m, t = 0, next_t = 1;
  while (next_r != 0) {
    const std::int64_t q = r / next_r;
    r = std::exchange(next_r, r - q * next_r);
    t = std::exchange(next_t, t - q * next_t);
  }
  return t < 0 ? t + m : t;
}

// Tests whether x a.stride + y b.stride = distance for some |x| <= a.most and |y| <= b.most.
inline bool reaches(const index_axis& a, const index_axis& b, wide_integer distance) {
  const std::int64_t divisor = std::gcd(a.stride, b.stride);
  if (distance % divisor != 0) return false;
  const std::int64_t sa = a.stride / divisor, sb = b.stride / divisor;
  const wide_integer d = distance / divisor;
  // x is determined modulo sb, and the range of y bounds it.
  const auto modulo = [sb](wide_integer n) { return (n % sb + sb) % sb; };
  const auto floor_of = [sa](wide_integer n) { return n / sa - (n % sa < 0 ? 1 : 0); };
  const wide_integer x = sb == 1 ? 0 : modulo(modulo(d) * inverse_modulo(sa, sb));
  const wide_integer span = static_cast<wide_integer>(sb) * b.most;
  const wide_integer low = std::max<wide_integer>(-a.most, -floor_of(span - d));
  const wide_integer high = std::min<wide_integer>(a.most, floor_of(d + span));
  return low + modulo(x - low) <= high;
}

// Insertion sort: std::sort of so few elements makes g++ 12 warn (-Warray-bounds).
template <class Less>
void sort_few(std::array<index_axis, 4>& axes, std::size_t used, Less less) {
  for (std::size_t i = 1; i < used; ++i)
    for (std::size_t k = i; k > 0 && less(axes[k], axes[k - 1]); --k) std::swap(axes[k], axes[k - 1]);
}

// Tests whether two different indices i, 0 <= i[k] < count[k], have the same sum of i[k] stride[k]. Exact for every
// array of up to 2^46 elements. Larger ones, which no memory holds, may count as overlapping although they do not.
inline bool repeats_elements(const std::int64_t (&count)[4], const std::int64_t (&stride)[4]) {
  std::array<index_axis, 4> axes{};
  std::size_t used = 0;
  for (int k = 0; k < 4; ++k)
    if (count[k] > 1) {
      if (stride[k] == 0) return true;
      axes[used++] = {stride[k] < 0 ? -stride[k] : stride[k], count[k] - 1};
    }
  const auto end = axes.begin() + static_cast<std::ptrdiff_t>(used);
  // In nearly all arrays each stride exceeds what all smaller strides together can reach.
  sort_few(axes, used, [](const index_axis& a, const index_axis& b) { return a.stride < b.stride; });
  std::int64_t reach = 0;
  bool nested = true;
  for (auto a = axes.begin(); a != end; ++a) {
    nested = nested && a->stride > reach;
    reach += a->stride * a->most;
  }
  if (nested) return false;
  // Views with more elements than addresses must repeat some.
  wide_integer elements = 1;
  for (auto a = axes.begin(); a != end; ++a) elements *= a->most + 1;
  if (elements > static_cast<wide_integer>(reach) + 1) return true;
  // Differences along the two axes with the most voxels are solved for, those along the other two are tried one by one.
  // An unused axis has difference 0.
  sort_few(axes, used, [](const index_axis& a, const index_axis& b) { return a.most > b.most; });
  for (std::size_t k = used; k < 4; ++k) axes[k] = {1, 0};
  const auto &a = axes[0], &b = axes[1], &c = axes[2], &d = axes[3];
  if ((c.most + 1) * (2 * d.most + 1) > (std::int64_t{1} << 24)) return true;
  for (std::int64_t i = 0; i <= c.most; ++i)
    for (std::int64_t j = i == 0 ? 0 : -d.most; j <= d.most; ++j) {
      // A difference of indices and its negative are equivalent, so i begins at 0.
      if (i == 0 && j == 0) {
        const std::int64_t divisor = std::gcd(a.stride, b.stride);
        if (b.stride / divisor <= a.most && a.stride / divisor <= b.most) return true;
      } else if (reaches(a, b, static_cast<wide_integer>(i) * c.stride + static_cast<wide_integer>(j) * d.stride)) {
        return true;
      }
    }
  return false;
}

}  // namespace suture::detail
