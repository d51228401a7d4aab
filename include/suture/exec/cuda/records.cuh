// SPDX-License-Identifier: Apache-2.0
// Records of samples in the places where kernels find them: kernel arguments, the workspace in device memory, and the
// shared memory of a block.
#pragma once

#include "../common/records.hpp"
#include "ieee.cuh"
#include "tuning.hpp"

namespace suture::detail {

// The records in the arguments of one kernel. `Bytes` is their limit: small batches use a small one, since arguments
// cost time by their size.
template <class Record, int Bytes>
struct record_chunk {
  static constexpr int capacity = Bytes / static_cast<int>(sizeof(Record)) > 0
                                      ? Bytes / static_cast<int>(sizeof(Record))
                                      : 1;
  Record records[capacity];
};

// Tests whether a small batch's records may travel in the arguments of the fused kernel itself: they are small enough,
// and no earlier kernel needs them in device memory.
template <class Pipeline, class Record>
inline constexpr bool carries_records =
    !Pipeline::has_deformation && !Pipeline::prefiltered && sizeof(Record) <= carried_bytes;
template <class Pipeline, class Record, bool Possible = carries_records<Pipeline, Record>>
struct carried_records : record_chunk<Record, carried_bytes> {
  static constexpr bool possible = true;
  Record* to = nullptr;  // where later kernels expect the records; null: they were uploaded and are not in `records`
};
template <class Pipeline, class Record>
struct carried_records<Pipeline, Record, false> {
  static constexpr bool possible = false;
};

// Clears the sums of stages of one image. All threads of a block call this.
__device__ __forceinline__ void clear_sums(const staged_tensor& t) {
  auto* const words = reinterpret_cast<std::uint32_t*>(t.sums);
  const auto count = static_cast<std::uint32_t>(t.moments_per_channel * t.channels) * sizeof(patch_sums) / 4;
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) words[i] = 0;
  auto* const spectra = reinterpret_cast<std::uint32_t*>(t.spectra);
  const auto all = static_cast<std::uint32_t>(t.spectra_per_channel * t.channels) * sizeof(spectral_sums) / 4;
  for (std::uint32_t i = threadIdx.x; i < all; i += blockDim.x) spectra[i] = 0;
}
__device__ __forceinline__ void clear_sums(const no_stages&) {}

// All threads of a block call this.
template <class Record>
__device__ __forceinline__ void copy_record(const Record& record, Record* place) {
  static_assert(sizeof(Record) % 4 == 0);
  const auto* from = reinterpret_cast<const std::uint32_t*>(&record);
  auto* to = reinterpret_cast<std::uint32_t*>(place);
  for (unsigned i = threadIdx.x; i < sizeof(Record) / 4; i += blockDim.x) to[i] = from[i];
}

// Stores a record for later kernels and clears the sums that its stages add to. All threads of a block call this.
template <class Record>
__device__ __forceinline__ void put_record(const Record& record, Record* place) {
  copy_record(record, place);
  for (const auto& image : record.staged) clear_sums(image);
}

// A copy of a record in the shared memory of a block, the cheapest place for it: all threads read it again for each
// voxel.
template <class Record>
struct record_at_hand {
  alignas(16) unsigned char bytes[sizeof(Record)];

  __device__ __forceinline__ const Record& copy(const Record& record) {
    auto* const place = reinterpret_cast<Record*>(bytes);
    copy_record(record, place);
    __syncthreads();
    return *place;
  }
};

// Copies a list without changing it: fit records, maps of points, tables.
template <class T, int Bytes>
__global__ void __launch_bounds__(upload_threads)
    upload_list_kernel(const __grid_constant__ record_chunk<T, Bytes> chunk, T* to, unsigned count) {
  static_assert(sizeof(T) % 4 == 0);
  const auto* words = reinterpret_cast<const std::uint32_t*>(chunk.records);
  for (unsigned i = blockIdx.x * upload_threads + threadIdx.x; i < count * (sizeof(T) / 4);
       i += gridDim.x * upload_threads)
    reinterpret_cast<std::uint32_t*>(to)[i] = words[i];
}

// Stores the records of a chunk, one per block, and computes the vectors of their control grids.
template <class Record, int Bytes>
__global__ void __launch_bounds__(upload_threads)
    upload_kernel(const __grid_constant__ record_chunk<Record, Bytes> chunk, Record* records) {
  require_ieee_arithmetic();
  const Record& source = chunk.records[blockIdx.x];
  put_record(source, records + blockIdx.x);
  if constexpr (requires { source.sample.controls.on; }) {
    const control_grid& g = source.sample.controls;
    if (!g.on) return;
    const auto& n = g.drawn.control_points;
    const std::int32_t count = n[0] * n[1] * n[2];
    for (auto e = static_cast<std::int32_t>(threadIdx.x); e < count; e += static_cast<std::int32_t>(blockDim.x))
      g.vectors[e] = expanded(g, e / (n[1] * n[2]), e / n[2] % n[1], e % n[2]);
  }
}

}  // namespace suture::detail
