// SPDX-License-Identifier: Apache-2.0
// This file runs the Macenko stain fit on a CUDA device. The fit takes several rounds; each passes over the pixels, to
// sum or to count them. One block fits a tile, with all rounds in one kernel. A fit of several images together launches
// one kernel per round, whose last block evaluates the counts. Results remain in device memory and have the bits of the
// CPU.
#pragma once

#include "macenko_vec4.cuh"

namespace suture {

// One round over the images of this device, for a fit in parts (see macenko_search): writes the counts of the current
// round of `search`, one macenko_counts for all images, to device memory.
struct fit_macenko_round {
  const macenko_search& search;

  static constexpr std::string_view name = "fit_macenko_round";
  using result = macenko_counts;
};

namespace detail {

// Fits one tile per block. For 8-bit tiles some rounds count a sample of the pixels first, and then only the pixels that
// sifting keeps (macenko_vec4.cuh); `lists` has memory for these.
template <class T, class Map, class Selector>
__global__ void __launch_bounds__(stain_threads, 2)
    macenko_tile_kernel(const __grid_constant__ macenko_rules rules, const fit_record* records, Selector select,
                        stain_basis* results, std::uint32_t* lists, std::uint32_t room) {
  require_ieee_arithmetic();
  constexpr bool is_bytes = std::is_same_v<T, std::uint8_t>;
  __shared__ shared_room<macenko_block> block_room;
  __shared__ shared_room<std::conditional_t<is_bytes, sifting, no_sifting>> sifting_room;
  macenko_block& b = block_room.get();
  auto& s = sifting_room.get();
  const fit_record& image = records[blockIdx.x];
  if (threadIdx.x == 0) {
    b.solver.start(rules);
    s.start(rules, image, lists + static_cast<std::size_t>(blockIdx.x) * (room + 4), room);
  }
  __syncthreads();
  make_tables(rules, b);
  while (b.solver.round != no_round) {
    clear_counts(b);
    __syncthreads();
    if constexpr (is_bytes) {
      if (s.on && b.solver.round == sums_round)
        sum_vec4<Map>(rules, select, b, s);
      else
        count_stains<T, Map>(rules, select, s.from, 0, s.from.rows(), s.pixels == stain_pixels::sifted, b);
    } else {
      count_stains<T, Map>(rules, select, image, 0, image.rows(), false, b);
    }
    __syncthreads();
    if constexpr (is_bytes) {
      if (s.pixels == stain_pixels::sampled) {
        sift<Map>(rules, select, image, b, s);
        continue;
      }
    }
    const std::int32_t ended = end_round(rules, b.solver, b.totals, b.bin, [&] { return s.accepts(b.solver); });
    if (ended == stretch_round) make_tables(rules, b);
    if (threadIdx.x == 0) s.choose_for_next(b.solver, ended, image);
  }
  if (threadIdx.x == 0) results[blockIdx.x] = b.solver.finish(rules);
}

// Adds the counts of this block to those of all blocks.
__device__ __forceinline__ void add_counts(const macenko_block& b, macenko_counts& to) {
  const auto* from = reinterpret_cast<const std::uint64_t*>(&b.totals);
  auto* totals = reinterpret_cast<std::uint64_t*>(&to.totals);
  for (unsigned i = threadIdx.x; i < sizeof(macenko_totals) / 8; i += stain_threads) count_up(totals + i, from[i]);
  for (unsigned i = threadIdx.x; i < macenko_counts::bins; i += stain_threads)
    count_up(to.bin + i, static_cast<std::uint64_t>(b.bin[i]));
}

// State that the kernels of several images share.
struct macenko_group {
  macenko_solver solver;
  macenko_counts counts;
  unsigned int blocks_done;
};

template <class T, class Map, class Selector>
__device__ __forceinline__ void count_stain_block(const macenko_rules& rules, const fit_record* records,
                                                  const Selector& select, macenko_block& b) {
  make_tables(rules, b);
  clear_counts(b);
  __syncthreads();
  const fit_record& r = records[blockIdx.y];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * r.rows_per_block;
  count_stains<T, Map>(rules, select, r, begin, min(begin + r.rows_per_block, r.rows()), false, b);
  __syncthreads();
}

template <class T, class Map, class Selector>
__global__ void __launch_bounds__(stain_threads, 2)
    macenko_group_kernel(const __grid_constant__ macenko_rules rules, const fit_record* records, Selector select,
                         bool first, macenko_group* group, stain_basis* result) {
  require_ieee_arithmetic();
  __shared__ shared_room<macenko_block> room;
  __shared__ bool last;
  macenko_block& b = room.get();
  if (threadIdx.x == 0) {
    if (first)
      b.solver.start(rules);
    else
      b.solver = group->solver;
  }
  __syncthreads();
  if (b.solver.round == no_round) return;
  count_stain_block<T, Map>(rules, records, select, b);
  add_counts(b, group->counts);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&group->blocks_done, 1u) + 1 == gridDim.x * gridDim.y;
  __syncthreads();
  if (!last) return;
  __threadfence();
  end_round(rules, b.solver, group->counts.totals, group->counts.bin, [] { return true; });
  auto* counts = reinterpret_cast<std::uint64_t*>(&group->counts);
  for (unsigned i = threadIdx.x; i < sizeof(macenko_counts) / 8; i += stain_threads) counts[i] = 0;
  if (threadIdx.x == 0) {
    group->solver = b.solver;
    group->blocks_done = 0;
    if (b.solver.round == no_round) *result = b.solver.finish(rules);
  }
}

template <class T, class Map, class Selector>
__global__ void __launch_bounds__(stain_threads, 2)
    macenko_round_kernel(const __grid_constant__ macenko_rules rules, const __grid_constant__ macenko_solver solver,
                         const fit_record* records, Selector select, macenko_counts* counts) {
  require_ieee_arithmetic();
  __shared__ shared_room<macenko_block> room;
  macenko_block& b = room.get();
  if (threadIdx.x == 0) b.solver = solver;
  __syncthreads();
  count_stain_block<T, Map>(rules, records, select, b);
  add_counts(b, *counts);
}

// Layout of the workspace: the records, then the state of a group or the lists of tiles.
struct stain_workspace {
  std::size_t room;   // pixels that fit a list, which has memory for four more
  std::size_t rest;   // offset of the state or the lists, in bytes
  std::size_t bytes;  // size of the workspace
};
template <class T>
stain_workspace workspace_of_stains(std::span<const view<const T>> images, bool group) {
  stain_workspace l{0, aligned(images.size() * sizeof(fit_record)), 0};
  std::int64_t most = 0;
  if (std::is_same_v<T, std::uint8_t> && !group)
    for (const auto& image : images) most = std::max(most, image.grid.voxels());
  l.room = static_cast<std::size_t>(std::min<std::int64_t>(most / 8, 65536));
  l.bytes = l.rest + aligned(group ? sizeof(macenko_group) : images.size() * (l.room + 4) * sizeof(std::uint32_t));
  return l;
}

// Uploads the records of the images, and returns the grid of kernels over all of them.
template <class T, class Selection>
dim3 upload_stains(const cuda& exec, std::string_view name, std::span<const view<const T>> images,
                   const Selection& selection, fit_record* records) {
  const auto [list, blocks] = fit_records(images, selection, 1, rows_per_block);
  upload_list(exec, name, list, records);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(images.size())};
}

// Checks the arguments of a fit. `divided` tells whether the blocks of a kernel share an image.
template <class T, class Selection, class Result>
void check_stains_on_device(const cuda& exec, std::string_view name, std::span<const view<const T>> images,
                            const Selection& selection, std::span<Result> results, bool divided, std::size_t bytes) {
  check_stain_images(name, images, selection);
  // The counters of a block have 32 bits.
  for (std::size_t i = 0; i < images.size(); ++i)
    require(divided || images[i].grid.voxels() < (std::int64_t{1} << 30), {name, static_cast<std::int64_t>(i)},
            "extents ", images[i].grid.extents, " exceed 2^30 pixels; fit such an image `together`");
  require(images.size() <= (divided ? 65535u : 2147483647u), {name}, images.size(),
          " images exceed the grid of a kernel");
  check_device_workspace(exec, bytes, {name}, "workspace: ");
  each_fit_pointer(memory_check(exec), name, images, selection, results);
}

}  // namespace detail

template <class T>
std::size_t fit_workspace_bytes(const fit_macenko& settings, std::span<const view<const T>> images) {
  return detail::workspace_of_stains(images, settings.together).bytes;
}
template <class T>
std::size_t fit_workspace_bytes(const fit_macenko_round&, std::span<const view<const T>> images) {
  return detail::workspace_of_stains(images, true).bytes;
}

// Writes one result per image, or one for all if `together`. Up to 363 images take two kernels, or 6 + `refinements` if
// `together`; each further 363 take one more.
template <class T, class Selection>
void fit_on_device(const cuda& exec, const fit_macenko& settings, std::span<const view<const T>> images,
                   const Selection& selection, std::span<stain_basis> results) {
  using namespace detail;
  using Map = typename Selection::map_type;
  const macenko_rules rules = rules_of(settings);
  const std::size_t groups = check_stain_results(settings, images.size(), results.size());
  const stain_workspace layout = workspace_of_stains(images, settings.together);
  check_stains_on_device(exec, fit_macenko::name, images, selection, results, settings.together, layout.bytes);
  if (groups == 0) return;
  require(results.data() != nullptr, {fit_macenko::name}, "null pointer for the results");
  auto* records = reinterpret_cast<fit_record*>(exec.workspace.data());
  const dim3 grid = upload_stains(exec, fit_macenko::name, images, selection, records);
  const auto select = selection.select();
  if constexpr (is_stain_image<T>) {
    std::byte* const rest = exec.workspace.data() + layout.rest;
    if (settings.together) {
      auto* group = reinterpret_cast<macenko_group*>(rest);
      check_cuda(cudaMemsetAsync(static_cast<void*>(group), 0, sizeof(*group), exec.stream), fit_macenko::name,
                 exec.at);
      const int rounds = 5 + settings.refinements;
      for (int round = 0; round < rounds; ++round)
        macenko_group_kernel<T, Map>
            <<<grid, stain_threads, 0, exec.stream>>>(rules, records, select, round == 0, group, results.data());
    } else {
      macenko_tile_kernel<T, Map><<<static_cast<unsigned>(groups), stain_threads, 0, exec.stream>>>(
          rules, records, select, results.data(), reinterpret_cast<std::uint32_t*>(rest),
          static_cast<std::uint32_t>(layout.room));
    }
    check_cuda(cudaGetLastError(), fit_macenko::name, exec.at);
  }
}

template <class T, class Selection>
void fit_on_device(const cuda& exec, const fit_macenko_round& settings, std::span<const view<const T>> images,
                   const Selection& selection, std::span<macenko_counts> results) {
  using namespace detail;
  const site where{fit_macenko_round::name};
  require(!settings.search.done(), where, "the fit is over");
  require(results.size() == 1 && results.data() != nullptr, where, "room for one result is needed");
  check_stains_on_device(exec, where.operation, images, selection, results, true,
                         workspace_of_stains(images, true).bytes);
  check_cuda(cudaMemsetAsync(static_cast<void*>(results.data()), 0, sizeof(macenko_counts), exec.stream),
             where.operation, exec.at);
  if (images.empty()) return;
  auto* records = reinterpret_cast<fit_record*>(exec.workspace.data());
  const dim3 grid = upload_stains(exec, where.operation, images, selection, records);
  if constexpr (is_stain_image<T>) {
    macenko_round_kernel<T, typename Selection::map_type><<<grid, stain_threads, 0, exec.stream>>>(
        settings.search.rules(), settings.search.solver(), records, selection.select(), results.data());
    check_cuda(cudaGetLastError(), where.operation, exec.at);
  }
}

}  // namespace suture
