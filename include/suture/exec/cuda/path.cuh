// SPDX-License-Identifier: Apache-2.0
// Common parts of the paths of the fused kernel. A path is one way to compute the voxels of a block; it has these
// members:
//   name                  the name that tests and benchmarks use
//   possible<Evaluator>   whether the path can be compiled for these operations and element types
//   shape<Evaluator>      how blocks divide the output, and how many of them a multiprocessor is meant to hold
//   serves(record)        whether the path computes this sample; the same for all threads of a block. A path without it
//                         computes every sample, and its `make` returns nothing
//   make<WithLabels, OneChannel>(work)   computes the voxels; all threads of a block call it. Returns false, having
//                         written nothing, if a later path must compute the block
// All paths that a kernel tries have one shape. A block uses the first path of the list that serves its sample.
#pragma once

#include <algorithm>
#include <string_view>

#include "../../evaluate/evaluator.hpp"
#include "../common/path_list.hpp"
#include "tile.cuh"
#include "tuning.hpp"

namespace suture::detail {

// Work of a block. `ahead` points to the normals that its threads share (shared_normals.cuh), or is null.
template <class Evaluator>
struct block_work {
  const Evaluator& evaluate;
  const typename Evaluator::record_type& r;
  std::int32_t sample_index;
  const tile_counts& tiles;
  column_of_thread at;
  const shared_normals* ahead;
};

// Calls use.operator()<B>() for every bound pair B of an evaluator, or only for its images, in device code. each_pair
// (evaluate/evaluator.hpp) does so on the host. nvcc would warn of one function for both when it calls a host lambda.
template <class Evaluator, bool WithLabels, class Use>
__device__ __forceinline__ void each_pair_on_device(const Use& use) {
  const auto one = [&]<std::size_t B>() {
    if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label) use.template operator()<B>();
  };
  [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

// The bytes of a record that describe the levels of label maps. Another kernel writes those (exec/cuda/levels.cuh), so
// they take no registers in the fused kernel and do not count against large_record.
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

// Blocks that compute tiles. Run: the neighbors along x that a thread computes together. Wide: the number of a warp's
// lanes along x. Stacks: whether a block may compute several tiles along y, to share its setup.
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

// Blocks that compute runs of 8 neighbors of a row, numbered through the whole output.
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

// Computes the voxels of a block by the first path that serves its sample and does not return false.
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
