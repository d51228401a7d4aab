// SPDX-License-Identifier: Apache-2.0
// Prints the digests of converted label maps, computed on the device.
#include <suture/suture.cuh>

#include <memory>

#include "labels.hpp"

namespace digest_test {

struct device_labels {
  std::vector<std::shared_ptr<cuda_workspace>> memory;

  template <class T>
  T* room(std::size_t n) {
    memory.push_back(std::make_shared<cuda_workspace>(n * sizeof(T)));
    return reinterpret_cast<T*>(memory.back()->span().data());
  }
  template <class T>
  const T* place(const std::vector<T>& values) {
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
  template <class Plan, class... Bindings>
  void run(const Plan& plan, const Bindings&... bindings) {
    const cuda_workspace workspace(workspace_bytes(plan, bindings...));
    suture::run(cuda{.workspace = workspace}, plan, bindings...);
    check_cuda(cudaDeviceSynchronize(), "run");
  }
};

}  // namespace digest_test

int main() { digest_test::print_labels(digest_test::device_labels{}); }
