// SPDX-License-Identifier: Apache-2.0
// Lists of lists out of plain integers.
#pragma once

#include <cstdint>
#include <span>

#include "../ops/label/regions.hpp"
#include "../ops/label/remap.hpp"

namespace suture::abi {

// How many sets there are, and of each how many labels it has and which.
inline decltype(regions::sets) regions_of(std::span<const std::int32_t> flat) {
  decltype(regions::sets) sets;
  std::size_t at = 1;
  for (std::int32_t k = 0; k < flat[0]; ++k) {
    const auto count = static_cast<std::size_t>(flat[at++]);
    sets.push_back(region(flat.subspan(at, count)));
    at += count;
  }
  return sets;
}

inline decltype(remap::table) changes_of(std::span<const label_change> changes) {
  return decltype(remap::table)(changes);
}

}  // namespace suture::abi
