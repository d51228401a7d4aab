// SPDX-License-Identifier: Apache-2.0
// A round of a Macenko fit on a CUDA device: the counts of a block, and their evaluation by a block.
#pragma once

#include "../exec/cuda/warp_sums.cuh"
#include "launch.cuh"
#include "macenko.hpp"

namespace suture::detail {

inline constexpr int stain_threads = 512;

struct macenko_block {
  macenko_solver solver;
  macenko_totals totals;
  std::uint32_t bin[macenko_counts::bins];
  // Tables of the 8-bit levels: optical densities, the same in fixed point, linear light.
  float density[256];
  std::int32_t fixed[256];
  std::uint16_t light[256];
};

__device__ __forceinline__ void make_tables(const macenko_rules& rules, macenko_block& b) {
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += stain_threads) {
    b.density[i] = rules.density.density(static_cast<float>(i));
    b.fixed[i] = fixed_density(b.density[i]);
    if (rules.by_light()) b.light[i] = b.solver.light(rules, i);
  }
}

__device__ __forceinline__ void clear_counts(macenko_block& b) {
  auto* totals = reinterpret_cast<std::uint64_t*>(&b.totals);
  for (unsigned i = threadIdx.x; i < sizeof(macenko_totals) / 8; i += stain_threads) totals[i] = 0;
  for (unsigned i = threadIdx.x; i < macenko_counts::bins; i += stain_threads) b.bin[i] = 0;
}

// Sums of one thread in the first round.
struct partial_totals {
  std::int64_t sum[3] = {}, product[9] = {};
  std::uint32_t stained = 0, pixels = 0, excluded = 0, undeclared = 0;

  // Whole warps call this.
  __device__ __forceinline__ void add_to(macenko_totals& to) {
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

// Counts the pixels of rows begin .. end - 1 for one round. `selected` states that all pixels are selected and that
// there is no map.
template <macenko_round round, class T, class Map, class Selector>
__device__ __forceinline__ void count_round(const macenko_rules& rules, const Selector& select, const fit_record& r,
                                            std::int64_t begin, std::int64_t end, bool selected, macenko_block& b) {
  constexpr bool is_bytes = std::is_same_v<T, std::uint8_t>;
  constexpr bool sums = round == sums_round || round == refinement;
  constexpr bool coarse = round == coarse_angles || round == coarse_concentrations;
  const macenko_solver& solver = b.solver;
  const bool by_light = rules.fit.stained >= stained_rule::luminosity;
  const bool all = round >= coarse_concentrations && rules.fit.concentrations_of_all;
  const std::int64_t ny = r.extents[1];
  const int width = r.extents[2] >= 1024 ? stain_threads : 32;
  const int lane = static_cast<int>(threadIdx.x) % width, line = static_cast<int>(threadIdx.x) / width;
  partial_totals p;
  int since_added = 0;
  for (std::int64_t row = begin + line; row < end; row += stain_threads / width) {
    const std::int64_t y = row % ny, z = row / ny;
    const T* values = static_cast<const T*>(r.data) + z * r.stride[0] + y * r.stride[1];
    const Map* map = static_cast<const Map*>(r.map) + z * r.map_stride[0] + y * r.map_stride[1];
    for (std::int32_t start = 0; start < r.extents[2]; start += width) {
      if (sums && ++since_added > 2048) {  // the same in all lanes of a warp
        p.add_to(b.totals);
        since_added = 1;
      }
      const std::int32_t x = start + lane;
      if (x >= r.extents[2]) continue;
      Map label = 0;
      if (r.map != nullptr) label = map[x * r.map_stride[2]];
      const verdict v = selected ? verdict::selected : select(std::uint8_t{0}, label);
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
    p.add_to(b.totals);
  }
}

// Calls count_round for the current round of the solver.
template <class T, class Map, class Selector>
__device__ __forceinline__ void count_stains(const macenko_rules& rules, const Selector& select, const fit_record& r,
                                             std::int64_t begin, std::int64_t end, bool selected, macenko_block& b) {
  switch (b.solver.round) {
    case stretch_round:
      return count_round<stretch_round, T, Map>(rules, select, r, begin, end, selected, b);
    case sums_round:
      return count_round<sums_round, T, Map>(rules, select, r, begin, end, selected, b);
    case coarse_angles:
      return count_round<coarse_angles, T, Map>(rules, select, r, begin, end, selected, b);
    case fine_angles:
      return count_round<fine_angles, T, Map>(rules, select, r, begin, end, selected, b);
    case refinement:
      return count_round<refinement, T, Map>(rules, select, r, begin, end, selected, b);
    case coarse_concentrations:
      return count_round<coarse_concentrations, T, Map>(rules, select, r, begin, end, selected, b);
    default:
      return count_round<fine_concentrations, T, Map>(rules, select, r, begin, end, selected, b);
  }
}

// Evaluates the counts of a round by the whole block, and returns the round that has ended. accept(), called by one
// thread, tests whether the digits that a search has found are valid; if they are not, it has corrected the solver.
template <class Count, class Accept>
__device__ __forceinline__ std::int32_t end_round(const macenko_rules& rules, macenko_solver& solver,
                                                  const macenko_totals& totals, const Count* bins,
                                                  const Accept& accept) {
  const bool searches = solver.searches();
  const std::int32_t round = solver.round;
  __syncthreads();  // all have read the solver before thread 0 changes it
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
    if (threadIdx.x == 0 && accept()) solver.conclude_digits(rules);
  } else if (threadIdx.x == 0) {
    if (round == stretch_round)
      solver.conclude_levels(bins);
    else if (round == refinement)
      solver.conclude_refinement(rules, totals);
    else
      solver.conclude_sums(rules, totals);
  }
  __syncthreads();
  return round;
}

}  // namespace suture::detail
