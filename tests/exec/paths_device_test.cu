// SPDX-License-Identifier: Apache-2.0
// The paths of the fused kernel beside the plain loop over the evaluator.
#include "exec/paths.hpp"
#include "support/device_array.cuh"
#include "suture/suture.cuh"

namespace {

struct cuda_by {
  template <class T>
  using buffer = support::device_array<T>;
  template <class Paths, class Plan, class... Bindings>
  static void run_by(const Plan& plan, const Bindings&... bindings) {
    const suture::cuda_workspace workspace(suture::workspace_bytes(plan, bindings...));
    suture::detail::run_by<Paths>(suture::cuda{.workspace = workspace}, plan, bindings...);
    suture::check_cuda(cudaDeviceSynchronize(), "run");
  }
};

TEST(Paths, GiveTheBitsOfThePlainLoop) {
  paths_test::expect_the_same_bits_of_all<cuda_by, suture::detail::column_walk, suture::detail::cuda_paths>();
}

}  // namespace
