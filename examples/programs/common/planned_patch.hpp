// SPDX-License-Identifier: Apache-2.0
// What the examples ask of planned patches and of their runs.
#pragma once

#include <chrono>

#include "suture/image/grid.hpp"

namespace suture::examples {

// Where the middle of a patch comes from, as a patch that is not flipped.
template <class Plan>
grid place_of(const Plan& plan, std::size_t i) {
  const auto& geometry = plan.geometry(i);
  grid place = geometry.output;
  const point3 middle = place.center();
  const point3 from = geometry.source.index_to_physical()(geometry.to_source(geometry.to_deformed(middle)));
  const point3 to = place.index_to_physical()(middle);
  for (int k = 0; k < 3; ++k) place.origin[k] += from[k] - to[k];
  return place;
}

template <class F>
double seconds_of(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace suture::examples
