// SPDX-License-Identifier: Apache-2.0
// Common parts of the paths of the fused kernel. A path is one way to make the voxels of a block:
//   name                  what tests and benches call it
//   possible<Evaluator>   whether it can be compiled for these operations and element types
//   shape<Evaluator>      how its blocks divide the output, and how many of them a multiprocessor is to hold
//   serves(record)        whether it takes this sample, to all threads of a block alike; without it, it takes every one
//   make<WithLabels, OneChannel>(work)   makes the voxels, by all threads of a block. False where it found on the way
//                         that another path has to
// A kernel has the shape of the first path of its list (fused.cuh) that is possible, and takes the first that serves.
#pragma once

#include <algorithm>
#include <string_view>

#include "../../evaluate/evaluator.hpp"
#include "../common/path_list.hpp"
#include "tile.cuh"
#include "tuning.hpp"

namespace suture::detail {

// Work of a block. `ahead` holds the normals made ahead for it, if any.
template <class Evaluator>
struct block_work {
  const Evaluator& evaluate;
  const typename Evaluator::record_type& r;
  std::int32_t sample_index;
  const tile_counts& tiles;
  column_of_thread at;
  const shared_normals* ahead;
};

// each_pair for device code: a function of host and device that calls a lambda of the host makes nvcc warn.
template <class Evaluator, bool WithLabels, class Use>
__device__ __forceinline__ void each_pair_on_device(const Use& use) {
  const auto one = [&]<std::size_t B>() {
    if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label) use.template operator()<B>();
  };
  [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

// Another kernel writes the levels of label maps (exec/cuda/levels.cuh), so their part of a record takes no registers
// here.
template <class Evaluator>
inline constexpr std::size_t bytes_of_levels = [] {
  if constexpr (Evaluator::has_levels)
    return sizeof(typename Evaluator::record_type::level_lists_type);
  else
    return std::size_t{0};
}();
template <class Evaluator>
inline constexpr int blocks_of_record = (sizeof(typename Evaluator::record_type) >
                                         large_record + bytes_of_levels<Evaluator>)
                                            ? blocks_of_many_registers
                                            : blocks_at_once;

// Tiles. Run: neighbors along x that a thread computes at once. Wide: lanes of a warp along x. Stacks: whether a block
// computes several tiles of a plane, one below the other, to share its setup.
template <class Evaluator, int Run = 1, int Wide = warp_x, bool Stacks = false,
          int Blocks = blocks_of_record<Evaluator>>
struct tile_shape {
  static constexpr int run = Run, wide = Wide, blocks = Blocks;
  static constexpr bool stacks = Stacks;
  static constexpr bool deepens = Evaluator::normals == 0;

  static void count(tile_counts& tiles, const extent3& n, std::size_t) {
    constexpr std::int32_t width = tile_x * Run;
    tiles.x = std::max(tiles.x, static_cast<std::int32_t>((n[2] + width - 1) / width));
    tiles.y = std::max(tiles.y, static_cast<std::int32_t>((n[1] + tiles.rows * tile_y - 1) / (tiles.rows * tile_y)));
    tiles.z = std::max(tiles.z, static_cast<std::int32_t>((n[0] + tiles.depth - 1) / tiles.depth));
  }
};

// Runs of 8 voxels, one after the other through the whole output.
template <class Evaluator>
struct run_shape {
  static constexpr int run = 1, wide = warp_x, blocks = blocks_of_record<Evaluator>;
  static constexpr bool stacks = false, deepens = false;

  static void count(tile_counts& tiles, const extent3& n, std::size_t sample) {
    const std::int64_t runs = (n[2] + 7) / 8 * n[1] * n[0];
    require(runs < 4294967295 - runs_in_block, {"run", static_cast<std::int64_t>(sample)}, "extents ", n,
            " are more than a kernel counts");
    tiles.x = std::max(tiles.x, static_cast<std::int32_t>((runs + runs_in_block - 1) / runs_in_block));
  }
};

// The first path of a list that is possible.
template <class Evaluator, class List>
struct first_possible;
template <class Evaluator, class Path, class... Others>
struct first_possible<Evaluator, path_list<Path, Others...>> {
  using type = typename std::conditional_t<Path::template possible<Evaluator>, std::type_identity<Path>,
                                           first_possible<Evaluator, path_list<Others...>>>::type;
};
template <class Evaluator>
struct first_possible<Evaluator, path_list<>>;
template <class Evaluator, class List>
using shape_of = typename first_possible<Evaluator, List>::type::template shape<Evaluator>;

// Computes the voxels of a block by the first path that serves its sample.
template <bool WithLabels, bool OneChannel, class Shape, class Evaluator, class Path, class... Others>
__device__ __forceinline__ void make_by_first(path_list<Path, Others...>, const block_work<Evaluator>& work) {
  if constexpr (Path::template possible<Evaluator>) {
    static_assert(std::is_same_v<Shape, typename Path::template shape<Evaluator>>);
    if constexpr (requires { Path::serves(work.r); }) {
      if (Path::serves(work.r) && Path::template make<WithLabels, OneChannel>(work)) return;
      make_by_first<WithLabels, OneChannel, Shape>(path_list<Others...>{}, work);
    } else {
      Path::template make<WithLabels, OneChannel>(work);
    }
  } else {
    make_by_first<WithLabels, OneChannel, Shape>(path_list<Others...>{}, work);
  }
}

}  // namespace suture::detail
