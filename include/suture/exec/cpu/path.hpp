// SPDX-License-Identifier: Apache-2.0
// Common parts of the paths of the CPU executor. A path is one way to make the voxels of a brick:
//   name                  what tests and benches call it
//   possible<Evaluator>   whether it can be compiled for these operations and element types
//   serves_all            whether it takes every sample; if not, serves(parameters) says whether it takes this one
//   shape(parameters, depth)   the brick it wants, of at most `depth` planes
//   make<WithLabels>(work, stages)   makes the voxels of a brick. False, with nothing written, where it found that
//                         another path has to, which then wants a brick of the same shape
// A brick is made by the first path of the list (run.hpp) that serves its sample.
#pragma once

#include <string_view>

#include "../common/path_list.hpp"
#include "strip_writer.hpp"

namespace suture::detail {

// The planes and rows of a brick; it has whole rows.
struct brick_shape {
  std::int32_t planes, rows;
};

// Work of a path: rows y0 .. y1 - 1 of planes z0 .. z1 - 1 of one sample. `depth` is the requested depth; the last
// brick of a sample may have fewer planes.
template <class Evaluator>
struct brick_work {
  const Evaluator& evaluate;
  const typename Evaluator::record_type& r;
  std::int32_t sample_index;
  std::int32_t depth;
  std::int32_t z0, z1, y0, y1;
};

// Calls use(y, x0) for the strips of a plane of a brick: row by row, or column by column where they are transposed.
template <class Evaluator, class Use>
SUTURE_INLINE void each_strip_of_plane(const brick_work<Evaluator>& work, const Use& use) {
  const std::int32_t width = work.r.sample.extents[2];
  const std::int32_t columns = turns_over(work.r.sample) ? strip_width : width;
  for (std::int32_t first = 0; first < width; first += columns)
    for (std::int32_t y = work.y0; y < work.y1; ++y)
      for (std::int32_t x0 = first; x0 < std::min(first + columns, width); x0 += strip_width) use(y, x0);
}

// The shape of the bricks of a sample.
template <class Evaluator, class Path, class... Others, class Parameters>
brick_shape shape_by_first(path_list<Path, Others...>, const Parameters& sample, std::int32_t depth) {
  if constexpr (!Path::template possible<Evaluator>) {
    return shape_by_first<Evaluator>(path_list<Others...>{}, sample, depth);
  } else if constexpr (Path::serves_all) {
    return Path::shape(sample, depth);
  } else {
    if (Path::serves(sample)) return Path::shape(sample, depth);
    return shape_by_first<Evaluator>(path_list<Others...>{}, sample, depth);
  }
}

// Computes the voxels of a brick by the first path that serves its sample.
template <bool WithLabels, class Evaluator, class Stages, class Path, class... Others>
void make_by_first(path_list<Path, Others...>, const brick_work<Evaluator>& work, Stages& stages) {
  if constexpr (!Path::template possible<Evaluator>) {
    make_by_first<WithLabels>(path_list<Others...>{}, work, stages);
  } else if constexpr (Path::serves_all) {
    Path::template make<WithLabels>(work, stages);
  } else {
    if (Path::serves(work.r.sample) && Path::template make<WithLabels>(work, stages)) return;
    make_by_first<WithLabels>(path_list<Others...>{}, work, stages);
  }
}

}  // namespace suture::detail
