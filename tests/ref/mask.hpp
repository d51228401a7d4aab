// SPDX-License-Identifier: Apache-2.0
// Reference masks, one voxel at a time from the definitions: flood fill, and a look at every voxel of a neighborhood.
// A bool is a byte of 0 or 1.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "volume.hpp"

namespace reference {

using bytes = std::vector<std::uint8_t>;

inline std::size_t at(const size3& n, integer z, integer y, integer x) {
  return static_cast<std::size_t>((z * n[1] + y) * n[2] + x);
}
inline bool inside(const size3& n, integer z, integer y, integer x) {
  return z >= 0 && z < n[0] && y >= 0 && y < n[1] && x >= 0 && x < n[2];
}
template <class F>
void each_voxel(const size3& n, const F& f) {
  for (integer z = 0; z < n[0]; ++z)
    for (integer y = 0; y < n[1]; ++y)
      for (integer x = 0; x < n[2]; ++x) f(z, y, x);
}

// Labels in scan order; neighbors differ by 1 in at most `axes` axes. In a plane: dz = 0.
inline std::vector<std::int32_t> components(const bytes& mask, const size3& n, int axes, bool planar = false) {
  std::vector<std::int32_t> labels(mask.size(), 0);
  std::int32_t count = 0;
  std::vector<std::array<integer, 3>> open;
  each_voxel(n, [&](integer z0, integer y0, integer x0) {
    if (mask[at(n, z0, y0, x0)] == 0 || labels[at(n, z0, y0, x0)] != 0) return;
    labels[at(n, z0, y0, x0)] = ++count;
    open.push_back({z0, y0, x0});
    while (!open.empty()) {
      const auto [z, y, x] = open.back();
      open.pop_back();
      for (integer dz = planar ? 0 : -1; dz <= (planar ? 0 : 1); ++dz)
        for (integer dy = -1; dy <= 1; ++dy)
          for (integer dx = -1; dx <= 1; ++dx) {
            if (std::abs(dz) + std::abs(dy) + std::abs(dx) > axes || !inside(n, z + dz, y + dy, x + dx)) continue;
            const std::size_t i = at(n, z + dz, y + dy, x + dx);
            if (mask[i] == 0 || labels[i] != 0) continue;
            labels[i] = count;
            open.push_back({z + dz, y + dy, x + dx});
          }
    }
  });
  return labels;
}

inline std::vector<std::uint32_t> sizes(const std::vector<std::int32_t>& labels) {
  std::vector<std::uint32_t> counts;
  for (const std::int32_t l : labels) {
    if (l == 0) continue;
    if (counts.size() < static_cast<std::size_t>(l)) counts.resize(static_cast<std::size_t>(l), 0);
    ++counts[static_cast<std::size_t>(l) - 1];
  }
  return counts;
}

inline bytes largest(const bytes& mask, const size3& n, int axes) {
  const std::vector<std::int32_t> labels = components(mask, n, axes);
  const std::vector<std::uint32_t> counts = sizes(labels);
  bytes result(mask.size(), 0);
  if (counts.empty()) return result;
  const auto best = static_cast<std::int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin()) + 1;
  for (std::size_t i = 0; i < mask.size(); ++i) result[i] = labels[i] == best;
  return result;
}

inline bytes at_least(const bytes& mask, const size3& n, int axes, std::uint32_t least) {
  const std::vector<std::int32_t> labels = components(mask, n, axes);
  const std::vector<std::uint32_t> counts = sizes(labels);
  bytes result(mask.size(), 0);
  for (std::size_t i = 0; i < mask.size(); ++i)
    result[i] = labels[i] != 0 && counts[static_cast<std::size_t>(labels[i]) - 1] >= least;
  return result;
}

// Background components that touch no face of the volume (planar: no edge of the slice) become mask.
inline bytes holes_filled(const bytes& mask, const size3& n, bool planar) {
  bytes background(mask.size());
  for (std::size_t i = 0; i < mask.size(); ++i) background[i] = mask[i] == 0;
  const std::vector<std::int32_t> labels = components(background, n, 1, planar);
  std::vector<bool> open(mask.size() + 1, false);
  each_voxel(n, [&](integer z, integer y, integer x) {
    const bool face = y == 0 || y == n[1] - 1 || x == 0 || x == n[2] - 1 || (!planar && (z == 0 || z == n[0] - 1));
    if (face) open[static_cast<std::size_t>(labels[at(n, z, y, x)])] = true;
  });
  bytes result(mask.size());
  for (std::size_t i = 0; i < mask.size(); ++i) result[i] = mask[i] != 0 || !open[static_cast<std::size_t>(labels[i])];
  return result;
}

// Whether (dz, dy, dx) belongs to an element of radii r: 0 box, 1 cross, 2 ball. An axis of radius 0 is left out.
inline bool in_element(int shape, const size3& r, integer dz, integer dy, integer dx) {
  if (std::abs(dz) > r[0] || std::abs(dy) > r[1] || std::abs(dx) > r[2]) return false;
  const integer most = std::max({r[0], r[1], r[2]});
  if (shape == 1) return std::abs(dz) + std::abs(dy) + std::abs(dx) <= most;
  if (shape == 2) return dz * dz + dy * dy + dx * dx <= most * most;
  return true;
}

// Folds f over the values of the element about every voxel, in order; `outside`(value) stands for what is not there.
template <class T, class F, class Outside>
std::vector<T> over_element(const std::vector<T>& in, const size3& n, int shape, const size3& r, const F& f,
                            const Outside& outside) {
  std::vector<T> result(in.size());
  each_voxel(n, [&](integer z, integer y, integer x) {
    T value = in[at(n, z, y, x)];
    for (integer dz = -r[0]; dz <= r[0]; ++dz)
      for (integer dy = -r[1]; dy <= r[1]; ++dy)
        for (integer dx = -r[2]; dx <= r[2]; ++dx)
          if (in_element(shape, r, dz, dy, dx))
            value = inside(n, z + dz, y + dy, x + dx) ? f(value, in[at(n, z + dz, y + dy, x + dx)]) : outside(value);
    result[at(n, z, y, x)] = value;
  });
  return result;
}

inline bytes eroded(const bytes& mask, const size3& n, int shape, const size3& r, bool border) {
  return over_element(
      mask, n, shape, r, [](std::uint8_t a, std::uint8_t b) { return std::min(a, b); },
      [&](std::uint8_t a) { return std::min<std::uint8_t>(a, border); });
}
inline bytes dilated(const bytes& mask, const size3& n, int shape, const size3& r, bool border) {
  return over_element(
      mask, n, shape, r, [](std::uint8_t a, std::uint8_t b) { return std::max(a, b); },
      [&](std::uint8_t a) { return std::max<std::uint8_t>(a, border); });
}

template <class T>
bytes body(const std::vector<T>& image, const size3& n, double threshold, integer opening) {
  bytes mask(image.size());
  for (std::size_t i = 0; i < image.size(); ++i) mask[i] = static_cast<double>(image[i]) > threshold;
  if (opening > 0) {
    const size3 r{opening, opening, opening};
    mask = dilated(eroded(mask, n, 1, r, false), n, 1, r, false);
  }
  return holes_filled(largest(mask, n, 1), n, true);
}

}  // namespace reference
