// SPDX-License-Identifier: Apache-2.0
// `geometry` passes the coordinate maps of a plan from the module that planned to modules that move points by these
// maps or apply their inverse.
#pragma once

#include <cstdint>

#include "../image/sample_geometry.hpp"

namespace suture::abi {

// The coordinate maps of all samples of a plan, in memory that the plan owns.
struct geometry {
  const void* first;
  std::int64_t bytes, samples;  // bytes from the map of a sample to that of the next
};

inline suture::detail::geometry_list geometry_of(const geometry& g) {
  return {static_cast<const suture::detail::sample_geometry*>(g.first), static_cast<std::size_t>(g.bytes),
          static_cast<std::size_t>(g.samples)};
}

}  // namespace suture::abi
