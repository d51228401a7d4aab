// SPDX-License-Identifier: Apache-2.0
// The two executors behind one face, so that one test body runs on both.
#pragma once

#include <string_view>
#include <vector>

#include "device_array.cuh"
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
  using buffer = device_array<T>;

  template <class Plan, class... Bindings>
  static void run(const Plan& plan, const Bindings&... bindings) {
    const suture::cuda_workspace workspace(suture::workspace_bytes(plan, bindings...));
    suture::run(suture::cuda{.workspace = workspace}, plan, bindings...);
    suture::check_cuda(cudaDeviceSynchronize(), "run");
  }
};

}  // namespace support
