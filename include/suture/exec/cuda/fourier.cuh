// SPDX-License-Identifier: Apache-2.0
// Filters in k-space on CUDA. A stage takes four or five kernels, one per pass over the patches that drew the filter. A
// block transforms several lines together in shared memory.
#pragma once

#include "../../evaluate/evaluator.hpp"
#include "../common/largest_extents.hpp"
#include "atomic_sums.cuh"
#include "check_cuda.cuh"
#include "ieee.cuh"

namespace suture::detail {

inline constexpr std::int32_t fourier_threads = 256, most_line_lanes = 16;
inline constexpr std::int32_t line_room = 12288;  // floats of shared memory

// lanes_of returns how many lines of n values a block transforms: the largest power of two, at most most_line_lanes,
// for which two complex copies of the lines and the roots of unity fit. lane_pitch returns the distance of a line's
// values, an odd number, so that threads along a line and threads across lines access different banks of shared memory.
SUTURE_HD constexpr std::int32_t lane_pitch(std::int32_t lanes) { return lanes | 1; }
SUTURE_HD constexpr std::int32_t lanes_of(std::int32_t n) {
  std::int32_t lanes = most_line_lanes;
  while (lanes > 1 && n * (4 * lane_pitch(lanes) + 2) > line_room) lanes /= 2;
  return lanes;
}
static_assert(longest_line * (4 * lane_pitch(1) + 2) <= line_room);

// The passes of a filter, each along one axis. `forward` and `inverse` are the transforms, `both` is one after the
// other with the weights between them; the `both` of a spike is forward and sums. Kernels of `nothing` return at once.
//             pass 0     pass 1               pass 2               pass 3           pass 4
//   mask      x forward  y forward            z both               y inverse        x inverse
//     a plane x forward  y both               nothing              nothing          x inverse
//   spike     x forward  y forward            z both               the spike added
//     a plane x forward  y both               nothing              the spike added
enum class fourier_work { nothing, forward, both, inverse, add };
struct fourier_pass {
  std::int32_t axis;
  fourier_work work;
};
SUTURE_HD constexpr fourier_pass pass_of(std::int32_t pass_number, bool spike, bool planar) {
  if (pass_number == 0) return {2, fourier_work::forward};
  if (pass_number == 1) return {1, planar ? fourier_work::both : fourier_work::forward};
  if (pass_number == 2) return {0, planar ? fourier_work::nothing : fourier_work::both};
  if (spike) return {2, pass_number == 3 ? fourier_work::add : fourier_work::nothing};
  if (pass_number == 3) return {1, planar ? fourier_work::nothing : fourier_work::inverse};
  return {2, fourier_work::inverse};
}
inline constexpr std::int32_t mask_passes = 5, spike_passes = 4;

// The lines along an axis: their number and length, where line l begins (begin), and the distance of its values (step).
// A real image has a symmetric spectrum, so only `stored_x` frequencies along x are stored.
struct line_shape {
  std::int64_t lines, step;
  std::int32_t axis, across, plane, length, stored_x;  // across: voxels of a row along x; plane: voxels of a plane

  SUTURE_HD static line_shape of(const std::int32_t (&n)[3], std::int32_t axis) {
    const std::int32_t stored_x = x_frequencies(n[2]), length = axis == 0 ? n[0] : axis == 1 ? n[1] : n[2];
    return {static_cast<std::int64_t>(axis == 0 ? n[1] : n[0]) * (axis == 2 ? n[1] : stored_x),
            axis == 0   ? static_cast<std::int64_t>(n[1]) * n[2]
            : axis == 1 ? n[2]
                        : 1,
            axis,
            n[2],
            n[1] * n[2],
            length,
            stored_x};
  }
  SUTURE_HD std::int64_t begin(std::int64_t line) const {
    if (axis == 2) return line * across;
    return line / stored_x * (axis == 0 ? across : plane) + line % stored_x;
  }
};
// Returns how many blocks transform all lines along an axis of one channel.
SUTURE_HD inline std::int64_t fourier_blocks(const std::int32_t (&n)[3], std::int32_t axis) {
  const line_shape shape = line_shape::of(n, axis);
  const std::int32_t lanes = lanes_of(shape.length);
  return (shape.lines + lanes - 1) / lanes;
}

// The lines of a block in shared memory. Real and imaginary parts are in parts[0] and parts[1], value i of lane l at
// index i * pitch + l. parts[2] and parts[3] receive the result of each radix pass.
struct shared_lines {
  math::complex* roots;
  float* parts[4];
  std::int32_t n, lanes, pitch;

  __device__ __forceinline__ shared_lines(float* room, std::int32_t length) : n(length) {
    lanes = lanes_of(n);
    pitch = lane_pitch(lanes);
    roots = reinterpret_cast<math::complex*>(room);
    for (int k = 0; k < 4; ++k) parts[k] = room + 2 * n + k * n * pitch;
    for (auto j = static_cast<std::int32_t>(threadIdx.x); j < n; j += fourier_threads)
      roots[j] = math::root_of_unity(j, n);
  }
  // Swaps real and imaginary parts: a forward transform between two swaps is the inverse, but for its scale.
  __device__ __forceinline__ void swap_parts() {
    float* const kept = parts[0];
    parts[0] = parts[1];
    parts[1] = kept;
  }
  __device__ __forceinline__ math::complex get(std::int32_t i, std::int32_t lane) const {
    return {parts[0][i * pitch + lane], parts[1][i * pitch + lane]};
  }
  __device__ __forceinline__ void set(std::int32_t i, std::int32_t lane, const math::complex& v) const {
    parts[0][i * pitch + lane] = v.real;
    parts[1][i * pitch + lane] = v.imaginary;
  }

  // Computes the forward transform of all lines. All threads of the block call this, after a barrier that makes the
  // values visible to all of them; it ends with a barrier.
  __device__ __forceinline__ void transform() {
    SUTURE_NO_UNROLL
    for (std::int32_t done = 1, rest = n; rest > 1;) {
      const std::int32_t radix = math::next_radix(rest);
      math::with_radix(radix, [&](auto r) { pass(r, done); });
      for (int k = 0; k < 2; ++k) {
        float* const kept = parts[k];
        parts[k] = parts[k + 2];
        parts[k + 2] = kept;
      }
      done *= radix;
      rest /= radix;
      __syncthreads();
    }
  }

private:
  template <int Radix>
  __device__ __forceinline__ void pass(std::integral_constant<int, Radix>, std::int32_t done) const {
    SUTURE_NO_UNROLL
    for (auto e = static_cast<std::int32_t>(threadIdx.x); e < n / Radix * lanes; e += fourier_threads) {
      const math::butterfly b{e / lanes, n, Radix, done};
      const std::int32_t lane = e % lanes, factor = b.factor();
      math::complex v[Radix];
      SUTURE_UNROLL
      for (int q = 0; q < Radix; ++q) {
        v[q] = get(b.i + q * b.stride(), lane);
        if (q > 0 && done > 1) v[q] = math::times(v[q], roots[q * factor]);
      }
      math::dft(v);
      SUTURE_UNROLL
      for (int q = 0; q < Radix; ++q) {
        const std::int32_t to = (b.first_result() + q * done) * pitch + lane;
        parts[2][to] = v[q].real;
        parts[3][to] = v[q].imaginary;
      }
    }
  }
  __device__ __forceinline__ void pass(std::int32_t radix, std::int32_t done) const {
    SUTURE_NO_UNROLL
    for (auto e = static_cast<std::int32_t>(threadIdx.x); e < n * lanes; e += fourier_threads) {
      const std::int32_t lane = e % lanes, s = e / lanes / (n / radix);
      const math::butterfly b{e / lanes % (n / radix), n, radix, done};
      const math::complex sum =
          math::plain_sum(b, s, roots, [&](std::int32_t q) { return get(b.i + q * b.stride(), lane); });
      const std::int32_t to = (b.first_result() + s * done) * pitch + lane;
      parts[2][to] = sum.real;
      parts[3][to] = sum.imaginary;
    }
  }
};

// Adds the spike to rows first .. first + count - 1 of a channel. `room` is the shared memory of the block.
template <class Read>
__device__ __forceinline__ void add_spike(float* room, const Read& read, const std::int32_t (&n)[3],
                                          const spike_of_channel& spike, const spectral_sums& sums, std::int64_t first,
                                          std::int64_t count, float* to) {
  std::int32_t location[3];
  for (int k = 0; k < 3; ++k) location[k] = uncentered(spike.at[k], n[k]);
  auto* const roots = reinterpret_cast<math::complex*>(room);
  for (auto x = static_cast<std::int32_t>(threadIdx.x); x < n[2]; x += fourier_threads)
    roots[x] = math::root_of_unity(static_cast<std::int32_t>(static_cast<std::int64_t>(location[2]) * x % n[2]), n[2]);
  math::complex& added = *reinterpret_cast<math::complex*>(room + line_room - 2);  // in the last two floats
  if (threadIdx.x == 0)
    added = spike_of(spike, sums, static_cast<double>(static_cast<std::int64_t>(n[0]) * n[1] * n[2]));
  __syncthreads();
  for (std::int64_t row = first; row < first + count; ++row) {
    const auto z = static_cast<std::int32_t>(row / n[1]), y = static_cast<std::int32_t>(row % n[1]);
    const math::complex along = math::times(
        math::root_of_unity(static_cast<std::int32_t>(static_cast<std::int64_t>(location[0]) * z % n[0]), n[0]),
        math::root_of_unity(static_cast<std::int32_t>(static_cast<std::int64_t>(location[1]) * y % n[1]), n[1]));
    for (auto x = static_cast<std::int32_t>(threadIdx.x); x < n[2]; x += fourier_threads)
      to[row * n[2] + x] = with_spike(read(z, y, x), added, along, roots[x]);
  }
}

// One pass of the k-space filter of stage K on pair B. The grid is (blocks of lines, samples, channels).
template <int K, std::size_t B, class Evaluator>
__global__ void __launch_bounds__(fourier_threads)
    fourier_kernel(const __grid_constant__ Evaluator evaluate, std::int32_t pass_number) {
  using P = typename Evaluator::pipeline_type;
  using S = staging<P>;
  constexpr bool is_spike = spectral_spike<typename S::template filter_t<K>>;
  require_ieee_arithmetic();
  __shared__ alignas(8) float room[line_room];
  const auto sample_index = static_cast<std::int32_t>(blockIdx.y), channel = static_cast<std::int32_t>(blockIdx.z);
  const auto& r = evaluate.records[sample_index];
  if (r.mark != evaluate.mark) return;
  const sample_parameters<P>& sample = r.sample;
  const staged_tensor& t = r.staged[B];
  const auto& n = sample.extents;
  const fourier_pass pass = pass_of(pass_number, is_spike, n[0] == 1);
  if (channel >= t.channels || !S::template on<S::template filter<K>>(sample, channel)) return;
  if (pass.work == fourier_work::nothing || blockIdx.x >= fourier_blocks(n, pass.axis)) return;

  const auto& filter = S::template functor<S::template filter<K>>(sample);
  const int side = S::template side<K>(sample, channel);
  const std::int64_t offset = dense_offset(n, channel, 0, 0, 0);
  float* const real = t.data[1 - side] + offset;
  float* const imaginary = t.data[2] + offset;
  const auto functors = S::template before_filter<K>(sample, t, channel);
  const filter_input<std::remove_const_t<decltype(functors)>> read{functors, t.data[side] + offset, n, sample_index,
                                                                   channel};

  const line_shape shape = line_shape::of(n, pass.axis);
  const std::int32_t most = lanes_of(shape.length);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * most;
  const std::int64_t count = min(static_cast<std::int64_t>(most), shape.lines - first);
  spectral_sums* sums = nullptr;
  if constexpr (is_spike) sums = t.spectra + static_cast<std::int64_t>(K) * t.channels + channel;
  if constexpr (is_spike) {
    if (pass.work == fourier_work::add) {
      add_spike(room, read, n, filter.spike(channel), *sums, first, count, real);
      return;
    }
  }

  shared_lines lines(room, shape.length);
  // Calls work(i, lane, index in memory) for value i of each line of the block; neighboring threads access neighboring
  // values. The last block has fewer lines than lanes; with `spare`, the other lanes are visited too.
  const auto each = [&](const auto& work, bool spare = false) {
    for (auto e = static_cast<std::int32_t>(threadIdx.x); e < shape.length * most; e += fourier_threads) {
      const std::int32_t lane = pass.axis == 2 ? e / shape.length : e % most;
      const std::int32_t i = pass.axis == 2 ? e % shape.length : e / most;
      if (lane < count || spare) work(i, lane, shape.begin(first + lane) + i * shape.step);
    }
  };
  const bool from_image = pass_number == 0;
  each(
      [&](std::int32_t i, std::int32_t lane, std::int64_t at) {
        math::complex v = {0, 0};
        if (lane < count && from_image) {
          const std::int64_t row = first + lane;
          v.real = read(static_cast<std::int32_t>(row / n[1]), static_cast<std::int32_t>(row % n[1]), i);
        } else if (lane < count) {
          const bool stored = pass.axis != 2 || i < shape.stored_x;
          const std::int64_t from = stored ? at : at - 2 * i + n[2];
          v = {real[from], stored ? imaginary[from] : -imaginary[from]};
        }
        lines.set(i, lane, v);
      },
      true);
  __syncthreads();
  if (pass.work == fourier_work::inverse) lines.swap_parts();
  lines.transform();
  if (pass.work == fourier_work::both) {
    const auto index = [&](std::int64_t at, std::int32_t(&place)[3]) {
      place[0] = static_cast<std::int32_t>(at / shape.plane);
      const auto rest = static_cast<std::int32_t>(at - static_cast<std::int64_t>(place[0]) * shape.plane);
      place[1] = rest / n[2];
      place[2] = rest % n[2];
    };
    if constexpr (is_spike) {
      const spike_of_channel spike = filter.spike(channel);
      const std::int32_t location[3] = {uncentered(spike.at[0], n[0]), uncentered(spike.at[1], n[1]),
                                        uncentered(spike.at[2], n[2])};
      const stored_frequency of_spike = stored_frequency::of(location, n);
      std::int64_t logarithms = 0;
      each([&](std::int32_t i, std::int32_t lane, std::int64_t at) {
        std::int32_t place[3];
        index(at, place);
        const math::complex x = lines.get(i, lane);
        logarithms += log_magnitudes(x, place[2], n[2]);
        if (of_spike.is(place[0], place[1], place[2])) sums->at_location = of_spike.value(x);
      });
      count_up(&sums->logarithms, logarithms);
      return;
    } else {
      const float by_voxel =
          math::detail::divide(0.5f, static_cast<float>(static_cast<std::int64_t>(n[0]) * n[1] * n[2]));
      each([&](std::int32_t i, std::int32_t lane, std::int64_t at) {
        std::int32_t place[3];
        index(at, place);
        const float weight = by_voxel * weight_of_both(filter, n, place[0], place[1], place[2], channel);
        const math::complex x = lines.get(i, lane);
        lines.set(i, lane, {fma(x.real, weight, 0.0f), fma(x.imaginary, weight, 0.0f)});
      });
      __syncthreads();
      lines.swap_parts();
      lines.transform();
    }
  }
  if (pass.work != fourier_work::forward) lines.swap_parts();
  const bool real_alone = pass.axis == 2 && pass.work == fourier_work::inverse;
  each([&](std::int32_t i, std::int32_t lane, std::int64_t at) {
    if (from_image && i >= shape.stored_x) return;
    const math::complex x = lines.get(i, lane);
    real[at] = x.real;
    if (!real_alone) imaginary[at] = x.imaginary;
  });
}

// Queues all passes of the k-space filter of stage K on pair B of every sample. any_batch means what it means in
// count_tiles.
template <int K, std::size_t B, class Exec, class Evaluator, class Plan>
void run_fourier(const Exec& exec, const Evaluator& e, bool any_batch, const Plan& plan, std::int64_t channels) {
  constexpr bool is_spike = spectral_spike<typename staging<typename Evaluator::pipeline_type>::template filter_t<K>>;
  for (std::int32_t pass_number = 0; pass_number < (is_spike ? spike_passes : mask_passes); ++pass_number) {
    std::int64_t blocks = 0;
    const auto count = [&](const std::int32_t(&n)[3]) {
      const fourier_pass pass = pass_of(pass_number, is_spike, n[0] == 1);
      if (pass.work != fourier_work::nothing) blocks = std::max(blocks, fourier_blocks(n, pass.axis));
    };
    for (std::size_t i = 0; i < plan.size(); ++i) count(plan.sample(i).extents);
    if (any_batch) {
      const extent3 most = largest_extents(plan);
      const auto rows = static_cast<std::int32_t>(most[1]), columns = static_cast<std::int32_t>(most[2]);
      count({static_cast<std::int32_t>(most[0]), rows, columns});
      count({1, rows, columns});  // planes have passes of their own
    }
    if (blocks == 0) continue;
    require(blocks <= 2147483647, {"run"}, blocks, " blocks of lines exceed the grid of a kernel");
    fourier_kernel<K, B, Evaluator>
        <<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(plan.size()), static_cast<unsigned>(channels)),
           fourier_threads, 0, exec.stream>>>(e, pass_number);
    check_cuda(cudaGetLastError(), "run", exec.at);
  }
}

}  // namespace suture::detail
