// SPDX-License-Identifier: Apache-2.0
// The two executors behind one face, so that one test body runs on both.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "suture/suture.cuh"

namespace support {

struct host_executor {
  static constexpr std::string_view name = "host";

  template <class T>
  class buffer {
  public:
    explicit buffer(std::vector<T> values) : values_(std::move(values)) {}
    T* data() { return values_.data(); }
    std::vector<T> values() const { return values_; }

  private:
    std::vector<T> values_;
  };

  template <class Plan, class... Bindings>
  static void run(const Plan& plan, const Bindings&... bindings) {
    suture::run(suture::cpu{}, plan, bindings...);
  }
};

struct device_executor {
  static constexpr std::string_view name = "device";

  template <class T>
  class buffer {
  public:
    explicit buffer(const std::vector<T>& values) : size_(values.size()) {
      suture::check_cuda(cudaMalloc(&data_, size_ * sizeof(T)), "buffer");
      suture::check_cuda(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "buffer");
    }
    buffer(buffer&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
    buffer& operator=(buffer&&) = delete;
    ~buffer() { cudaFree(data_); }
    T* data() { return data_; }
    std::vector<T> values() const {
      std::vector<T> v(size_);
      suture::check_cuda(cudaMemcpy(v.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "buffer");
      return v;
    }

  private:
    T* data_ = nullptr;
    std::size_t size_;
  };

  template <class Plan, class... Bindings>
  static void run(const Plan& plan, const Bindings&... bindings) {
    const suture::cuda_workspace workspace(suture::workspace_bytes(plan, bindings...));
    suture::run(suture::cuda{.workspace = workspace}, plan, bindings...);
    suture::check_cuda(cudaDeviceSynchronize(), "run");
  }
};

}  // namespace support
