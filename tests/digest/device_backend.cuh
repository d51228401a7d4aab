// SPDX-License-Identifier: Apache-2.0
// Where the work of a digest runs and keeps its memory: the device.
#pragma once

#include <suture/exec/cuda/run.cuh>

#include <memory>
#include <vector>

namespace digest_test {

using namespace suture;

struct device_backend {
  std::vector<std::shared_ptr<cuda_workspace>> memory;

  template <class T>
  T* room(std::size_t n) {
    memory.push_back(std::make_shared<cuda_workspace>(n * sizeof(T)));
    return reinterpret_cast<T*>(memory.back()->span().data());
  }
  cuda exec(std::size_t bytes) { return {.workspace = {room<std::byte>(bytes), bytes}}; }
  template <class T>
  T* place(const std::vector<T>& values) {
    T* const at = room<T>(values.size());
    check_cuda(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "place");
    return at;
  }
  template <class T>
  std::vector<T> back(const T* at, std::size_t n) {
    std::vector<T> values(n);
    check_cuda(cudaMemcpy(values.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost), "back");
    return values;
  }
};

}  // namespace digest_test
