// SPDX-License-Identifier: Apache-2.0
// The CUDA executor. A run allocates nothing, synchronises nothing and copies nothing back; it launches a few kernels
// on the caller's stream and can be captured in a CUDA graph. Parameters travel by value in kernel arguments, so a
// plan may be changed or destroyed as soon as run returns.
#pragma once

#include <cuda_runtime.h>

#include <source_location>

#include "../core/numeric_cuda.cuh"
#include "../core/prepare.hpp"
#include "../sample/prefilter.hpp"
#include "check_cuda.cuh"
#include "colour_runs.cuh"
#include "copied_tile.cuh"
#include "ieee.cuh"
#include "normals_ahead.cuh"
#include "plane_walk.cuh"
#include "stages.cuh"

namespace suture {

// Runs on a stream, with device memory of at least workspace_bytes(plan, ...) that stays untouched by others until
// the stream has passed the run.
struct cuda {
  cudaStream_t stream = nullptr;
  std::span<std::byte> workspace = {};
  std::source_location at = std::source_location::current();  // where it was written; named in errors
};

// Device memory for those who want it owned: grows on demand, outside of runs.
class cuda_workspace {
public:
  cuda_workspace() = default;
  explicit cuda_workspace(std::size_t bytes) { reserve(bytes); }
  cuda_workspace(cuda_workspace&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
    other.bytes_ = 0;
  }
  cuda_workspace& operator=(cuda_workspace&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~cuda_workspace() {
    if (data_ != nullptr) cudaFree(data_);  // which even for a null pointer would wake the device, or break a capture
  }

  // Makes room for at least this many bytes; what was there is lost. Waits for the device when it must grow.
  void reserve(std::size_t bytes) {
    if (bytes <= bytes_) return;
    if (data_ != nullptr) check_cuda(cudaFree(data_), "cuda_workspace");
    data_ = nullptr;
    bytes_ = 0;
    check_cuda(cudaMalloc(&data_, bytes), "cuda_workspace");
    bytes_ = bytes;
  }
  std::span<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes_}; }
  operator std::span<std::byte>() const { return span(); }

private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace detail {

// Records in flight in the arguments of one kernel; small batches should not pay for a large argument.
template <class Record, int Bytes>
struct record_chunk {
  static constexpr int capacity = Bytes / static_cast<int>(sizeof(Record)) > 0
                                      ? Bytes / static_cast<int>(sizeof(Record))
                                      : 1;
  Record records[capacity];
};

// By all threads of a block.
__device__ __forceinline__ void clear_sums(const staged_tensor& t) {
  auto* const words = reinterpret_cast<std::uint32_t*>(t.sums);
  const auto count = static_cast<std::uint32_t>(t.moments_per_channel * t.channels) * sizeof(patch_sums) / 4;
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) words[i] = 0;
  auto* const spectra = reinterpret_cast<std::uint32_t*>(t.spectra);
  const auto all = static_cast<std::uint32_t>(t.spectra_per_channel * t.channels) * sizeof(spectral_sums) / 4;
  for (std::uint32_t i = threadIdx.x; i < all; i += blockDim.x) spectra[i] = 0;
}
__device__ __forceinline__ void clear_sums(const no_stages&) {}

// By all threads of a block.
template <class Record>
__device__ __forceinline__ void copy_record(const Record& record, Record* place) {
  static_assert(sizeof(Record) % 4 == 0);
  const auto* from = reinterpret_cast<const std::uint32_t*>(&record);
  auto* to = reinterpret_cast<std::uint32_t*>(place);
  for (unsigned i = threadIdx.x; i < sizeof(Record) / 4; i += blockDim.x) to[i] = from[i];
}

template <class Record>
__device__ __forceinline__ void put_record(const Record& record, Record* place) {
  copy_record(record, place);
  for (const auto& image : record.staged) clear_sums(image);
}

// A record at hand for every thread of a block: what all of them read, and read for each voxel anew, costs the least
// from shared memory.
template <class Record>
struct record_at_hand {
  alignas(16) unsigned char bytes[sizeof(Record)];

  __device__ __forceinline__ const Record& take(const Record& record) {
    auto* const place = reinterpret_cast<Record*>(bytes);
    copy_record(record, place);
    __syncthreads();
    return *place;
  }
};

// Block b writes record b of the chunk and, when it has one, expands its control grid.
template <class Record, int Bytes>
__global__ void __launch_bounds__(128)
    upload_kernel(const __grid_constant__ record_chunk<Record, Bytes> chunk, Record* records) {
  require_ieee_arithmetic();
  const Record& source = chunk.records[blockIdx.x];
  put_record(source, records + blockIdx.x);
  if constexpr (!std::is_same_v<decltype(source.sample.controls), const no_controls> &&
                !std::is_same_v<decltype(source.sample.controls), no_controls>) {
    const control_grid& g = source.sample.controls;
    if (!g.on) return;
    const auto& n = g.drawn.control_points;
    const std::int32_t count = n[0] * n[1] * n[2];
    for (auto e = static_cast<std::int32_t>(threadIdx.x); e < count; e += static_cast<std::int32_t>(blockDim.x))
      g.vectors[e] = expanded(g, e / (n[1] * n[2]), e / n[2] % n[1], e % n[2]);
  }
}

// The tap volume of B-spline coefficients before filtering; one thread per (x, y) column of a sample.
template <class Evaluator, std::size_t B>
__global__ void __launch_bounds__(256) coefficient_fill_kernel(Evaluator e, source_tensor raw, std::int32_t number) {
  using P = typename Evaluator::pipeline_type;
  constexpr std::int32_t pad = P::padding;
  const auto& r = e.records[number];
  const source_tensor& c = r.in[B];
  const std::uint32_t across = (static_cast<std::uint32_t>(c.extents[2]) + 31) / 32;
  const auto x = static_cast<std::int32_t>(blockIdx.x % across * 32 + threadIdx.x);
  const auto y = static_cast<std::int32_t>(blockIdx.x / across * 8 + threadIdx.y);
  if (x >= c.extents[2] || y >= c.extents[1]) return;
  auto* p = static_cast<float*>(const_cast<void*>(c.data)) + y * c.stride[1] + x;
  for (std::int32_t z = 0; z < c.extents[0]; ++z, p += c.stride[0])
    each_padded_tap<P, typename Evaluator::template binding_type<B>>(
        r.sample, raw, e.rule.border, number, z - pad, y - pad, x - pad,
        [&](std::int32_t channel, float v) { p[channel * c.channel_stride] = v; });
}

// The recursive filter along one axis; one thread per line.
template <class Evaluator, std::size_t B>
__global__ void __launch_bounds__(128) coefficient_filter_kernel(Evaluator e, std::int32_t number, int axis) {
  using Border = typename Evaluator::pipeline_type::border_type;
  const source_tensor& c = e.records[number].in[B];
  const int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;  // the other two axes
  const std::int64_t lines = static_cast<std::int64_t>(c.extents[u]) * c.extents[v] * c.channels;
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const std::int64_t iv = line % c.extents[v], rest = line / c.extents[v];
  const std::int64_t iu = rest % c.extents[u], channel = rest / c.extents[u];
  auto* p =
      static_cast<float*>(const_cast<void*>(c.data)) + channel * c.channel_stride + iu * c.stride[u] + iv * c.stride[v];
  prefilter_line<Border>(p, c.stride[axis], c.extents[axis]);
}

// Where nothing is moved and there is little to do for a voxel, a thread makes 8 neighbours of a row instead, read and
// written in one piece where they lie so.
inline constexpr std::int32_t runs_in_block = 512;
template <class Evaluator>
inline constexpr bool in_runs =
    !Evaluator::pipeline_type::has_geometry && !Evaluator::pipeline_type::is_colour &&
    !Evaluator::converts_or_has_levels && !any_needs_voxel<typename Evaluator::pipeline_type::taps> &&
    !any_needs_voxel<typename Evaluator::pipeline_type::outputs>;

// Colour is mostly that of planes, in which a lane has no z to walk along. A block then makes several tiles, one below
// the other, so that what it does once is not done for every voxel. Where colours are worked on at each tap that is
// little, and takes registers.
inline constexpr std::int32_t rows_in_plane = 4;
template <class Evaluator>
inline constexpr bool makes_rows = Evaluator::pipeline_type::is_colour && (!Evaluator::pipeline_type::has_geometry ||
                                                                           Evaluator::pipeline_type::taps::size == 0);

// Lanes of a warp along x, the others along y. Where runs are turned, more of the warps whose square is closer to one
// stay inside the source.
template <class Evaluator>
inline constexpr int warp_x = in_colour_runs<Evaluator>&& Evaluator::pipeline_type::has_geometry ? 8 : 16;

// Whether there are kernels of their own for samples of one channel. It is the rule, and by itself it needs neither
// counts nor steps, nor registers for them.
template <class Evaluator>
inline constexpr bool has_one_channel_kernel =
    Evaluator::pipeline_type::has_geometry && !Evaluator::pipeline_type::is_colour;

// The voxels of a thread.
template <bool WithLabels, bool OneChannel, class Evaluator>
__device__ __forceinline__ void make_column(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                            std::int32_t number, std::int32_t z0, std::int32_t z1, std::int32_t y,
                                            std::int32_t x, const normals_ahead* ahead) {
  using P = typename Evaluator::pipeline_type;
  if constexpr (walks_planes<Evaluator>) {
    if (r.sample.keeps_planes) {
      make_plane_column<WithLabels, OneChannel>(evaluate, r, number, z0, z1, y, x, ahead);
      return;
    }
  }
  // Where there is a loop over channels registers are scarce; with a deformation other things wait in memory.
  constexpr bool keeps_steps =
      OneChannel || !has_one_channel_kernel<Evaluator> || P::has_deformation || P::inverts_deformation;
  typename Evaluator::places at(r, z0, y, x, ahead);
  if constexpr (P::has_geometry) {
    column<P> walk(r.sample, z0, y, x);
#pragma unroll 1
    for (std::int32_t z = z0; z < z1; ++z, walk.template step<keeps_steps>(), at.template step<keeps_steps>(r)) {
      coordinate c[3];
      walk.locate(c);
      evaluate.template write<WithLabels, OneChannel>(r, number, c, at, z, y, x, ahead);
    }
  } else {
#pragma unroll 1
    for (std::int32_t z = z0; z < z1; ++z, at.template step<keeps_steps>(r))
      evaluate.template write<WithLabels, OneChannel>(r, number, {}, at, z, y, x, ahead);
  }
}

// By all threads of a block: true if the tile has been made as a copy.
template <bool WithLabels, class Evaluator>
__device__ __forceinline__ bool made_as_copy(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                             std::int32_t number, const column_of_thread& at,
                                             const normals_ahead* ahead) {
  if constexpr (copies_tiles<Evaluator>)
    return r.sample.stands_on_voxels && copy_tile<WithLabels>(evaluate, r, number, at, ahead);
  else
    return false;
}

template <bool WithLabels, bool OneChannel, class Evaluator>
__device__ __forceinline__ void make_tile(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                          std::int32_t number, const tile_counts& tiles) {
  auto at = column_of_thread::in_tile<colour_run<Evaluator>, warp_x<Evaluator>>(tiles, r.sample.extents);
  if constexpr (Evaluator::normals > 0) {
    __shared__ room_for_normals<Evaluator::normals> room;
    static_assert(sizeof(room) <= bytes_ahead<Evaluator::normals>);
    const std::int32_t first = static_cast<std::int32_t>(blockIdx.z) << tiles.channel_shift;
    const std::int32_t channels = min(Evaluator::image_channels(r) - first, 1 << tiles.channel_shift);
    if (channels <= 0 || at.z0 >= at.z1) return;
    room.set({first, channels, tiles.channel_shift, 1 << tiles.channel_shift});
    if (__any_sync(0xffffffff, at.inside)) room.make(r.sample.outputs, r.sample.extents, at.z0, at.y, at.x);
    const normals_ahead ahead = room.ahead();
    if (made_as_copy<WithLabels>(evaluate, r, number, at, &ahead) || !at.inside) return;
    make_column<WithLabels, OneChannel>(evaluate, r, number, at.z0, at.z1, at.y, at.x, &ahead);
  } else if constexpr (in_colour_runs<Evaluator>) {
    make_colour_rows<WithLabels>(evaluate, r, number, tiles.rows, tile_y, at.z0, at.z1, at.y, at.x);
  } else if constexpr (makes_rows<Evaluator>) {
#pragma unroll 1
    for (std::int32_t row = 0; row < tiles.rows; ++row, at.y += tile_y)
      if (at.x < r.sample.extents[2] && at.y < r.sample.extents[1])
        make_column<WithLabels, OneChannel>(evaluate, r, number, at.z0, at.z1, at.y, at.x, nullptr);
  } else {
    if (made_as_copy<WithLabels>(evaluate, r, number, at, nullptr) || !at.inside) return;
    make_column<WithLabels, OneChannel>(evaluate, r, number, at.z0, at.z1, at.y, at.x, nullptr);
  }
}

// 8 elements in as few pieces as there are 16 bytes in them.
template <class T>
__device__ __forceinline__ void copy_run(const T* from, T* to) {
  using piece = std::conditional_t<sizeof(T) == 1, uint2, uint4>;
  constexpr int pieces = static_cast<int>(8 * sizeof(T) / sizeof(piece));
  SUTURE_UNROLL
  for (int i = 0; i < pieces; ++i) reinterpret_cast<piece*>(to)[i] = reinterpret_cast<const piece*>(from)[i];
}
template <class T>
__device__ __forceinline__ bool in_one_piece(const T* p, std::int64_t stride) {
  return stride == 1 && reinterpret_cast<std::uintptr_t>(p) % (sizeof(T) == 1 ? 8 : 16) == 0;
}

// The first `count` of 8 neighbours of a row, or all of them.
template <class T>
__device__ __forceinline__ void store_run(const T (&made)[8], T* to, std::int64_t stride, std::int32_t count) {
  if (count >= 8 && in_one_piece(to, stride)) {
    copy_run(made, to);
  } else {
    SUTURE_UNROLL
    for (int i = 0; i < 8; ++i)
      if (i < count) to[i * stride] = made[i];
  }
}

// 8 neighbours of a row, or as many as there are.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void make_run(const typename Evaluator::record_type& r, std::int32_t number, std::int32_t z,
                                         std::int32_t y, std::int32_t x0) {
  using pair = typename Evaluator::template pair<B>;
  using In = typename Evaluator::template binding_type<B>::input;
  using Out = typename pair::Out;
  using unit = typename pair::unit;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const std::int32_t count = r.sample.extents[2] - x0;
  const In* from =
      in_global_memory(static_cast<const In*>(in.data)) + z * in.stride[0] + y * in.stride[1] + x0 * in.stride[2];
  unit* to =
      in_global_memory(static_cast<unit*>(out.data)) + z * out.stride[0] + y * out.stride[1] + x0 * out.stride[2];
  for (std::int32_t channel = 0; channel < in.channels;
       ++channel, from += in.channel_stride, to += out.channel_stride) {
    alignas(16) In read[8] = {};
    alignas(16) Out made[8];
    if (count >= 8 && in_one_piece(from, in.stride[2])) {
      copy_run(from, read);
    } else {
      SUTURE_UNROLL
      for (int i = 0; i < 8; ++i)
        if (i < count) read[i] = from[i * in.stride[2]];
    }
    SUTURE_UNROLL
    for (int i = 0; i < 8; ++i) made[i] = pair::of_element(r.sample, in, read[i], number, channel, z, y, x0 + i);
    if (Evaluator::template finishes<B>(r)) {
      alignas(16) unit finished[8];
      SUTURE_UNROLL
      for (int i = 0; i < 8; ++i) finished[i] = Evaluator::template element<B>(r, made[i]);
      store_run(finished, to, out.stride[2], count);
    } else {
      store_run(made, reinterpret_cast<Out*>(to), 1, count);  // between stages
    }
  }
}

template <bool WithLabels, class Evaluator>
__device__ __forceinline__ void make_runs(const typename Evaluator::record_type& r, std::int32_t number) {
  const auto& n = r.sample.extents;
  const auto in_row = static_cast<std::uint32_t>((n[2] + 7) / 8), rows = static_cast<std::uint32_t>(n[1]);
  const std::uint32_t runs = in_row * rows * static_cast<std::uint32_t>(n[0]);
#pragma unroll 1
  for (std::uint32_t k = threadIdx.x; k < runs_in_block; k += blockDim.x) {
    const std::uint32_t i = blockIdx.x * runs_in_block + k, row = i / in_row;
    if (i >= runs) return;
    const auto x = static_cast<std::int32_t>(i - row * in_row) * 8;
    const auto z = static_cast<std::int32_t>(row / rows);
    const auto y = static_cast<std::int32_t>(row - static_cast<std::uint32_t>(z) * rows);
    const auto one = [&]<std::size_t B>() {
      if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label)
        make_run<B, Evaluator>(r, number, z, y, x);
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }
}

template <bool WithLabels, bool OneChannel, class Evaluator>
__device__ __forceinline__ void make_part(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                          std::int32_t number, const tile_counts& tiles) {
  if constexpr (in_runs<Evaluator>)
    make_runs<WithLabels, Evaluator>(r, number);
  else
    make_tile<WithLabels, OneChannel>(evaluate, r, number, tiles);
}

// Blocks on a multiprocessor that the registers are to last for: a sample with many parameters needs more of them, and
// so do four pixels at once that come from a turned source.
template <class Evaluator>
inline constexpr int fused_blocks = sizeof(typename Evaluator::record_type) > 1050 ||
                                            (in_colour_runs<Evaluator> && Evaluator::pipeline_type::has_geometry)
                                        ? 3
                                        : 4;

template <bool WithLabels, class Evaluator, bool OneChannel = has_one_channel_kernel<Evaluator>>
__global__ void __launch_bounds__(256, fused_blocks<Evaluator>)
    stage_kernel(const __grid_constant__ Evaluator evaluate, tile_counts tiles) {
  require_ieee_arithmetic();
  __shared__ record_at_hand<typename Evaluator::record_type> at_hand;
  const auto number = static_cast<std::int32_t>(blockIdx.y);
  make_part<WithLabels, OneChannel>(evaluate, at_hand.take(evaluate.records[number]), number, tiles);
}

// The same with the records in its arguments; it leaves them for the stages that follow.
template <bool WithLabels, class Evaluator, bool OneChannel, int Bytes>
__global__ void __launch_bounds__(256, fused_blocks<Evaluator>)
    first_stage_kernel(const __grid_constant__ Evaluator evaluate,
                       const __grid_constant__ record_chunk<typename Evaluator::record_type, Bytes> chunk,
                       typename Evaluator::record_type* records, tile_counts tiles) {
  require_ieee_arithmetic();
  const auto number = static_cast<std::int32_t>(blockIdx.y);
  if constexpr (Evaluator::pipeline_type::is_staged)
    if (blockIdx.x == 0) put_record(chunk.records[number], records + number);
  __shared__ record_at_hand<typename Evaluator::record_type> at_hand;
  make_part<WithLabels, OneChannel>(evaluate, at_hand.take(chunk.records[number]), number, tiles);
}

// Whether a kernel can start from records alone, with nothing made from them ahead.
template <class Pipeline>
inline constexpr bool starts_from_records = !Pipeline::has_deformation && !Pipeline::prefiltered;
// Small enough to travel in the arguments of the kernel that does the work.
inline constexpr int carried_bytes = 4000;

template <int Bytes, class Plan, class Record, class... Bindings>
void upload(const cuda& exec, const Plan& plan, bool to_output, const workspace_layout& l, Record* records,
            const Bindings&... bindings) {
  using chunk_type = record_chunk<Record, Bytes>;
  workspace_cursor used;
  for (std::size_t first = 0; first < plan.size(); first += chunk_type::capacity) {
    const std::size_t n = std::min<std::size_t>(chunk_type::capacity, plan.size() - first);
    chunk_type chunk;
    for (std::size_t i = 0; i < n; ++i)
      chunk.records[i] = make_record(plan, first + i, to_output, l, exec.workspace.data(), used, bindings...);
    upload_kernel<Record, Bytes><<<static_cast<unsigned>(n), 128, 0, exec.stream>>>(chunk, records + first);
    check_cuda(cudaGetLastError(), "upload", exec.at);
  }
}

template <std::size_t B, class Evaluator, class Plan, class Binding>
void prefilter_image(const cuda& exec, const Evaluator& e, const Plan& plan, const Binding& bound) {
  if constexpr (!Binding::is_label) {
    constexpr std::int32_t pad = Evaluator::pipeline_type::padding;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const source_tensor raw = raw_source(bound, i);
      const auto number = static_cast<std::int32_t>(i);
      std::int64_t n[3];
      for (int k = 0; k < 3; ++k) n[k] = raw.extents[k] + 2 * pad;
      const std::int64_t tiles = (n[2] + 31) / 32 * ((n[1] + 7) / 8);
      coefficient_fill_kernel<Evaluator, B>
          <<<static_cast<unsigned>(tiles), dim3(32, 8), 0, exec.stream>>>(e, raw, number);
      check_cuda(cudaGetLastError(), "prefilter", exec.at);
      for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t lines = n[0] * n[1] * n[2] / n[axis] * raw.channels;
        coefficient_filter_kernel<Evaluator, B>
            <<<static_cast<unsigned>((lines + 127) / 128), 128, 0, exec.stream>>>(e, number, axis);
        check_cuda(cudaGetLastError(), "prefilter", exec.at);
      }
    }
  }
}

// Queues the upload of what was drawn.
template <class Evaluator, class Plan, class... Bindings>
void upload(const cuda& exec, const Evaluator&, bool to_output, const workspace_layout& l, const Plan& plan,
            const Bindings&... bindings) {
  using R = typename Evaluator::record_type;
  auto* records = reinterpret_cast<R*>(exec.workspace.data());
  if (plan.size() * sizeof(R) <= carried_bytes)
    upload<carried_bytes>(exec, plan, to_output, l, records, bindings...);
  else
    upload<32000>(exec, plan, to_output, l, records, bindings...);
}

// Queues what makes B-spline coefficients.
template <class Evaluator, class Plan, class... Bindings>
void prefilter(const cuda& exec, const Evaluator& e, const Plan& plan, const Bindings&... bindings) {
  if constexpr (Evaluator::pipeline_type::prefiltered) {
    [&]<std::size_t... B>(std::index_sequence<B...>) { (prefilter_image<B>(exec, e, plan, bindings), ...); }
    (std::index_sequence_for<Bindings...>{});
  }
}

template <class In, class Out, bool IsLabel, class... Rest>
std::int32_t image_channels(const binding<In, Out, IsLabel, Rest...>& bound, std::size_t sample) {
  return IsLabel ? 0 : static_cast<std::int32_t>(bound.source(sample).channels);
}

template <class Evaluator, class Plan, class... Bindings>
tile_counts count_tiles(const Plan& plan, const Bindings&... bindings) {
  tile_counts tiles;
  if constexpr (makes_rows<Evaluator>) {
    bool planes = true;
    for (std::size_t i = 0; i < plan.size(); ++i) planes = planes && plan.output_grid(i).extents[0] == 1;
    if (planes) tiles.rows = rows_in_plane;
  }
  if constexpr (Evaluator::normals > 0) {
    constexpr std::int32_t turns = room_for_normals<Evaluator::normals>::turns;
    std::int32_t channels = 1;
    for (std::size_t i = 0; i < plan.size(); ++i) channels = std::max({channels, image_channels(bindings, i)...});
    while (1 << tiles.channel_shift < std::min(channels, turns)) ++tiles.channel_shift;
    tiles.depth = turns >> tiles.channel_shift;
    tiles.parts = ((channels - 1) >> tiles.channel_shift) + 1;
  }
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const extent3& n = plan.output_grid(i).extents;
    if constexpr (in_runs<Evaluator>) {
      const std::int64_t runs = (n[2] + 7) / 8 * n[1] * n[0];
      require(runs < 4294967295 - runs_in_block, {"run", static_cast<std::int64_t>(i)}, "extents ", n,
              " are more than a kernel counts");
      tiles.x = std::max(tiles.x, static_cast<std::int32_t>((runs + runs_in_block - 1) / runs_in_block));
    } else {
      constexpr std::int32_t wide = tile_x * colour_run<Evaluator>;
      tiles.x = std::max(tiles.x, static_cast<std::int32_t>((n[2] + wide - 1) / wide));
      tiles.y = std::max(tiles.y, static_cast<std::int32_t>((n[1] + tiles.rows * tile_y - 1) / (tiles.rows * tile_y)));
      tiles.z = std::max(tiles.z, static_cast<std::int32_t>((n[0] + tiles.depth - 1) / tiles.depth));
    }
  }
  if constexpr (Evaluator::normals == 0 && !in_runs<Evaluator>)
    while (tiles.depth < deepest_tile && tiles.all() * static_cast<std::int64_t>(plan.size()) >= 2 * many_tiles) {
      tiles.depth *= 2;
      tiles.z = (tiles.z + 1) / 2;
    }
  require(tiles.all() <= 2147483647, {"run"}, tiles.all(), " tiles exceed the grid of a kernel");
  tiles.by_x = divisor::of(static_cast<std::uint32_t>(tiles.x));
  tiles.by_y = divisor::of(static_cast<std::uint32_t>(tiles.y));
  return tiles;
}
template <class Plan>
dim3 tile_blocks(const tile_counts& tiles, const Plan& plan) {
  return dim3(static_cast<unsigned>(tiles.x * tiles.y * tiles.z), static_cast<unsigned>(plan.size()),
              static_cast<unsigned>(tiles.parts));
}

// Calls launch(std::bool_constant<OneChannel>) by the channels of the inputs.
template <class Evaluator, class Plan, class Launch, class... Bindings>
void by_channels(const Plan& plan, const Launch& launch, const Bindings&... bindings) {
  if constexpr (has_one_channel_kernel<Evaluator>) {
    bool one = true;
    for (std::size_t i = 0; i < plan.size(); ++i) one = one && ((bindings.source(i).channels == 1) && ...);
    if (one) return launch(std::true_type{});
  }
  launch(std::false_type{});
}

// Queues the fused part of every sample, with its label maps or without, and what it needs ahead.
template <bool WithLabels, class Evaluator, class Plan, class... Bindings>
void run_fused(const cuda& exec, const Evaluator& e, const Plan& plan, const Bindings&... bindings) {
  const tile_counts tiles = count_tiles<Evaluator>(plan, bindings...);
  prefilter(exec, e, plan, bindings...);
  by_channels<Evaluator>(
      plan,
      [&](auto one_channel) {
        stage_kernel<WithLabels, Evaluator, one_channel><<<tile_blocks(tiles, plan), 256, 0, exec.stream>>>(e, tiles);
      },
      bindings...);
  check_cuda(cudaGetLastError(), "run", exec.at);
}

// The same and the upload ahead of it, in one kernel where that can be.
template <bool WithLabels, class Evaluator, class Plan, class... Bindings>
void upload_and_run_fused(const cuda& exec, const Evaluator& e, const workspace_layout& l, const Plan& plan,
                          const Bindings&... bindings) {
  using R = typename Evaluator::record_type;
  if constexpr (starts_from_records<typename Evaluator::pipeline_type> && sizeof(R) <= carried_bytes) {
    if (plan.size() * sizeof(R) <= carried_bytes) {
      const tile_counts tiles = count_tiles<Evaluator>(plan, bindings...);
      record_chunk<R, carried_bytes> chunk;
      workspace_cursor used;
      for (std::size_t i = 0; i < plan.size(); ++i)
        chunk.records[i] = make_record(plan, i, WithLabels, l, exec.workspace.data(), used, bindings...);
      by_channels<Evaluator>(
          plan,
          [&](auto one_channel) {
            first_stage_kernel<WithLabels, Evaluator, one_channel, carried_bytes>
                <<<tile_blocks(tiles, plan), 256, 0, exec.stream>>>(e, chunk,
                                                                    reinterpret_cast<R*>(exec.workspace.data()), tiles);
          },
          bindings...);
      check_cuda(cudaGetLastError(), "run", exec.at);
      return;
    }
  }
  upload(exec, e, WithLabels, l, plan, bindings...);
  run_fused<WithLabels>(exec, e, plan, bindings...);
}

// Queues the clearing of what stages sum up, which an upload does on its way.
inline void clear_sums(const cuda& exec, const workspace_layout& l) {
  const auto clear = [&](std::size_t from, std::size_t to) {
    if (to > from) check_cuda(cudaMemsetAsync(exec.workspace.data() + from, 0, to - from, exec.stream), "run", exec.at);
  };
  clear(l.sums, l.statistics);
  clear(l.spectra, l.between);
}

// Checks everything; the evaluator reads what is yet to be queued.
template <class Plan, class... Bindings>
auto checked(const cuda& exec, const workspace_layout& l, const Plan& plan, const Bindings&... bindings) {
  using R = typename evaluator<typename Plan::pipeline_type, Bindings...>::record_type;
  static_assert(sizeof(R) <= 30000, "suture: the parameters of one sample exceed the arguments of a kernel");
  check_bindings(plan, bindings...);
  check_workspace(exec.workspace.data(), exec.workspace.size(), l);
  return make_evaluator(reinterpret_cast<const R*>(exec.workspace.data()), plan, bindings...);
}

}  // namespace detail

// Checks everything, then queues what fills the workspace and hands out an evaluator for kernels launched later on
// the same stream. The workspace must stay until they are done.
template <class Plan, class... Bindings>
auto prepare(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_assert(detail::all_bound<Bindings...>());
  using P = typename Plan::pipeline_type;
  const workspace_layout l = detail::layout(plan, bindings...);
  const auto evaluate = detail::checked(exec, l, plan, bindings...);
  if constexpr (P::is_staged) {
    detail::upload_and_run_fused<false>(exec, evaluate, l, plan, bindings...);
    detail::run_stages<0, P::steps.stage_count - 1>(exec, evaluate, false, plan, bindings...);
  } else {
    detail::upload(exec, evaluate, false, l, plan, bindings...);
    detail::prefilter(exec, evaluate, plan, bindings...);
  }
  return evaluate;
}

// Queues a plan on a stream. Everything is checked first; when it throws, nothing has been launched.
template <class Plan, class... Bindings>
void run(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_assert(detail::all_bound<Bindings...>());
  (detail::require_output(bindings), ...);
  using P = typename Plan::pipeline_type;
  const workspace_layout l = detail::layout(plan, bindings...);
  const auto evaluate = detail::checked(exec, l, plan, bindings...);
  detail::upload_and_run_fused<true>(exec, evaluate, l, plan, bindings...);
  if constexpr (P::is_staged) detail::run_stages<0, P::steps.stage_count>(exec, evaluate, true, plan, bindings...);
}

// run in two halves, so that a graph captured once serves every batch: `load` queues the upload of what was drawn, and
// `run_loaded` the rest, which holds nothing of a draw. Capture run_loaded; then for each batch load its plan and
// launch the graph; launched again without, it repeats its draws on the voxels that are there then. Every plan loaded
// for a graph has the pipeline, the views and the extents of the one it was captured with; seed, epoch, sample ids and
// all that is drawn from them may differ.
template <class Plan, class... Bindings>
void load(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_assert(detail::all_bound<Bindings...>());
  const workspace_layout l = detail::layout(plan, bindings...);
  detail::upload(exec, detail::checked(exec, l, plan, bindings...), true, l, plan, bindings...);
}
template <class Plan, class... Bindings>
void run_loaded(const cuda& exec, const Plan& plan, const Bindings&... bindings) {
  static_assert(detail::all_bound<Bindings...>());
  (detail::require_output(bindings), ...);
  using P = typename Plan::pipeline_type;
  const workspace_layout l = detail::layout(plan, bindings...);
  const auto evaluate = detail::checked(exec, l, plan, bindings...);
  detail::clear_sums(exec, l);
  detail::run_fused<true>(exec, evaluate, plan, bindings...);
  if constexpr (P::is_staged) detail::run_stages<0, P::steps.stage_count>(exec, evaluate, true, plan, bindings...);
}

}  // namespace suture
