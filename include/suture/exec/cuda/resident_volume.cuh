// SPDX-License-Identifier: Apache-2.0
// A volume that stays in device memory while patches are cut from it, in a layout that suits rotated patches.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "../../image/view.hpp"
#include "check_cuda.cuh"

namespace suture {

// A copy of an image or a label map in device memory that the object owns. The pitch of rows is an odd multiple of 64
// bytes, so that neighboring voxels of a rotated patch that lie in two rows are in different banks of the L1 cache. The
// layout affects speed only, not results.
//
// The source lies in host or device memory. Its rows must be contiguous: stride 1 along x, or interleaved channels,
// which the copy then has too. Rows may neither overlap nor run backwards. An axis of one voxel may have any stride.
// The copy is queued on `stream`; the source must not change until it is done.
// Errors: what check(view) refuses, rows that are not contiguous or overlap, no memory on the device.
template <class T>
class resident_volume {
public:
  resident_volume() = default;
  explicit resident_volume(const suture::view<const T>& given, cudaStream_t stream = nullptr) : view_(given) {
    constexpr site where{"resident_volume"};
    check(given, where);
    const suture::view<const T> source = with_strides_of_single_voxels(given);
    const extent3& n = source.grid.extents;
    const bool side_by_side = source.channels > 1 && source.channel_stride == 1 && source.stride[2] == source.channels;
    require(source.stride[2] == 1 || side_by_side, where, "stride ", source.stride,
            " along x must be 1, or that of channels side by side: copy rows that are contiguous");
    const std::int64_t across = n[2] * source.stride[2];
    require(
        source.stride[1] >= across && source.stride[0] >= across && (source.channels == 1 || source.channel_stride > 0),
        where, "strides ", source.stride, ", ", source.channel_stride, " from channel to channel, of extents ", n,
        ": rows overlap or run backwards");
    const std::int64_t row = across * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t pitch = (row + 63) / 128 * 128 + 64;
    const std::int64_t blocks = side_by_side ? 1 : source.channels;  // volumes of rows
    const std::int64_t rows = blocks * n[0] * n[1];
    bytes_ = static_cast<std::size_t>(pitch * rows);
    void* data = nullptr;
    check_cuda(cudaMalloc(&data, bytes_), "resident_volume");
    view_.data = static_cast<const T*>(data);
    view_.stride = {n[1] * pitch / static_cast<std::int64_t>(sizeof(T)), pitch / static_cast<std::int64_t>(sizeof(T)),
                    source.stride[2]};
    view_.channel_stride = side_by_side ? 1 : n[0] * view_.stride[0];
    try {
      copy(source, blocks, static_cast<T*>(data), stream);
    } catch (...) {
      cudaFree(data);
      throw;
    }
  }
  resident_volume(resident_volume&& other) noexcept
      : view_(std::exchange(other.view_, {})), bytes_(std::exchange(other.bytes_, 0)) {}
  resident_volume& operator=(resident_volume&& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~resident_volume() {
    if (view_.data != nullptr) cudaFree(const_cast<T*>(view_.data));
  }

  // Returns the view of the copy, for plan, image and labels.
  const suture::view<const T>& view() const { return view_; }
  std::size_t bytes() const { return bytes_; }

private:
  // Returns a view in which an axis of one voxel has the stride of an array without gaps. Along y it is that of z, so
  // that rows follow each other, unless the copy's pitch, an int to CUDA, would not hold it.
  static suture::view<const T> with_strides_of_single_voxels(suture::view<const T> v) {
    const extent3& n = v.grid.extents;
    if (n[2] == 1) v.stride[2] = v.channels > 1 && v.channel_stride == 1 ? v.channels : 1;
    constexpr std::int64_t longest_pitch = 2147483647;
    const bool as_rows = n[0] > 1 && v.stride[0] <= longest_pitch / static_cast<std::int64_t>(sizeof(T));
    if (n[1] == 1) v.stride[1] = as_rows ? v.stride[0] : n[2] * v.stride[2];
    if (n[0] == 1) v.stride[0] = n[1] * v.stride[1];
    return v;
  }
  // Queues one copy per plane, or one for all rows if planes and channels follow each other without a gap.
  void copy(const suture::view<const T>& source, std::int64_t blocks, T* to, cudaStream_t stream) const {
    const extent3& n = source.grid.extents;
    const bool dense = source.stride[0] == n[1] * source.stride[1] &&
                       (blocks == 1 || source.channel_stride == n[0] * source.stride[0]);
    const auto rows = [&](T* first, const T* from, std::int64_t count) {
      check_cuda(cudaMemcpy2DAsync(first, static_cast<std::size_t>(view_.stride[1]) * sizeof(T), from,
                                   static_cast<std::size_t>(source.stride[1]) * sizeof(T),
                                   static_cast<std::size_t>(n[2] * source.stride[2]) * sizeof(T),
                                   static_cast<std::size_t>(count), cudaMemcpyDefault, stream),
                 "resident_volume");
    };
    if (dense) return rows(to, source.data, blocks * n[0] * n[1]);
    for (std::int64_t c = 0; c < blocks; ++c)
      for (std::int64_t z = 0; z < n[0]; ++z)
        rows(to + c * view_.channel_stride + z * view_.stride[0],
             source.data + c * source.channel_stride + z * source.stride[0], n[1]);
  }

  suture::view<const T> view_{};
  std::size_t bytes_ = 0;
};

template <class T>
resident_volume(const view<T>&, cudaStream_t) -> resident_volume<std::remove_const_t<T>>;
template <class T>
resident_volume(const view<T>&) -> resident_volume<std::remove_const_t<T>>;

}  // namespace suture
