// SPDX-License-Identifier: Apache-2.0
// Common parts of the paths of the CPU executor. A path is one way to compute the voxels of a brick:
//   name                  what tests and benches call it
//   possible<Evaluator>   whether it can be compiled for these operations and element types
//   serves(parameters)    whether it serves this sample. A path without it serves every sample, and its `make` returns
//                         nothing
//   shape(parameters, depth)   the shape of its bricks; `depth` is the number of planes wanted (brick_depth), which is
//                         halved while threads would lack bricks
//   make<WithLabels>(work, stages)   writes the voxels of a brick. If it returns false, it has written nothing, and the
//                         next path that serves the sample makes the brick, whatever shape that path would choose
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

// Calls use.operator()<Path>() for the paths of a list that serve a sample, in order, until one returns true.
template <class Evaluator, class Parameters, class Use, class Path, class... Others>
void by_first(path_list<Path, Others...>, const Parameters& sample, const Use& use) {
  if constexpr (!Path::template possible<Evaluator>) {
    by_first<Evaluator>(path_list<Others...>{}, sample, use);
  } else if constexpr (requires { Path::serves(sample); }) {
    if (!Path::serves(sample) || !use.template operator()<Path>())
      by_first<Evaluator>(path_list<Others...>{}, sample, use);
  } else {
    use.template operator()<Path>();
  }
}

}  // namespace suture::detail
