// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of a volume in double, straight from its definition: an axis at a time, every sum
// written out.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <numbers>
#include <vector>

namespace reference {

using spectrum = std::vector<std::complex<double>>;
using size3d = std::array<std::size_t, 3>;

inline spectrum transformed(spectrum v, const size3d& n, bool back = false) {
  const size3d stride{n[1] * n[2], n[2], 1};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    spectrum root;
    for (std::size_t j = 0; j < n[axis]; ++j)
      root.push_back(
          std::polar(1.0, (back ? 2 : -2) * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n[axis])));
    spectrum line(n[axis]);
    for (std::size_t first = 0; first < v.size(); ++first) {
      if (first / stride[axis] % n[axis] != 0) continue;
      for (std::size_t k = 0; k < n[axis]; ++k) {
        std::complex<double> sum = 0;
        for (std::size_t j = 0; j < n[axis]; ++j) sum += v[first + j * stride[axis]] * root[j * k % n[axis]];
        line[k] = back ? sum / static_cast<double>(n[axis]) : sum;
      }
      for (std::size_t k = 0; k < n[axis]; ++k) v[first + k * stride[axis]] = line[k];
    }
  }
  return v;
}

// The array index of frequency k when frequency 0 stands at n / 2.
inline std::size_t shifted(std::size_t k, std::size_t n) { return (k + n / 2) % n; }

}  // namespace reference
