// SPDX-License-Identifier: Apache-2.0
// A list of paths in order of preference. A path is one way in which an executor computes voxels: a type in a file of
// its own, whose interface exec/cpu/path.hpp and exec/cuda/path.cuh state.
#pragma once

#include <type_traits>

namespace suture::detail {

template <class... Paths>
struct path_list {};

}  // namespace suture::detail
