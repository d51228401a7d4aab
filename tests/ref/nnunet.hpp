// SPDX-License-Identifier: Apache-2.0
// nnU-Net's resampling of data and label maps, from its definition: order 3 limited to the range of what is resampled,
// labels order 1 one at a time, and with a separate axis slice by slice, order 0 across the slices.
#pragma once

#include <algorithm>
#include <set>

#include "sample.hpp"

namespace reference {

// -1: none. The source decides, then the target.
inline int nnunet_separate_axis(const point& spacing, const point& target, double threshold = 3) {
  for (const point& s : {spacing, target}) {
    const double largest = *std::max_element(s.begin(), s.end());
    if (largest / *std::min_element(s.begin(), s.end()) <= threshold) continue;
    if (std::count(s.begin(), s.end(), largest) != 1) return -1;
    return static_cast<int>(std::find(s.begin(), s.end(), largest) - s.begin());
  }
  return -1;
}

// Calls part(volume, its size) for the whole volume, or for every slice across `axis`, and puts together what it gives.
template <class Part>
volume by_parts(const volume& in, const size3& size, int axis, Part&& part) {
  if (axis < 0) return part(in, size);
  const auto a = static_cast<std::size_t>(axis);
  size3 slice_in = in.size, slice_out = size;
  slice_in[a] = slice_out[a] = 1;
  volume out(size);
  for (integer k = 0; k < size[a]; ++k) {
    const double at = half_pixel(static_cast<double>(k), in.size[a], size[a]);
    const integer from = std::clamp<integer>(round_half_up(at + 1e-9), 0, in.size[a] - 1);
    volume slice(slice_in);
    for (integer z = 0; z < slice_in[0]; ++z)
      for (integer y = 0; y < slice_in[1]; ++y)
        for (integer x = 0; x < slice_in[2]; ++x)
          slice.at(z, y, x) = in.at(z + (a == 0 ? from : 0), y + (a == 1 ? from : 0), x + (a == 2 ? from : 0));
    const volume made = part(slice, slice_out);
    for (integer z = 0; z < slice_out[0]; ++z)
      for (integer y = 0; y < slice_out[1]; ++y)
        for (integer x = 0; x < slice_out[2]; ++x)
          out.at(z + (a == 0 ? k : 0), y + (a == 1 ? k : 0), x + (a == 2 ? k : 0)) = made.at(z, y, x);
  }
  return out;
}

inline volume nnunet_part(const volume& in, const size3& size, interpolation how) {
  const auto pull = [&](const point& p) {
    point q{};
    for (std::size_t k = 0; k < 3; ++k) q[k] = half_pixel(p[k], in.size[k], size[k]);
    return q;
  };
  volume out = resampled(in, size, pull, {how, outside::edge, 0});
  const auto [low, high] = std::minmax_element(in.values.begin(), in.values.end());
  for (double& v : out.values) v = std::clamp(v, *low, *high);
  return out;
}

inline volume nnunet_image(const volume& in, const size3& size, int axis) {
  if (in.size == size) return in;
  return by_parts(in, size, axis,
                  [](const volume& v, const size3& s) { return nnunet_part(v, s, interpolation::bspline); });
}

// `doubt` is set to 1 where a label has nearly a half, so that rounding decides.
inline volume nnunet_labels(const volume& in, const size3& size, int axis, volume* doubt = nullptr) {
  if (doubt != nullptr) *doubt = volume(size);
  if (in.size == size) return in;
  const std::set<double> labels(in.values.begin(), in.values.end());
  volume out(size);
  for (const double label : labels) {
    volume one(in.size);
    for (std::size_t i = 0; i < in.values.size(); ++i) one.values[i] = in.values[i] == label ? 1 : 0;
    const volume share = by_parts(
        one, size, axis, [](const volume& v, const size3& s) { return nnunet_part(v, s, interpolation::linear); });
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      if (share.values[i] >= 0.5) out.values[i] = label;
      if (doubt != nullptr && std::abs(share.values[i] - 0.5) < 1e-4) doubt->values[i] = 1;
    }
  }
  return out;
}

}  // namespace reference
