// SPDX-License-Identifier: Apache-2.0
// Prints the digests of converted label maps, computed on the device.
#include <suture/suture.cuh>

#include "device_backend.cuh"
#include "labels.hpp"

namespace digest_test {

template <class Evaluator, class Out>
__global__ void evaluate_kernel(Evaluator evaluate, std::int32_t number, extent3 n, std::int32_t channels, Out* out) {
  const std::int64_t voxel = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (voxel < n[0] * n[1] * n[2]) evaluate_voxel(evaluate, number, n, channels, voxel, out);
}

struct device_labels : device_backend {
  template <class Plan, class... Bindings>
  void run(const Plan& plan, const Bindings&... bindings) {
    const cuda_workspace workspace(workspace_bytes(plan, bindings...));
    suture::run(cuda{.workspace = workspace}, plan, bindings...);
    check_cuda(cudaDeviceSynchronize(), "run");
  }
  template <class Plan, class Binding, class Out>
  void evaluate(const Plan& plan, const Binding& binding, std::int32_t channels, const std::vector<view<Out>>& out) {
    const cuda_workspace workspace(workspace_bytes(plan, binding));
    const auto evaluate = prepare(cuda{.workspace = workspace}, plan, binding);
    for (std::size_t i = 0; i < out.size(); ++i)
      evaluate_kernel<<<static_cast<unsigned>((out[i].grid.voxels() + 127) / 128), 128>>>(
          evaluate, static_cast<std::int32_t>(i), out[i].grid.extents, channels, out[i].data);
    check_cuda(cudaDeviceSynchronize(), "evaluate");
  }
};

}  // namespace digest_test

int main() {
  digest_test::print_labels(digest_test::device_labels{});
  return 0;
}
