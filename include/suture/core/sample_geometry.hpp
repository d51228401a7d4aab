// SPDX-License-Identifier: Apache-2.0
// The geometry of one sample, collapsed.
#pragma once

#include "deformation.hpp"
#include "grid.hpp"

namespace suture::detail {

// source <- deformed grid <- output: an output index is read at to_source(y + u(y)), y = to_deformed(index). Inverted,
// it is read at to_source(v), v + u(v) = to_deformed(index).
struct sample_geometry {
  grid source, output;
  affine_map to_deformed;  // output index -> deformed grid
  affine_map to_source;    // deformed grid -> source index
  deformation drawn{};
  bool deformed = false;
  bool inverted = false;
};

}  // namespace suture::detail
