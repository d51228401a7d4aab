// SPDX-License-Identifier: Apache-2.0
// A path of the fused kernel for pipelines without a geometry and without operations on colors or on voxel positions. A
// thread computes runs of 8 neighbors of a row. Aligned contiguous runs are read and written in accesses of 8 or 16
// bytes.
#pragma once

#include "path.cuh"

namespace suture::detail {

// Copies 8 elements in accesses of 16 bytes, or in one of 8 bytes if an element is a byte. Both pointers are aligned to
// that.
template <class T>
__device__ __forceinline__ void copy_run(const T* from, T* to) {
  using piece = std::conditional_t<sizeof(T) == 1, uint2, uint4>;
  constexpr int pieces = static_cast<int>(8 * sizeof(T) / sizeof(piece));
  SUTURE_UNROLL
  for (int i = 0; i < pieces; ++i) reinterpret_cast<piece*>(to)[i] = reinterpret_cast<const piece*>(from)[i];
}

// Tests whether copy_run may access the elements at p.
template <class T>
__device__ __forceinline__ bool in_one_piece(const T* p, std::int64_t stride) {
  return stride == 1 && reinterpret_cast<std::uintptr_t>(p) % (sizeof(T) == 1 ? 8 : 16) == 0;
}

// Stores the first min(count, 8) of 8 neighbors of a row, `stride` elements apart.
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

// Computes 8 neighbors of a row from x0 on, or as many as the row still has, in all channels of bound pair B.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void make_run(const typename Evaluator::record_type& r, std::int32_t sample_index,
                                         std::int32_t z, std::int32_t y, std::int32_t x0) {
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
    for (int i = 0; i < 8; ++i)
      made[i] = pair::of_element(r.sample, in, read[i], {sample_index, channel, z, y, x0 + i});
    if (Evaluator::template finishes<B>(r)) {
      alignas(16) unit finished[8];
      SUTURE_UNROLL
      for (int i = 0; i < 8; ++i) finished[i] = Evaluator::template element<B>(r, made[i]);
      store_run(finished, to, out.stride[2], count);
    } else {
      store_run(made, reinterpret_cast<Out*>(to), 1, count);  // the input of a stage, whose rows are contiguous
    }
  }
}

struct vector_runs {
  static constexpr std::string_view name = "vector_runs";

  template <class Evaluator>
  static constexpr bool possible =
      !Evaluator::pipeline_type::has_geometry && !Evaluator::pipeline_type::is_color && !Evaluator::converts &&
      !any_needs_voxel<typename Evaluator::pipeline_type::source_functors> &&
      !any_needs_voxel<typename Evaluator::pipeline_type::output_functors>;
  template <class Evaluator>
  using shape = run_shape<Evaluator>;

  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static void make(const block_work<Evaluator>& work) {
    const auto& n = work.r.sample.extents;
    const auto in_row = static_cast<std::uint32_t>((n[2] + 7) / 8), rows = static_cast<std::uint32_t>(n[1]);
    const std::uint32_t runs = in_row * rows * static_cast<std::uint32_t>(n[0]);
    SUTURE_NO_UNROLL
    for (std::uint32_t k = threadIdx.x; k < runs_in_block; k += blockDim.x) {
      const std::uint32_t i = blockIdx.x * runs_in_block + k, row = i / in_row;
      if (i >= runs) return;
      const auto x = static_cast<std::int32_t>(i - row * in_row) * 8;
      const auto z = static_cast<std::int32_t>(row / rows);
      const auto y = static_cast<std::int32_t>(row - static_cast<std::uint32_t>(z) * rows);
      each_pair_on_device<Evaluator, WithLabels>(
          [&]<std::size_t B>() { make_run<B, Evaluator>(work.r, work.sample_index, z, y, x); });
    }
  }
};

}  // namespace suture::detail
