// SPDX-License-Identifier: Apache-2.0
// One sample at run time: trivially copyable records that the executors read, on host and device alike.
#pragma once

#include "../base/coordinate.hpp"
#include "../image/deep_supervision.hpp"
#include "../pipeline/pipeline.hpp"
#include "map_kind.hpp"

namespace suture {

// A control vector of a deformation, in source voxels (of an inverted one: in control cells), aligned for one load.
struct alignas(16) control_vector {
  float z, y, x, unused;
};

struct control_grid {
  fixed_map to_control;     // output index -> continuous control coordinate
  float to_source[3][3];    // linear part from the deformed grid to the source
  deformation drawn;        // what was drawn; the vectors are expanded from it on the executor
  control_vector* vectors;  // in the workspace
  std::int64_t first;       // index of this sample's first vector in the workspace
  std::uint32_t on;
};

// The control grid of an inverted deformation. to_control gives the control coordinate at which the iteration starts,
// and the vectors are in control cells.
struct inverse_control_grid : control_grid {
  float from_control[3][3];  // a displacement in cells -> source voxels
  float tolerance[3];        // cells
};
// The inversion ends when a step changes the displacement by less along every axis: this many voxels of the deformed
// grid, but at least this many cells, the resolution of float.
inline constexpr double inverse_tolerance_voxels = 1e-4, inverse_tolerance_cells = 4e-7;
// The iteration contracts, so far fewer steps suffice.
inline constexpr int most_inverse_iterations = 4096;

struct no_controls {};

template <class Pipeline>
struct sample_parameters {
  using pipeline_type = Pipeline;

  fixed_map map;  // output index -> source continuous index, without the displacement
  std::conditional_t<Pipeline::inverts_deformation, inverse_control_grid,
                     std::conditional_t<Pipeline::has_deformation, control_grid, no_controls>>
      controls;
  std::int32_t extents[3];
  // The order in which an executor visits the axes of the output, see exec/common/loop_order.hpp; 0: z, y, x. The
  // extents, and the columns of the maps, are in that order.
  std::uint8_t loops;
  std::uint8_t planar;  // source and output have one plane, and the map keeps z at 0: no interpolation along z
  map_kind kind;        // of z, y, x; on a device of the axes as they are visited
  typename Pipeline::source_functors source_functors;
  typename Pipeline::output_functors output_functors;
  typename Pipeline::stage_functors stage_functors;
};

namespace detail {

// Values of sample_parameters::loops that voxel_of_walk supports. Planes, rows and lanes run along z, y, x; along z, x,
// y; or along y, x, z.
inline constexpr std::uint8_t lanes_along_x = 0, lanes_along_y = 1, lanes_along_z = 3;

// The voxel at (plane, row, lane) of an output whose extents are in one of these orders.
SUTURE_FN voxel voxel_of_walk(const std::int32_t (&n)[3], std::uint8_t loops, const voxel_index& i) {
  const bool of_x = loops == lanes_along_x, of_z = loops == lanes_along_z;
  const std::int32_t plane_or_lane[] = {of_z ? i.z : i.x, of_z ? n[0] : n[2]};  // along y, unless lanes run along x
  return voxel_at({of_z ? n[2] : n[0], of_x ? n[1] : plane_or_lane[1], of_x ? n[2] : n[1]},
                  {i.sample, i.channel, of_z ? i.x : i.z, of_x ? i.y : plane_or_lane[0], of_x ? i.x : i.y});
}

// Tells the compiler of device code that a pointer read from memory points to global memory.
template <class T>
SUTURE_FN T* in_global_memory(T* p) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

// Reads a value of a sample. Without Keep, device code reads it from memory at each use, so that it occupies no
// register during a loop.
template <bool Keep, class V>
SUTURE_FN V value_of(const V& v) {
#if defined(__CUDA_ARCH__)
  if constexpr (!Keep) return *static_cast<const volatile V*>(&v);
#endif
  return v;
}

// Converts a result of the pipeline to an element of an output view: the same bits, e.g. half -> __half. A float NaN
// becomes the one NaN that is stored everywhere.
template <class To, class From>
SUTURE_FN To stored(From v) {
  static_assert(same_storage_v<To, From>,
                "suture: the output views' element type is not what the pipeline ends with; end the chain with "
                "cast<T>{} for outputs of type T (without a cast the result is float)");
  if constexpr (!same_storage_v<To, From>)
    return To{};
  else if constexpr (std::is_same_v<From, float>)
    return storage<float>::store(v);
  else
    return __builtin_bit_cast(To, v);
}
template <class To, class From>
SUTURE_FN pixel<To> stored(pixel<From> v) {
  return {{stored<To>(v.c[0]), stored<To>(v.c[1]), stored<To>(v.c[2])}};
}
}  // namespace detail

struct source_tensor {
  const void* data;
  std::int64_t stride[3];
  std::int64_t channel_stride;
  std::int32_t extents[3];
  std::int32_t channels;
  std::int32_t pairs[3];  // see count_pairs
  // 1: four channels lie side by side, aligned so that one load reads a voxel.
  std::int32_t side_by_side;
};

struct target_tensor {
  void* data;
  std::int64_t stride[3];
  std::int64_t channel_stride;
};

struct moments;
struct patch_sums;
struct spectral_sums;

// A dense image between stages, in the order (channel, z, y, x) or in that of its sample's loops. It lies in one of two
// buffers. A third is for a filter that blends, and for the imaginary part of a Fourier transform. The moments of each
// channel after each stage lie beside it.
struct staged_tensor {
  float* data[3];
  target_tensor out;  // of the last stage
  moments* statistics;
  patch_sums* sums;
  spectral_sums* spectra;  // of each channel in each stage
  std::int32_t channels, moments_per_channel, spectra_per_channel;
  std::int32_t finished;  // 1: no stage changes any channel, so the fused part stores the elements of `out`
};

struct no_stages {};

struct no_raw_source {};

namespace detail {
// Tests whether an operation before the geometry uses the position of the source voxels, such as noise before a
// rotation.
template <class Pipeline>
inline constexpr bool source_functors_need_voxel =
    Pipeline::has_geometry && !Pipeline::prefiltered && !Pipeline::is_color &&
    any_needs_voxel<typename Pipeline::source_functors>;
}  // namespace detail

// A smaller grid that a label map is also stored to.
struct level_tensor {
  target_tensor to;
  std::int32_t extents[3];
};
struct level_list {
  level_tensor levels[most_levels];
  std::int32_t count;
};

template <std::size_t N>
struct level_lists {
  level_list levels[N];
};
template <>
struct level_lists<0> {};

// Everything about one sample of a batch with N bound image / label pairs, L of them with levels.
template <class Pipeline, std::size_t N, std::size_t L = 0>
struct record : level_lists<L> {
  static constexpr std::size_t pairs = N;
  using level_lists_type = level_lists<L>;

  sample_parameters<Pipeline> sample;
  source_tensor in[N];
  target_tensor out[N];  // of the fused part, see pair_evaluator::unit
  std::conditional_t<Pipeline::is_staged, staged_tensor, no_stages> staged[N];
  // `raw` holds the voxels that B-spline coefficients are computed from; `in` holds the coefficients.
  std::conditional_t<Pipeline::prefiltered, source_tensor, no_raw_source> raw[N];
  // Source voxels, as floats after their value operations, if the CPU executor made some: see processed_sources.hpp.
  std::conditional_t<detail::source_functors_need_voxel<Pipeline>, source_tensor, no_raw_source> processed[N];
  // Marks a record of this kind. Memory that was never written, or holds a batch of another pipeline, has another mark.
  std::uint32_t mark;
};

}  // namespace suture
