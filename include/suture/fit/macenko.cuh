// SPDX-License-Identifier: Apache-2.0
// The Macenko stain fit on a CUDA device. Tiles: one block each, all rounds in one kernel. Images together: one kernel
// a round, whose last block draws the conclusions. The results stay there and have the bits of the CPU.
#pragma once

#include "gather.cuh"
#include "macenko.hpp"

namespace suture {

// One round over the images of this device, for a fit in parts (see macenko_search): leaves the counts of the round at
// which `search` stands, one macenko_counts for all images, in device memory.
struct fit_macenko_round {
  const macenko_search& search;

  static constexpr std::string_view name = "fit_macenko_round";
  using result = macenko_counts;
};

namespace detail {

inline constexpr int stain_threads = 512;

struct macenko_block {
  macenko_solver solver;
  macenko_totals totals;
  std::uint32_t bin[macenko_counts::bins];
  float density[256];
  std::int32_t fixed[256];
  std::uint16_t light[256];
};

__device__ __forceinline__ std::int64_t warp_sum(std::int64_t x) {
  for (int step = 16; step > 0; step /= 2)
    x += static_cast<std::int64_t>(__shfl_xor_sync(0xffffffffu, static_cast<counter>(x), step));
  return x;
}

__device__ __forceinline__ void make_tables(const macenko_rules& rules, macenko_block& b) {
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += stain_threads) {
    b.density[i] = rules.density.density(static_cast<float>(i));
    b.fixed[i] = fixed_density(b.density[i]);
    b.light[i] = b.solver.light(rules, i);
  }
}

__device__ __forceinline__ void clear_counts(macenko_block& b) {
  auto* totals = reinterpret_cast<std::uint64_t*>(&b.totals);
  for (unsigned i = threadIdx.x; i < sizeof(macenko_totals) / 8; i += stain_threads) totals[i] = 0;
  for (unsigned i = threadIdx.x; i < macenko_counts::bins; i += stain_threads) b.bin[i] = 0;
}

// What a thread holds of the first round.
struct partial_totals {
  std::int64_t sum[3] = {}, product[9] = {};
  std::uint32_t stained = 0, pixels = 0, excluded = 0, undeclared = 0;

  // By whole warps.
  __device__ __forceinline__ void give(macenko_totals& to) {
    const bool first = threadIdx.x % 32 == 0;
    const auto add = [&](auto* where, std::int64_t amount) {
      const std::int64_t all = warp_sum(amount);
      if (first) count_up(where, static_cast<std::remove_pointer_t<decltype(where)>>(all));
    };
    for (int k = 0; k < 3; ++k) add(&to.sum[k], sum[k]);
    for (int k = 0; k < 9; ++k) {
      add(&to.low[k], product[k] & 0xffffffff);
      add(&to.high[k], product[k] >> 32);
    }
    add(&to.stained, stained);
    add(&to.pixels, pixels);
    add(&to.excluded, excluded);
    add(&to.undeclared, undeclared);
    *this = {};
  }
};

// Counts the pixels of rows begin .. end - 1 for one round.
template <macenko_round round, class T, class Map, class Selector>
__device__ __forceinline__ void count_round(const macenko_rules& rules, const Selector& select, const fit_record& r,
                                            std::int64_t begin, std::int64_t end, macenko_block& b) {
  constexpr bool is_bytes = std::is_same_v<T, std::uint8_t>;
  constexpr bool sums = round == sums_round || round == refinement;
  constexpr bool coarse = round == coarse_angles || round == coarse_concentrations;
  const macenko_solver& solver = b.solver;
  const bool by_light = rules.how.stained >= stained_rule::luminosity;
  const bool all = round >= coarse_concentrations && rules.how.concentrations_of_all;
  const std::int64_t ny = r.extents[1];
  const int width = r.extents[2] >= 1024 ? stain_threads : 32;
  const int lane = static_cast<int>(threadIdx.x) % width, line = static_cast<int>(threadIdx.x) / width;
  partial_totals p;
  int held = 0;
  for (std::int64_t row = begin + line; row < end; row += stain_threads / width) {
    const std::int64_t y = row % ny, z = row / ny;
    const T* values = static_cast<const T*>(r.data) + z * r.stride[0] + y * r.stride[1];
    const Map* map = static_cast<const Map*>(r.map) + z * r.map_stride[0] + y * r.map_stride[1];
    for (std::int32_t start = 0; start < r.extents[2]; start += width) {
      if (sums && ++held > 2048) {  // the same in all lanes of a warp
        p.give(b.totals);
        held = 1;
      }
      const std::int32_t x = start + lane;
      if (x >= r.extents[2]) continue;
      Map label = 0;
      if (r.map != nullptr) label = map[x * r.map_stride[2]];
      const verdict v = select(std::uint8_t{0}, label);
      if (v != verdict::selected) {
        p.undeclared += v == verdict::undeclared ? 1 : 0;
        continue;
      }
      float density[3];
      std::uint8_t level[3];
      bool finite = true;
      for (int c = 0; c < 3; ++c) {
        const T value = values[c * r.channel_stride + x * r.stride[2]];
        if constexpr (is_bytes) {
          level[c] = value;
          density[c] = b.density[value];
        } else {
          const float intensity = fma(storage<T>::load(value), rules.to_255, 0.0f);
          finite = finite && (float_bits(intensity) & 0x7f800000u) != 0x7f800000u;
          level[c] = storage<std::uint8_t>::store(intensity);
          density[c] = rules.density.density(intensity);
        }
      }
      if (!finite) {
        ++p.excluded;
        continue;
      }
      if constexpr (round == stretch_round) {
        for (int c = 0; c < 3; ++c) atomicAdd(b.bin + level[c], 1u);
        continue;
      }
      const bool stained =
          by_light ? luminance(b.light[level[0]], b.light[level[1]], b.light[level[2]]) <= rules.luminance_limit
                   : solver.stained(rules, density[0], density[1], density[2]);
      if constexpr (round == sums_round) ++p.pixels;
      if (!stained && !all) continue;
      if constexpr (round == sums_round) {
        ++p.stained;
        std::int64_t fixed[3];
        for (int c = 0; c < 3; ++c) {
          if constexpr (is_bytes)
            fixed[c] = b.fixed[level[c]];
          else
            fixed[c] = fixed_density(density[c]);
          p.sum[c] += fixed[c];
        }
        p.product[0] += fixed[0] * fixed[0];
        p.product[1] += fixed[0] * fixed[1];
        p.product[2] += fixed[0] * fixed[2];
        p.product[3] += fixed[1] * fixed[1];
        p.product[4] += fixed[1] * fixed[2];
        p.product[5] += fixed[2] * fixed[2];
      } else if constexpr (round == refinement) {
        const stain_unmixing::pair mixture = solver.unmixing.mixture<true>(density[0], density[1], density[2]);
        const std::int64_t h = fixed_density(mixture.c[0]), e = fixed_density(mixture.c[1]);
        p.product[0] += h * h;
        p.product[1] += h * e;
        p.product[2] += e * e;
        for (int c = 0; c < 3; ++c) {
          const std::int64_t fixed = fixed_density(density[c]);
          p.product[3 + 2 * c] += fixed * h;
          p.product[4 + 2 * c] += fixed * e;
        }
      } else if constexpr (round <= fine_angles) {
        const std::uint32_t key = solver.angle_key(density[0], density[1], density[2]);
        const std::int32_t bin = coarse ? static_cast<std::int32_t>(key >> 11) : solver.fine_bin(key, 0, 4);
        if (bin >= 0) atomicAdd(b.bin + bin, 1u);
      } else {
        const stain_unmixing::pair c = solver.unmixing(density[0], density[1], density[2]);
        for (int k = 0; k < 2; ++k) {
          const std::uint32_t key = macenko_key(c.c[k], solver.scale);
          const std::int32_t bin =
              coarse ? k * coarse_bins + static_cast<std::int32_t>(key >> 11) : solver.fine_bin(key, 2 * k, 2);
          if (bin >= 0) atomicAdd(b.bin + bin, 1u);
        }
      }
    }
  }
  if constexpr (sums) {
    __syncwarp();
    p.give(b.totals);
  }
}

// The same for the round at which the solver stands.
template <class T, class Map, class Selector>
__device__ __forceinline__ void count_stains(const macenko_rules& rules, const Selector& select, const fit_record& r,
                                             std::int64_t begin, std::int64_t end, macenko_block& b) {
  switch (b.solver.round) {
    case stretch_round:
      return count_round<stretch_round, T, Map>(rules, select, r, begin, end, b);
    case sums_round:
      return count_round<sums_round, T, Map>(rules, select, r, begin, end, b);
    case coarse_angles:
      return count_round<coarse_angles, T, Map>(rules, select, r, begin, end, b);
    case fine_angles:
      return count_round<fine_angles, T, Map>(rules, select, r, begin, end, b);
    case refinement:
      return count_round<refinement, T, Map>(rules, select, r, begin, end, b);
    case coarse_concentrations:
      return count_round<coarse_concentrations, T, Map>(rules, select, r, begin, end, b);
    default:
      return count_round<fine_concentrations, T, Map>(rules, select, r, begin, end, b);
  }
}

// The counter of n, a power of two, that holds a rank, found by one warp; the rank becomes that within the counter.
template <class Count>
__device__ __forceinline__ std::uint32_t locate_rank(const Count* counts, int n, std::uint64_t& rank) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t first = 0;
  while (n > 1) {
    const int each = n > 32 ? n / 32 : 1;
    std::uint64_t sum = 0;
    if (lane * each < n)
      for (int i = 0; i < each; ++i) sum += counts[first + static_cast<std::uint32_t>(lane * each + (i + lane) % each)];
    std::uint64_t before = sum;
    for (int step = 1; step < 32; step *= 2) {
      const auto other = static_cast<std::uint64_t>(__shfl_up_sync(0xffffffffu, static_cast<counter>(before), step));
      if (lane >= step) before += other;
    }
    before -= sum;
    const bool here = rank >= before && rank < before + sum;
    const int owner = max(__ffs(static_cast<int>(__ballot_sync(0xffffffffu, here))) - 1, 0);
    rank -= static_cast<std::uint64_t>(__shfl_sync(0xffffffffu, static_cast<counter>(before), owner));
    first += static_cast<std::uint32_t>(owner * each);
    n = each;
  }
  return first;
}

// Ends a round, which it returns: by the whole block, with the counts of all blocks.
template <class Count>
__device__ __forceinline__ std::int32_t end_round(const macenko_rules& rules, macenko_solver& solver,
                                                  const macenko_totals& totals, const Count* bins) {
  const bool searches = solver.searches();
  const std::int32_t round = solver.round;
  __syncthreads();  // before thread 0 moves on
  if (searches) {
    const int r = static_cast<int>(threadIdx.x) / 32;
    if (r < 4) {
      const auto where = solver.bins_of(r);
      std::uint64_t rest = solver.rank[r];
      const std::uint32_t digit = locate_rank(bins + where.first, where.n, rest);
      __syncwarp();
      if (threadIdx.x % 32 == 0) solver.found(r, digit, rest);
    }
    __syncthreads();
    if (threadIdx.x == 0) solver.take_digits(rules);
  } else if (threadIdx.x == 0) {
    if (round == stretch_round)
      solver.take_levels(bins);
    else if (round == refinement)
      solver.take_refinement(rules, totals);
    else
      solver.take_sums(rules, totals);
  }
  __syncthreads();
  return round;
}

template <class T, class Map, class Selector>
__global__ void __launch_bounds__(stain_threads, 2)
    macenko_tile_kernel(const __grid_constant__ macenko_rules rules, const fit_record* records, Selector select,
                        stain_basis* results) {
  require_ieee_arithmetic();
  __shared__ shared_room<macenko_block> room;
  macenko_block& b = room.get();
  if (threadIdx.x == 0) b.solver.start(rules);
  __syncthreads();
  make_tables(rules, b);
  const fit_record& r = records[blockIdx.x];
  const std::int64_t rows = static_cast<std::int64_t>(r.extents[0]) * r.extents[1];
  while (b.solver.round != no_round) {
    clear_counts(b);
    __syncthreads();
    count_stains<T, Map>(rules, select, r, 0, rows, b);
    __syncthreads();
    if (end_round(rules, b.solver, b.totals, b.bin) == stretch_round) make_tables(rules, b);
  }
  if (threadIdx.x == 0) results[blockIdx.x] = b.solver.finish(rules);
}

// The counts of this block added to those of all.
__device__ __forceinline__ void give_counts(const macenko_block& b, macenko_counts& to) {
  const auto* from = reinterpret_cast<const std::uint64_t*>(&b.totals);
  auto* totals = reinterpret_cast<std::uint64_t*>(&to.totals);
  for (unsigned i = threadIdx.x; i < sizeof(macenko_totals) / 8; i += stain_threads) count_up(totals + i, from[i]);
  for (unsigned i = threadIdx.x; i < macenko_counts::bins; i += stain_threads)
    count_up(to.bin + i, static_cast<std::uint64_t>(b.bin[i]));
}

// What the kernels of images together share.
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
  const std::int64_t rows = static_cast<std::int64_t>(r.extents[0]) * r.extents[1];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * r.rows_per_block;
  count_stains<T, Map>(rules, select, r, begin, min(begin + r.rows_per_block, rows), b);
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
  give_counts(b, group->counts);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&group->blocks_done, 1u) + 1 == gridDim.x * gridDim.y;
  __syncthreads();
  if (!last) return;
  __threadfence();
  end_round(rules, b.solver, group->counts.totals, group->counts.bin);
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
  give_counts(b, *counts);
}

struct stain_layout {
  std::size_t group, bytes;
};
inline stain_layout layout_of_stains(std::size_t samples, bool group) {
  const std::size_t records = aligned(samples * sizeof(fit_record));
  return {records, records + (group ? aligned(sizeof(macenko_group)) : 0)};
}

// Records of the images on the device; the grid of kernels over all of them.
template <class T, class Selection>
dim3 upload_stains(const cuda& exec, std::string_view name, std::span<const view<const T>> images,
                   const Selection& selection, fit_record* records) {
  std::int64_t blocks = 1;
  std::vector<fit_record> list;
  for (std::size_t i = 0; i < images.size(); ++i) {
    fit_record r = record_of(images[i]);
    if constexpr (Selection::has_map) {
      const auto map = selection.map(i);
      r.map = map.data;
      for (int k = 0; k < 3; ++k) r.map_stride[k] = map.stride[k];
    }
    r.rows_per_block = std::max<std::int32_t>(1, voxels_per_block / r.extents[2]);
    const std::int64_t rows = images[i].grid.extents[0] * images[i].grid.extents[1];
    blocks = std::max(blocks, (rows + r.rows_per_block - 1) / r.rows_per_block);
    list.push_back(r);
  }
  upload_records(exec, name, list, records);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(images.size())};
}

template <class T, class Selection>
void check_stains_on_device(const cuda& exec, std::string_view name, std::span<const view<const T>> images,
                            const Selection& selection, bool divided, std::size_t bytes) {
  check_stain_images(name, images, selection);
  // Counters of a block are 32-bit, and so are those of blocks.
  for (std::size_t i = 0; i < images.size(); ++i)
    require(divided || images[i].grid.voxels() < (std::int64_t{1} << 30), {name, static_cast<std::int64_t>(i)},
            "extents ", images[i].grid.extents, " exceed 2^30 pixels; fit such an image `together`");
  require(images.size() <= (divided ? 65535u : 2147483647u), {name}, images.size(),
          " images exceed the grid of a kernel");
  check_workspace(exec.workspace.data(), exec.workspace.size(), {.bytes = bytes});
}

}  // namespace detail

// Device memory a fit of these images needs.
template <class Images>
std::size_t workspace_bytes(const fit_macenko& how, const Images& images) {
  return detail::layout_of_stains(detail::constant_views(images).size(), how.together).bytes;
}
template <class Images>
std::size_t workspace_bytes(const fit_macenko_round&, const Images& images) {
  return detail::layout_of_stains(detail::constant_views(images).size(), false).bytes;
}

// Queues a fit on a stream. Images, maps and results lie in device memory: one result per image, or one `together`. Two
// kernels up to 363 tiles, one more for each further 363; six and `refinements` more `together`. Everything is checked
// first; when it throws for bad input, nothing has been launched.
template <class Images, class Selection>
void fit(const cuda& exec, const fit_macenko& how, const Images& images, const Selection& selection,
         std::span<stain_basis> results) {
  using T = std::remove_const_t<detail::view_element_t<Images>>;
  using Map = typename Selection::map_type;
  const auto views = detail::constant_views(images);
  const std::span<const view<const T>> all(views);
  const detail::macenko_rules rules = detail::rules_of(how);
  const std::size_t groups = how.together ? (all.empty() ? 0 : 1) : all.size();
  require(results.size() == groups, {fit_macenko::name}, results.size(), " results given, ", groups, " needed: one",
          how.together ? " for all images" : " per image");
  detail::check_stains_on_device(exec, fit_macenko::name, all, selection, how.together,
                                 detail::layout_of_stains(all.size(), how.together).bytes);
  if (groups == 0) return;
  require(results.data() != nullptr, {fit_macenko::name}, "null pointer for the results");
  auto* records = reinterpret_cast<detail::fit_record*>(exec.workspace.data());
  const dim3 grid = detail::upload_stains(exec, fit_macenko::name, all, selection, records);
  const auto select = selection.select();
  if constexpr (detail::is_stain_image<T>) {
    if (how.together) {
      auto* group = reinterpret_cast<detail::macenko_group*>(exec.workspace.data() +
                                                             detail::layout_of_stains(all.size(), true).group);
      check_cuda(cudaMemsetAsync(static_cast<void*>(group), 0, sizeof(*group), exec.stream), fit_macenko::name,
                 exec.at);
      const int rounds = 5 + how.refinements;
      for (int round = 0; round < rounds; ++round)
        detail::macenko_group_kernel<T, Map><<<grid, detail::stain_threads, 0, exec.stream>>>(
            rules, records, select, round == 0, group, results.data());
    } else {
      detail::macenko_tile_kernel<T, Map><<<static_cast<unsigned>(groups), detail::stain_threads, 0, exec.stream>>>(
          rules, records, select, results.data());
    }
    check_cuda(cudaGetLastError(), fit_macenko::name, exec.at);
  }
}

template <class Images, class Selection>
void fit(const cuda& exec, const fit_macenko_round& how, const Images& images, const Selection& selection,
         std::span<macenko_counts> results) {
  using T = std::remove_const_t<detail::view_element_t<Images>>;
  using Map = typename Selection::map_type;
  const site where{fit_macenko_round::name};
  const auto views = detail::constant_views(images);
  const std::span<const view<const T>> all(views);
  require(!how.search.done(), where, "the fit is over");
  require(results.size() == 1 && results.data() != nullptr, where, "room for one result is needed");
  detail::check_stains_on_device(exec, fit_macenko_round::name, all, selection, true,
                                 detail::layout_of_stains(all.size(), false).bytes);
  check_cuda(cudaMemsetAsync(static_cast<void*>(results.data()), 0, sizeof(macenko_counts), exec.stream),
             where.operation, exec.at);
  if (all.empty()) return;
  auto* records = reinterpret_cast<detail::fit_record*>(exec.workspace.data());
  const dim3 grid = detail::upload_stains(exec, fit_macenko_round::name, all, selection, records);
  if constexpr (detail::is_stain_image<T>) {
    detail::macenko_round_kernel<T, Map><<<grid, detail::stain_threads, 0, exec.stream>>>(
        how.search.rules(), how.search.solver(), records, selection.select(), results.data());
    check_cuda(cudaGetLastError(), where.operation, exec.at);
  }
}

}  // namespace suture
