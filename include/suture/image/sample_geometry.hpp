// SPDX-License-Identifier: Apache-2.0
// The geometry of one sample: all its geometry operations composed into two affine maps and a deformation.
#pragma once

#include <cstddef>
#include <string_view>

#include "deformation.hpp"
#include "grid.hpp"

namespace suture::detail {

// An output index is read at to_source(y + u(y)), y = to_deformed(index), where u is the deformation. If inverted, it
// is read at to_source(v), where v + u(v) = to_deformed(index).
struct sample_geometry {
  sample_geometry() = default;
  explicit sample_geometry(const grid& g) : source(g), output(g) {}

  grid source, output;
  affine_map to_deformed;  // output index -> deformed grid
  affine_map to_source;    // deformed grid -> source index
  deformation drawn{};
  bool deformed = false;
  bool inverted = false;
};

// Geometries of the samples of a plan, `step` bytes apart in memory.
struct geometry_list {
  static constexpr std::string_view described_as = "geometry";

  const sample_geometry* first = nullptr;
  std::size_t step = 0;  // bytes from one to the next
  std::size_t count = 0;

  std::size_t size() const { return count; }
  const sample_geometry& operator[](std::size_t i) const {
    return *reinterpret_cast<const sample_geometry*>(reinterpret_cast<const char*>(first) + i * step);
  }
};

}  // namespace suture::detail
