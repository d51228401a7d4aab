// SPDX-License-Identifier: Apache-2.0
// How mask operations run on CUDA: a loop is a kernel on the caller's stream. The loops of a sample follow one another
// in the stream, and samples follow one another through the workspace.
#pragma once

#include "../exec/cuda.cuh"
#include "loops.hpp"

namespace suture::detail::masks {

inline constexpr unsigned mask_block = 256;

template <class F>
__global__ void __launch_bounds__(mask_block) mask_each_kernel(F f, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * mask_block + threadIdx.x;
  if (i < n) f(i);
}

// f(z, y, i) for i in [0, width) of every row; there are fewer than 2^32 in all.
template <class F>
__global__ void __launch_bounds__(mask_block)
    mask_row_kernel(F f, std::uint32_t height, std::uint32_t width, std::uint32_t n) {
  require_ieee_arithmetic();
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * mask_block + threadIdx.x;
  if (thread >= n) return;
  const auto i = static_cast<std::uint32_t>(thread);
  const std::uint32_t row = i / width;
  f(static_cast<std::int32_t>(row / height), static_cast<std::int32_t>(row % height),
    static_cast<std::int32_t>(i % width));
}

// A warp makes half a word.
template <class T, class Counts>
__global__ void __launch_bounds__(mask_block)
    mask_pack_kernel(strided<const T> in, Counts counts, bit_volume out, std::uint32_t halves) {
  require_ieee_arithmetic();
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * mask_block + threadIdx.x;
  if (thread / 32 >= halves) return;  // by whole warps
  const auto half = static_cast<std::uint32_t>(thread / 32), lane = static_cast<std::uint32_t>(thread % 32);
  const auto row_halves = static_cast<std::uint32_t>(out.row_words) * 2;
  const std::uint32_t row = half / row_halves;
  const auto x = static_cast<std::int32_t>(half % row_halves * 32 + lane);
  const bool set = x < out.extents[2] && counts(in.at(static_cast<std::int32_t>(row / out.extents[1]),
                                                      static_cast<std::int32_t>(row % out.extents[1]), x));
  const std::uint32_t bits = __ballot_sync(0xffffffffu, set);
  if (lane == 0) reinterpret_cast<std::uint32_t*>(out.words)[half] = bits;
}

struct write_bits {
  bit_volume in;
  strided<std::uint8_t> out;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    *out.at(z, y, x) = in.row(z, y)[x / 64] >> (x % 64) & 1;
  }
};

template <>
struct mask_loops<cuda> {
  class memory {
  public:
    memory(const cuda& exec, std::size_t bytes, const site& where) : data_(exec.workspace.data()) {
      mask_loops<cpu>::check_mask_workspace(exec.workspace, bytes, where);
    }
    std::byte* data() const { return data_; }

  private:
    std::byte* data_;
  };

  static unsigned blocks(std::uint64_t threads) {
    return static_cast<unsigned>((threads + mask_block - 1) / mask_block);
  }

  template <class F>
  static void each(const cuda& exec, std::int64_t n, const F& f) {
    mask_each_kernel<<<blocks(static_cast<std::uint64_t>(n)), mask_block, 0, exec.stream>>>(f, n);
    check_cuda(cudaGetLastError(), "mask", exec.at);
  }
  template <class F>
  static void width(const cuda& exec, const std::int32_t (&n)[3], std::int32_t width, const F& f) {
    const auto count =
        static_cast<std::uint32_t>(n[0]) * static_cast<std::uint32_t>(n[1]) * static_cast<std::uint32_t>(width);
    mask_row_kernel<<<blocks(count), mask_block, 0, exec.stream>>>(f, static_cast<std::uint32_t>(n[1]),
                                                                   static_cast<std::uint32_t>(width), count);
    check_cuda(cudaGetLastError(), "mask", exec.at);
  }
  template <class F>
  static void words(const cuda& exec, const bit_volume& v, const F& f) {
    width(exec, v.extents, v.row_words, f);
  }
  template <class F>
  static void voxels(const cuda& exec, const std::int32_t (&n)[3], const F& f) {
    width(exec, n, n[2], f);
  }
  template <class F>
  static void rows_or_voxels(const cuda& exec, const std::int32_t (&n)[3], const F& f) {
    voxels(exec, n, f);
  }
  template <class T, class Counts>
  static void pack(const cuda& exec, const strided<const T>& in, const Counts& counts, const bit_volume& out) {
    const std::uint64_t halves = static_cast<std::uint64_t>(out.extents[0]) *
                                 static_cast<std::uint64_t>(out.extents[1]) *
                                 static_cast<std::uint64_t>(out.row_words) * 2;
    mask_pack_kernel<<<blocks(halves * 32), mask_block, 0, exec.stream>>>(in, counts, out,
                                                                          static_cast<std::uint32_t>(halves));
    check_cuda(cudaGetLastError(), "mask", exec.at);
  }
  static void unpack(const cuda& exec, const bit_volume& in, const strided<std::uint8_t>& out) {
    voxels(exec, in.extents, write_bits{in, out});
  }
};

}  // namespace suture::detail::masks
