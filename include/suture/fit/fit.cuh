// SPDX-License-Identifier: Apache-2.0
// Fits on a CUDA device: the results stay there, for operations of later launches on the same stream to read. A fit
// allocates nothing, synchronises nothing, copies nothing back and can be captured in a CUDA graph. All counters are
// integers, so no launch shape shows in any bit, and the bits are those of the CPU.
#pragma once

#include "../exec/cuda.cuh"
#include "otsu.hpp"
#include "percentiles.hpp"

namespace suture {

namespace detail {

// One sample as the kernels see it.
struct fit_record {
  const void* data;
  const void* map;
  std::int64_t stride[3], map_stride[3];
  std::int64_t channel_stride;
  std::int32_t extents[3];
  std::int32_t rows_per_block;
};

struct fit_chunk {
  static constexpr int capacity = 32;
  fit_record records[capacity];
};

inline constexpr int fit_threads = 256;
inline constexpr std::int32_t voxels_per_block = 65536;

template <class Chunk>
__global__ void __launch_bounds__(Chunk::capacity)
    fit_upload_kernel(const __grid_constant__ Chunk chunk, fit_record* records, int count) {
  if (threadIdx.x < static_cast<unsigned>(count)) records[threadIdx.x] = chunk.records[threadIdx.x];
}

// Where the groups of a fit lie: group = sample * groups_per_sample + channel, or one per sample with all channels.
struct fit_shape {
  const fit_record* records;
  std::int32_t channels;
  bool pooled;
  std::int64_t first_group;

  __device__ std::int64_t group() const { return first_group + blockIdx.y; }
};

// visit(value, verdict) for every voxel of this block's rows. Warps take rows in turn; long rows take the whole block.
template <class T, class Map, class Selector, class Visit>
__device__ __forceinline__ void visit_voxels(const fit_shape& shape, const Selector& select, const Visit& visit) {
  const std::int64_t group = shape.group();
  const fit_record& r = shape.records[shape.pooled ? group : group / shape.channels];
  const std::int64_t ny = r.extents[1], nz = r.extents[0];
  const std::int64_t rows = ny * nz * (shape.pooled ? shape.channels : 1);
  const std::int64_t first_channel = shape.pooled ? 0 : group % shape.channels;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * r.rows_per_block;
  const std::int64_t end = min(begin + r.rows_per_block, rows);
  const int width = r.extents[2] >= 1024 ? fit_threads : 32;
  const int lane = static_cast<int>(threadIdx.x) % width, line = static_cast<int>(threadIdx.x) / width;
  for (std::int64_t row = begin + line; row < end; row += fit_threads / width) {
    const std::int64_t y = row % ny, z = row / ny % nz, channel = first_channel + row / ny / nz;
    const T* values = static_cast<const T*>(r.data) + channel * r.channel_stride + z * r.stride[0] + y * r.stride[1];
    const Map* map = static_cast<const Map*>(r.map) + z * r.map_stride[0] + y * r.map_stride[1];
    for (std::int32_t x = lane; x < r.extents[2]; x += width) {
      const T value = values[x * r.stride[2]];
      Map label = 0;
      if (r.map != nullptr) label = map[x * r.map_stride[2]];
      visit(value, select(value, label));
    }
  }
}

// Shared memory for a type whose members have initial values.
template <class T>
struct shared_room {
  alignas(T) unsigned char bytes[sizeof(T)];
  __device__ __forceinline__ T& get() { return *reinterpret_cast<T*>(bytes); }
};

using counter = unsigned long long;

__device__ __forceinline__ void count_up(std::uint64_t* where, std::uint64_t amount) {
  if (amount != 0) atomicAdd(reinterpret_cast<counter*>(where), static_cast<counter>(amount));
}
__device__ __forceinline__ void count_up(std::int64_t* where, std::int64_t amount) {
  if (amount != 0) atomicAdd(reinterpret_cast<counter*>(where), static_cast<counter>(amount));
}

// A run of equal indices held back, so that a block of air costs one atomic operation and not one per voxel.
struct run_of_equals {
  std::int32_t index = -1;
  std::uint32_t length = 0;

  template <class Add>
  __device__ __forceinline__ void add(std::int32_t next, const Add& add) {
    if (next == index) {
      ++length;
      return;
    }
    end(add);
    index = next;
    length = 1;
  }
  template <class Add>
  __device__ __forceinline__ void end(const Add& add) {
    if (length != 0) add(index, length);
  }
};

template <class T>
using device_histogram = histogram_counts<T>;
template <class Fit>
inline constexpr bool is_histogram_fit = false;
template <class T>
inline constexpr bool is_histogram_fit<fit_histogram<T>> = true;

// Values where most voxels of medical images lie are counted in shared memory, the rest in global memory at once.
template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads)
    histogram_kernel(fit_shape shape, Selector select, device_histogram<T>* states) {
  constexpr bool narrow = counted<T>::bits == 8;
  constexpr int copies = narrow ? fit_threads / 32 : 1;
  constexpr std::int32_t window = narrow ? 256 : 8192;
  constexpr std::int32_t start = narrow || counted<T>::least == 0 ? 0 : 32768 - 2048;
  __shared__ std::uint32_t near[copies * window];
  for (int i = static_cast<int>(threadIdx.x); i < copies * window; i += fit_threads) near[i] = 0;
  __syncthreads();
  device_histogram<T>& state = states[shape.group()];
  std::uint32_t* mine = near + (copies > 1 ? static_cast<int>(threadIdx.x) / 32 * window : 0);
  const auto add = [&](std::int32_t key, std::uint32_t amount) {
    const auto offset = static_cast<std::uint32_t>(key - start);
    if (offset < static_cast<std::uint32_t>(window))
      atomicAdd(mine + offset, amount);
    else
      count_up(state.counts + key, amount);
  };
  run_of_equals run;
  std::uint64_t undeclared = 0;
  visit_voxels<T, Map>(shape, select, [&](T value, verdict v) {
    if (v == verdict::selected)
      run.add(static_cast<std::int32_t>(counted<T>::key(value)), add);
    else if (v == verdict::undeclared)
      ++undeclared;
  });
  run.end(add);
  count_up(&state.undeclared, undeclared);
  __syncthreads();
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < window; i += fit_threads) {
    std::uint32_t sum = 0;
    for (int c = 0; c < copies; ++c) sum += near[c * window + i];
    count_up(state.counts + start + i, sum);
  }
}

struct device_moments {
  exact_sums sums;
  fit_tally tally;
  std::uint32_t least_complement, greatest;  // all zero to begin with
};

__device__ __forceinline__ void add_tally(fit_tally& to, const fit_tally& t) {
  count_up(&to.count, t.count);
  count_up(&to.excluded, t.excluded);
  count_up(&to.undeclared, t.undeclared);
}

template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads) moment_kernel(fit_shape shape, Selector select, device_moments* states) {
  __shared__ shared_room<device_moments> room;
  device_moments& block = room.get();
  static_assert(sizeof(device_moments) % 8 == 0);
  for (unsigned i = threadIdx.x; i < sizeof(device_moments) / 8; i += fit_threads)
    reinterpret_cast<std::uint64_t*>(&block)[i] = 0;
  __syncthreads();
  partial_sums p;
  fit_tally tally;
  std::uint32_t least_complement = 0, greatest = 0;
  visit_voxels<T, Map>(shape, select, [&](T value, verdict v) {
    if (v == verdict::rejected) return;
    if (v == verdict::undeclared)
      ++tally.undeclared;
    else if (!counted<T>::finite(value))
      ++tally.excluded;
    else {
      ++tally.count;
      const std::uint32_t key = counted<T>::key(value);
      least_complement = max(least_complement, ~key);
      greatest = max(greatest, key);
      add_value(p, value, block.sums);
    }
  });
  block.sums.take(p);
  add_tally(block.tally, tally);
  if (tally.count != 0) {
    atomicMax(&block.least_complement, least_complement);
    atomicMax(&block.greatest, greatest);
  }
  __syncthreads();
  device_moments& state = states[shape.group()];
  const auto i = static_cast<int>(threadIdx.x);
  // Split, so that no number of blocks overflows a limb.
  const auto give = [](std::int64_t* limbs, int count, int k, std::int64_t amount) {
    if (k + 1 == count) {
      count_up(limbs + k, amount);
    } else {
      count_up(limbs + k, amount & 0xffffffff);
      count_up(limbs + k + 1, amount >> 32);
    }
  };
  if (i < exact_sums::sum_limbs) give(state.sums.sum, exact_sums::sum_limbs, i, block.sums.sum[i]);
  if (i < exact_sums::square_limbs) give(state.sums.square, exact_sums::square_limbs, i, block.sums.square[i]);
  if (i == 0 && (block.tally.count | block.tally.excluded | block.tally.undeclared) != 0) {
    add_tally(state.tally, block.tally);
    atomicMax(&state.least_complement, block.least_complement);
    atomicMax(&state.greatest, block.greatest);
  }
}

template <class T>
__global__ void __launch_bounds__(32)
    moment_finish_kernel(device_moments* states, std::int32_t ddof, moments* results, std::int64_t groups) {
  require_ieee_arithmetic();
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (group >= groups) return;
  device_moments& state = states[group];
  state.sums.settle();
  results[group] = make_moments(state.sums, state.tally, counted<T>::value_of(~state.least_complement),
                                counted<T>::value_of(state.greatest), counted<T>::is_integer, ddof);
}

// Counters of one round of a search, by slot.
template <int N>
struct device_search {
  search<N> state;
  std::uint64_t counts[search<N>::ranks * 2048];
};

template <int N>
__global__ void __launch_bounds__(fit_threads) search_start_kernel(device_search<N>* states) {
  device_search<N>& s = states[blockIdx.x];
  const auto i = static_cast<int>(threadIdx.x);
  for (int k = i; k < search<N>::ranks * 2048; k += fit_threads) s.counts[k] = 0;
  for (int k = i; k < 2048; k += fit_threads) {
    s.state.first_slot[k] = 255;
    for (int r = 0; r < search<N>::ranks; ++r) s.state.second_slot[r][k] = 255;
  }
  for (int k = i; k < search<N>::ranks; k += fit_threads) {
    s.state.rank[k] = 0;
    s.state.prefix[k] = 0;
    s.state.slot[k] = 0;
  }
  for (int k = i; k < N; k += fit_threads) s.state.fraction[k] = 0;
  if (i == 0) {
    s.state.slots = 1;
    s.state.tally = {};
  }
}

template <class T, class Map, int N, class Selector>
__global__ void __launch_bounds__(fit_threads)
    search_kernel(fit_shape shape, Selector select, device_search<N>* states, int round) {
  constexpr std::int32_t room = 8192;
  __shared__ std::uint32_t near[room];
  device_search<N>& s = states[shape.group()];
  if (round > 0 && s.state.tally.count == 0) return;
  const std::int32_t used = s.state.slots * 2048;
  const bool local = used <= room;
  if (local) {
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < used; i += fit_threads) near[i] = 0;
    __syncthreads();
  }
  const auto add = [&](std::int32_t index, std::uint32_t amount) {
    if (local)
      atomicAdd(near + index, amount);
    else
      count_up(s.counts + index, amount);
  };
  run_of_equals run;
  fit_tally tally;
  visit_voxels<T, Map>(shape, select, [&](T value, verdict v) {
    if (v == verdict::rejected) return;
    if (v == verdict::undeclared)
      ++tally.undeclared;
    else if (!counted<T>::finite(value))
      ++tally.excluded;
    else {
      ++tally.count;
      const std::int32_t index = s.state.counter(counted<T>::key(value), round);
      if (index >= 0) run.add(index, add);
    }
  });
  run.end(add);
  if (round == 0) add_tally(s.state.tally, tally);
  if (local) {
    __syncthreads();
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < used; i += fit_threads)
      count_up(s.counts + i, near[i]);
  }
}

// The bin that holds a rank among bins * 32 counters, found by one warp; the rank becomes that within the bin.
__device__ __forceinline__ std::uint32_t find_rank(const std::uint64_t* counts, int bins, std::uint64_t& rank) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  std::uint64_t sum = 0;
  for (int i = 0; i < bins; ++i) sum += counts[lane * bins + i];
  std::uint64_t before = sum;
  for (int step = 1; step < 32; step *= 2) {
    const auto other = static_cast<std::uint64_t>(__shfl_up_sync(0xffffffffu, static_cast<counter>(before), step));
    if (lane >= step) before += other;
  }
  before -= sum;
  const bool here = rank >= before && rank < before + sum;
  const int owner = __ffs(static_cast<int>(__ballot_sync(0xffffffffu, here))) - 1;
  std::uint32_t bin = 0;
  std::uint64_t rest = rank;
  if (lane == owner) {
    rest -= before;
    bin = static_cast<std::uint32_t>(lane * bins);
    while (rest >= counts[bin]) rest -= counts[bin++];
  }
  rank = static_cast<std::uint64_t>(__shfl_sync(0xffffffffu, static_cast<counter>(rest), owner));
  return __shfl_sync(0xffffffffu, bin, owner);
}

template <class T, class Fit, int N>
__global__ void __launch_bounds__(fit_threads)
    search_advance_kernel(device_search<N>* states, Fit how, int round, typename Fit::result* results) {
  require_ieee_arithmetic();
  device_search<N>& s = states[blockIdx.x];
  const bool last = round + 1 == search<N>::rounds;
  if (s.state.tally.count != 0) {
    if (round == 0) {
      const auto where = how.positions();
      if (threadIdx.x == 0) s.state.aim(where.q, s.state.tally.count);
      __syncthreads();
    }
    for (int r = static_cast<int>(threadIdx.x) / 32; r < search<N>::ranks; r += fit_threads / 32) {
      std::uint64_t rank = s.state.rank[r];
      const std::uint32_t digit = find_rank(s.counts + s.state.slot[r] * 2048, 64, rank);
      if (threadIdx.x % 32 == 0) {
        s.state.rank[r] = rank;
        s.state.prefix[r] = s.state.prefix[r] << search<N>::digit_bits(round) | digit;
      }
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < search<N>::ranks * 2048; k += fit_threads) s.counts[k] = 0;
    if (threadIdx.x == 0) s.state.assign_slots(round);
  }
  if (last && threadIdx.x == 0) results[blockIdx.x] = how.finish(s.state.template finish<T>());
}

// Totals of the 256 segments of a histogram, and of everything before each.
struct segments {
  std::uint64_t before[fit_threads];
  std::int64_t index_before[fit_threads];  // sum of bin times count
  std::uint64_t count;
  std::int64_t index_sum;
  std::int32_t first[fit_threads], last[fit_threads];  // bins that hold something; last < 0: none
};

__device__ __forceinline__ void sum_segments(const std::uint64_t* counts, int per_thread, segments& s) {
  const auto t = static_cast<int>(threadIdx.x);
  std::uint64_t count = 0;
  std::int64_t sum = 0;
  std::int32_t first = 0, last = -1;
  for (int i = t * per_thread; i < (t + 1) * per_thread; ++i) {
    const std::uint64_t c = counts[i];
    if (c == 0) continue;
    if (last < 0) first = i;
    last = i;
    count += c;
    sum += i * static_cast<std::int64_t>(c);
  }
  s.before[t] = count;
  s.index_before[t] = sum;
  s.first[t] = first;
  s.last[t] = last;
  __syncthreads();
  if (t == 0) {
    std::uint64_t all = 0;
    std::int64_t weighted = 0;
    std::int32_t lowest = -1, highest = -1;
    for (int k = 0; k < fit_threads; ++k) {
      const std::uint64_t c = s.before[k];
      const std::int64_t w = s.index_before[k];
      s.before[k] = all;
      s.index_before[k] = weighted;
      all += c;
      weighted += w;
      if (c != 0 && lowest < 0) lowest = s.first[k];
      if (c != 0) highest = s.last[k];
    }
    s.count = all;
    s.index_sum = weighted;
    s.first[0] = lowest;
    s.last[0] = highest;
  }
  __syncthreads();
}

// otsu_bin by 256 threads, a segment of bins each.
__device__ __forceinline__ std::int64_t block_otsu_bin(const std::uint64_t* counts, int per_thread, const segments& s,
                                                       otsu_rule rule) {
  __shared__ double scores[fit_threads];
  __shared__ std::int32_t bins[fit_threads];
  const auto t = static_cast<int>(threadIdx.x);
  std::uint64_t below = s.before[t];
  std::int64_t sum_below = s.index_before[t];
  double best_score = -1;
  std::int32_t best = -1;
  for (std::int32_t bin = t * per_thread; bin < (t + 1) * per_thread; ++bin) {
    const std::uint64_t here = counts[bin];
    below += here;
    sum_below += bin * static_cast<std::int64_t>(here);
    const std::uint64_t fewer = below < s.count - below ? below : s.count - below;
    if (fewer == 0 || (rule == otsu_rule::opencv && fewer << 23 < s.count)) continue;
    const double score = otsu_score(below, sum_below, s.count, s.index_sum);
    if (score > best_score) {
      best_score = score;
      best = bin;
    }
  }
  scores[t] = best_score;
  bins[t] = best;
  __syncthreads();
  best_score = rule == otsu_rule::opencv ? 0 : -1;
  best = rule == otsu_rule::opencv ? 0 : s.first[0];
  for (int k = 0; k < fit_threads; ++k)
    if (scores[k] > best_score) {
      best_score = scores[k];
      best = bins[k];
    }
  return best;
}

template <class T, class Fit>
__global__ void __launch_bounds__(fit_threads)
    histogram_finish_kernel(const device_histogram<T>* states, Fit how, typename Fit::result* results) {
  require_ieee_arithmetic();
  using state_type = device_histogram<T>;
  constexpr int per_thread = state_type::bins / fit_threads;
  constexpr auto least = counted<T>::least;
  __shared__ segments s;
  const state_type& state = states[blockIdx.x];
  const auto t = static_cast<int>(threadIdx.x);
  sum_segments(state.counts, per_thread, s);
  const fit_tally tally{s.count, 0, state.undeclared};
  if constexpr (std::is_same_v<Fit, fit_moments>) {
    __shared__ shared_room<exact_sums> room;
    exact_sums& total = room.get();
    if (t == 0) total = exact_sums{};
    __syncthreads();
    partial_sums p;
    for (int i = t * per_thread; i < (t + 1) * per_thread; ++i) {
      const std::int64_t value = i + least;
      p.sum += static_cast<int128>(value) * static_cast<int128>(state.counts[i]);
      p.square += static_cast<uint128>(value * value) * state.counts[i];
    }
    total.take(p);
    __syncthreads();
    if (t == 0) {
      total.settle();
      results[blockIdx.x] = make_moments(total, tally, static_cast<double>(s.first[0] + least),
                                         static_cast<double>(s.last[0] + least), true, how.ddof);
    }
  } else if constexpr (std::is_same_v<Fit, fit_otsu>) {
    const std::int64_t bin = block_otsu_bin(state.counts, per_thread, s, how.rule);
    if (t == 0) {
      threshold result;
      result.tally = tally;
      if (s.count != 0) {
        result.status = s.first[0] < s.last[0] ? fit_status::ok : fit_status::constant;
        result.value = static_cast<double>(bin + least);
      }
      results[blockIdx.x] = result;
    }
  } else {
    const auto where = how.positions();
    constexpr int N = decltype(where)::size;
    __shared__ shared_room<percentiles<N>> room;
    percentiles<N>& found = room.get();
    const auto ranked = [&](std::uint64_t rank) {
      int segment = fit_threads - 1;
      while (s.before[segment] > rank) --segment;
      rank -= s.before[segment];
      int bin = segment * per_thread;
      while (rank >= state.counts[bin]) rank -= state.counts[bin++];
      return static_cast<double>(bin + least);
    };
    if (t < N) {
      found.value[t] = 0;
      if (s.count != 0) {
        const percentile_place place = locate_percentile(where.q[t], s.count);
        found.value[t] = interpolate_percentile(
            ranked(place.lower), ranked(place.lower + 1 < s.count ? place.lower + 1 : s.count - 1), place.fraction);
      }
    }
    if (t == 0) {
      found.tally = tally;
      found.status = s.count == 0 ? fit_status::empty : s.first[0] < s.last[0] ? fit_status::ok : fit_status::constant;
    }
    __syncthreads();
    if (t == 0) results[blockIdx.x] = how.finish(found);
  }
}

struct device_bins {
  std::uint64_t counts[equal_bins::count];
};

// Floats into 256 bins between the extremes that moment_kernel found.
template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads)
    bin_kernel(fit_shape shape, Selector select, const device_moments* extremes, device_bins* states) {
  constexpr int copies = fit_threads / 32;
  __shared__ std::uint32_t near[copies * equal_bins::count];
  for (int i = static_cast<int>(threadIdx.x); i < copies * equal_bins::count; i += fit_threads) near[i] = 0;
  __syncthreads();
  const device_moments& e = extremes[shape.group()];
  if (e.tally.count == 0 || ~e.least_complement == e.greatest) return;
  const equal_bins bins =
      equal_bins::between(counted<T>::value_of(~e.least_complement), counted<T>::value_of(e.greatest));
  std::uint32_t* mine = near + static_cast<int>(threadIdx.x) / 32 * equal_bins::count;
  const auto add = [&](std::int32_t bin, std::uint32_t amount) { atomicAdd(mine + bin, amount); };
  run_of_equals run;
  visit_voxels<T, Map>(shape, select, [&](T value, verdict v) {
    if (v == verdict::selected && counted<T>::finite(value))
      run.add(bins.bin(counted<T>::value_of(counted<T>::key(value))), add);
  });
  run.end(add);
  __syncthreads();
  std::uint32_t sum = 0;
  for (int c = 0; c < copies; ++c) sum += near[c * equal_bins::count + static_cast<int>(threadIdx.x)];
  count_up(states[shape.group()].counts + threadIdx.x, sum);
}

template <class T>
__global__ void __launch_bounds__(fit_threads)
    bin_finish_kernel(const device_moments* extremes, const device_bins* states, threshold* results) {
  require_ieee_arithmetic();
  static_assert(equal_bins::count == fit_threads);
  __shared__ segments s;
  const device_moments& e = extremes[blockIdx.x];
  const std::uint64_t* counts = states[blockIdx.x].counts;
  sum_segments(counts, 1, s);
  const std::int64_t bin = block_otsu_bin(counts, 1, s, otsu_rule::scikit_image);
  if (threadIdx.x != 0) return;
  threshold t;
  t.tally = e.tally;
  if (e.tally.count != 0) {
    const double low = counted<T>::value_of(~e.least_complement), high = counted<T>::value_of(e.greatest);
    t.status = low < high ? fit_status::ok : fit_status::constant;
    t.value = low < high ? equal_bins::between(low, high).center(static_cast<int>(bin)) : low;
  }
  results[blockIdx.x] = t;
}

template <class Fit>
constexpr bool is_fit = requires(const Fit& f) {
  typename Fit::result;
  f.pooled;
  f.check();
};

// Bytes of state per group: of the first kind, and behind all of those, of the second.
template <class T, class Fit>
constexpr std::size_t fit_state_bytes() {
  if constexpr (counted<T>::by_histogram)
    return sizeof(device_histogram<T>);
  else if constexpr (percentile_fit<Fit>)
    return sizeof(device_search<decltype(std::declval<Fit>().positions())::size>);
  else
    return sizeof(device_moments);
}
template <class T, class Fit>
constexpr std::size_t fit_extra_bytes() {
  return !counted<T>::by_histogram && std::is_same_v<Fit, fit_otsu> ? sizeof(device_bins) : 0;
}

struct fit_layout {
  std::size_t states, extra, bytes;
};

template <class T, class Fit>
fit_layout layout_of_fit(std::size_t samples, std::size_t groups) {
  fit_layout l{};
  l.states = aligned(samples * sizeof(fit_record));
  l.extra = l.states + aligned(groups * fit_state_bytes<T, Fit>());
  l.bytes = l.extra + aligned(groups * fit_extra_bytes<T, Fit>());
  return l;
}

template <class T>
std::size_t fit_groups(std::span<const view<const T>> images, bool pooled) {
  return images.empty() ? 0 : images.size() * (pooled ? 1 : static_cast<std::size_t>(images[0].channels));
}

template <class T, class Fit, class Selection>
void fit_on_device(const cuda& exec, const Fit& how, std::span<const view<const T>> images, const Selection& selection,
                   std::span<typename Fit::result> results) {
  using Map = typename Selection::map_type;
  const std::size_t groups = check_fit(Fit::name, images, selection, how.pooled, results.size());
  if (groups == 0) return;
  require(results.data() != nullptr, {Fit::name}, "null pointer for the results");
  const fit_layout l = layout_of_fit<T, Fit>(images.size(), groups);
  check_workspace(exec.workspace.data(), exec.workspace.size(), {0, 0, l.bytes});
  const auto launched = [&] { check_cuda(cudaGetLastError(), Fit::name, exec.at); };

  auto* records = reinterpret_cast<fit_record*>(exec.workspace.data());
  std::int64_t blocks = 1;
  for (std::size_t first = 0; first < images.size(); first += fit_chunk::capacity) {
    fit_chunk chunk{};
    const std::size_t n = std::min<std::size_t>(fit_chunk::capacity, images.size() - first);
    for (std::size_t i = 0; i < n; ++i) {
      const auto& image = images[first + i];
      fit_record& r = chunk.records[i];
      r.data = image.data;
      r.channel_stride = image.channel_stride;
      for (int k = 0; k < 3; ++k) {
        r.stride[k] = image.stride[k];
        r.extents[k] = static_cast<std::int32_t>(image.grid.extents[k]);
      }
      if constexpr (Selection::has_map) {
        const auto map = selection.map(first + i);
        r.map = map.data;
        for (int k = 0; k < 3; ++k) r.map_stride[k] = map.stride[k];
      }
      r.rows_per_block = std::max<std::int32_t>(1, voxels_per_block / r.extents[2]);
      const std::int64_t rows =
          image.grid.extents[0] * image.grid.extents[1] * (how.pooled ? image.channels : std::int64_t{1});
      blocks = std::max(blocks, (rows + r.rows_per_block - 1) / r.rows_per_block);
    }
    require(blocks <= 2147483647, {Fit::name}, blocks, " blocks exceed the grid of a kernel");
    fit_upload_kernel<<<1, fit_chunk::capacity, 0, exec.stream>>>(chunk, records + first, static_cast<int>(n));
    launched();
  }

  std::byte* states = exec.workspace.data() + l.states;
  std::byte* extra = exec.workspace.data() + l.extra;
  const auto select = selection.select();
  using Selector = std::remove_const_t<decltype(select)>;
  // Calls kernel<<<grid>>>(shape, ...) for every group.
  const auto over_groups = [&](const auto& launch) {
    for (std::size_t first = 0; first < groups; first += 65535) {
      const auto n = static_cast<unsigned>(std::min<std::size_t>(65535, groups - first));
      launch(dim3(static_cast<unsigned>(blocks), n), fit_shape{records, static_cast<std::int32_t>(images[0].channels),
                                                               how.pooled, static_cast<std::int64_t>(first)});
      launched();
    }
  };
  const auto count = static_cast<unsigned>(groups);

  if constexpr (is_histogram_fit<Fit>) {
    check_cuda(cudaMemsetAsync(results.data(), 0, results.size_bytes(), exec.stream), Fit::name, exec.at);
    over_groups([&](dim3 grid, const fit_shape& shape) {
      histogram_kernel<T, Map, Selector><<<grid, fit_threads, 0, exec.stream>>>(shape, select, results.data());
    });
  } else if constexpr (percentile_fit<Fit> && !counted<T>::by_histogram) {
    constexpr int N = decltype(how.positions())::size;
    auto* search_states = reinterpret_cast<device_search<N>*>(states);
    search_start_kernel<N><<<count, fit_threads, 0, exec.stream>>>(search_states);
    launched();
    for (int round = 0; round < search<N>::rounds; ++round) {
      over_groups([&](dim3 grid, const fit_shape& shape) {
        search_kernel<T, Map, N, Selector><<<grid, fit_threads, 0, exec.stream>>>(shape, select, search_states, round);
      });
      search_advance_kernel<T, Fit, N>
          <<<count, fit_threads, 0, exec.stream>>>(search_states, how, round, results.data());
      launched();
    }
  } else {
    check_cuda(cudaMemsetAsync(states, 0, l.bytes - l.states, exec.stream), Fit::name, exec.at);
    if constexpr (counted<T>::by_histogram) {
      auto* histograms = reinterpret_cast<device_histogram<T>*>(states);
      over_groups([&](dim3 grid, const fit_shape& shape) {
        histogram_kernel<T, Map, Selector><<<grid, fit_threads, 0, exec.stream>>>(shape, select, histograms);
      });
      histogram_finish_kernel<T, Fit><<<count, fit_threads, 0, exec.stream>>>(histograms, how, results.data());
    } else {
      auto* sums = reinterpret_cast<device_moments*>(states);
      over_groups([&](dim3 grid, const fit_shape& shape) {
        moment_kernel<T, Map, Selector><<<grid, fit_threads, 0, exec.stream>>>(shape, select, sums);
      });
      if constexpr (std::is_same_v<Fit, fit_moments>) {
        moment_finish_kernel<T><<<(count + 31) / 32, 32, 0, exec.stream>>>(sums, how.ddof, results.data(),
                                                                           static_cast<std::int64_t>(groups));
      } else {
        auto* bins = reinterpret_cast<device_bins*>(extra);
        over_groups([&](dim3 grid, const fit_shape& shape) {
          bin_kernel<T, Map, Selector><<<grid, fit_threads, 0, exec.stream>>>(shape, select, sums, bins);
        });
        bin_finish_kernel<T><<<count, fit_threads, 0, exec.stream>>>(sums, bins, results.data());
      }
    }
    launched();
  }
}

}  // namespace detail

// Device memory a fit of these images needs; it may be reused as soon as the stream has passed the fit.
template <class Fit, class Images>
requires(detail::is_fit<Fit>) std::size_t workspace_bytes(const Fit& how, const Images& images) {
  const auto views = detail::constant_views(images);
  using T = std::remove_const_t<detail::view_element_t<Images>>;
  const std::span<const view<const T>> all(views);
  return detail::layout_of_fit<T, Fit>(all.size(), detail::fit_groups(all, how.pooled)).bytes;
}

// Queues a fit on a stream. Images, maps and results lie in device memory; as for the CPU there is one result per
// sample and channel, channel fastest, or one per sample where pooled. Everything is checked first; when it throws for
// bad input, nothing has been launched.
template <class Fit, class Images, class Selection>
void fit(const cuda& exec, const Fit& how, const Images& images, const Selection& selection,
         std::span<typename Fit::result> results) {
  const auto views = detail::constant_views(images);
  using T = std::remove_const_t<detail::view_element_t<Images>>;
  how.check();
  if constexpr (std::is_same_v<Fit, fit_otsu>) how.template check_type<T>();
  detail::fit_on_device<T>(exec, how, std::span<const view<const T>>(views), selection, results);
}

}  // namespace suture
