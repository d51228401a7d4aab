// SPDX-License-Identifier: Apache-2.0
// The function select_patches on a device. It makes the same choices as on the host and writes them to device memory.
#pragma once

#include "../exec/cuda/warp_sums.cuh"
#include "class_counts.cuh"
#include "select_patches.hpp"

namespace suture {

namespace detail {

template <class Reader>
struct select_record {
  Reader reader;
  extent3 extents;
  class_counts table;
  stream random;
  patch_choice* out;
  forcing forced;
};
template <class Reader>
struct select_chunk {
  static constexpr int capacity = 8000 / static_cast<int>(sizeof(select_record<Reader>));
  select_record<Reader> records[capacity];
};

inline constexpr int select_threads = 512;
inline constexpr int select_warps = select_threads / 32;

// Chooses patch blockIdx.x of sample blockIdx.y. One thread draws the rank of a voxel, all of the block search for it.
// If none is found, since the counts are not those of the voxels, the status is `empty`.
template <class Reader>
__global__ void __launch_bounds__(select_threads)
    select_kernel(const __grid_constant__ select_chunk<Reader> chunk, const __grid_constant__ class_ratios ratios,
                  patch_rule rule) {
  require_ieee_arithmetic();
  __shared__ patch_draw draw;
  __shared__ unsigned long long sums[select_warps];
  __shared__ unsigned long long rank_in_block;
  __shared__ long long found_block;
  const select_record<Reader>& r = chunk.records[blockIdx.y];
  const extent3 n = r.extents;
  patch_choice* out = r.out + blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  if (threadIdx.x == 0) {
    draw = draw_patch(rule, ratios.of, r.table.classes, r.table.totals, n, r.random,
                      static_cast<std::int32_t>(blockIdx.x), r.forced);
    patch_choice none = draw.choice;
    if (draw.of_class >= 0) none = {none.start, -1, -1, patch_status::empty};
    *out = none;
    found_block = -1;
  }
  __syncthreads();
  if (draw.of_class < 0) return;

  // Each warp sums a part of the counts. The warp whose part contains the rank then searches it, 32 counts at a time.
  const std::uint32_t* counts = r.table.counts + draw.of_class * r.table.blocks;
  const std::int64_t part = (r.table.blocks + select_warps - 1) / select_warps;
  const std::int64_t begin = min(warp * part, r.table.blocks), end = min(begin + part, r.table.blocks);
  unsigned long long sum = 0;
  for (std::int64_t b = begin + lane; b < end; b += 32) sum += counts[b];
  sum = warp_inclusive_sum(sum);
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  unsigned long long before = 0;
  for (int w = 0; w < warp; ++w) before += sums[w];
  if (draw.rank >= before && draw.rank < before + sums[warp]) {
    unsigned long long rank = draw.rank - before;
    for (std::int64_t b = begin; b < end; b += 32) {
      const unsigned long long count = b + lane < end ? counts[b + lane] : 0;
      const unsigned long long up_to = warp_inclusive_sum(count);
      const unsigned holds = __ballot_sync(0xffffffffu, rank < up_to);
      if (holds != 0) {
        if (lane == __ffs(static_cast<int>(holds)) - 1) {
          found_block = b + lane;
          rank_in_block = rank - (up_to - count);
        }
        break;
      }
      rank -= __shfl_sync(0xffffffffu, up_to, 31);
    }
  }
  __syncthreads();
  if (found_block < 0) return;

  // Each thread sums the weights of a few consecutive voxels of the block that was found.
  constexpr int each = count_block / select_threads;
  const std::int64_t first = found_block * count_block + static_cast<std::int64_t>(threadIdx.x) * each;
  const std::int64_t voxels = n[0] * n[1] * n[2];
  std::uint32_t weight[each];
  unsigned long long own = 0;
  for (int k = 0; k < each; ++k) {
    weight[k] = 0;
    const std::int64_t i = first + k;
    if (i < voxels) {
      const weighted_class c =
          r.reader(static_cast<std::int32_t>(i / n[2] / n[1]), static_cast<std::int32_t>(i / n[2] % n[1]),
                   static_cast<std::int32_t>(i % n[2]));
      weight[k] = c.of_class == draw.of_class ? c.weight : 0;
    }
    own += weight[k];
  }
  const unsigned long long up_to = warp_inclusive_sum(own);
  if (lane == 31) sums[warp] = up_to;
  __syncthreads();
  unsigned long long below = up_to - own;
  for (int w = 0; w < warp; ++w) below += sums[w];
  if (rank_in_block < below || rank_in_block >= below + own) return;
  unsigned long long rank = rank_in_block - below;
  for (int k = 0; k < each; ++k) {
    if (rank < weight[k]) {
      *out = about_voxel(rule, n, draw, first + k);
      return;
    }
    rank -= weight[k];
  }
}

}  // namespace detail

// Queues the selection on the stream of the executor. Views, counts and choices are in device memory; ids and flags are
// in host memory and travel in kernel arguments. No workspace is needed.
template <class Rule, class Classes>
void select_patches(const cuda& exec, const Rule& rule, const Classes& map,
                    std::type_identity_t<std::span<const std::byte>> counts, const patch_draws& s,
                    std::type_identity_t<std::span<patch_choice>> out) {
  const detail::selection sel = detail::check_selection(rule, map, counts, s, out);
  detail::check_for_earlier_error(exec);
  detail::check_classes_memory(detail::memory_check(exec), map, Rule::name, counts.data());
  detail::check_memory(exec, out.data(), {Rule::name}, "choices: ");
  using Reader = decltype(map.reader(0));
  using Chunk = detail::select_chunk<Reader>;
  for (std::size_t first = 0; first < map.samples(); first += Chunk::capacity) {
    const std::size_t n = std::min<std::size_t>(Chunk::capacity, map.samples() - first);
    Chunk chunk;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t i = first + j;
      chunk.records[j] = {map.reader(i),
                          map.grid(i).extents,
                          sel.layout.at(counts.data(), i),
                          detail::patch_stream(s, i),
                          out.data() + i * static_cast<std::size_t>(s.patches),
                          detail::forced_of(s, i)};
    }
    detail::select_kernel<Reader>
        <<<dim3(static_cast<unsigned>(s.patches), static_cast<unsigned>(n)), detail::select_threads, 0, exec.stream>>>(
            chunk, sel.ratios, sel.rule);
    check_cuda(cudaGetLastError(), Rule::name, exec.at);
  }
}

}  // namespace suture
