// SPDX-License-Identifier: Apache-2.0
// Device memory of a test, freed at its end.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "suture/exec/cuda/run.cuh"

namespace support {

template <class T>
class device_array {
public:
  explicit device_array(std::size_t size) : size_(size) {
    suture::check_cuda(cudaMalloc(&data_, size * sizeof(T)), "device_array");
  }
  explicit device_array(const std::vector<T>& values) : device_array(values.size()) {
    suture::check_cuda(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "device_array");
  }
  device_array(device_array&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  device_array& operator=(device_array&&) = delete;
  ~device_array() { cudaFree(data_); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<T> span() const { return {data_, size_}; }
  std::vector<T> values() const {  // waits for the default stream
    std::vector<T> v(size_);
    suture::check_cuda(cudaMemcpy(v.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "device_array");
    return v;
  }

private:
  T* data_ = nullptr;
  std::size_t size_;
};

}  // namespace support
