// SPDX-License-Identifier: Apache-2.0
// place<cuda>: typed functions on a CUDA device, on the stream of the request and in its workspace.
//
// The first call has no workspace (workspace_bytes is 0) and asks for its size: where memory is needed, the size is
// written to the std::uint64_t that `workspace` points to, and nothing runs. The second call brings that much device
// memory. A function that needs none runs at once.
#pragma once

#include "../exec/cuda/run.cuh"
#include "executor.hpp"

namespace suture::abi {

template <>
struct place<cuda> {
  template <class F>
  static void run(const reader& r, std::size_t workspace, const F& f) {
    run(r, workspace, std::span<std::byte>(), [&](const cuda& exec, std::span<std::byte>) { f(exec); });
  }
  template <class Result, class F>
  static void run(const reader& r, std::size_t workspace, std::span<Result> result, const F& f) {
    r.finish();
    const request& given = r.request();
    const std::size_t result_bytes = suture::detail::aligned(result.size_bytes()), need = result_bytes + workspace;
    if (need > 0 && given.workspace_bytes == 0) {
      require(given.workspace != nullptr, r.where(), "workspace: expected room for its size, got none");
      *static_cast<std::uint64_t*>(given.workspace) = need;
      return;
    }
    auto* const memory = need == 0 ? nullptr : static_cast<std::byte*>(given.workspace);
    suture::detail::check_workspace(memory, given.workspace_bytes, need, r.where(), "workspace: ");
    const cuda exec{static_cast<cudaStream_t>(given.stream), {memory + result_bytes, workspace}};
    f(exec, std::span(reinterpret_cast<Result*>(memory), result.size()));
    if (result.empty()) return;
    check_cuda(cudaMemcpyAsync(result.data(), memory, result.size_bytes(), cudaMemcpyDeviceToHost, exec.stream),
               "copy");
    check_cuda(cudaStreamSynchronize(exec.stream), "copy");  // the caller reads the result
  }
  template <class Result, class F>
  static void run_with_table(const reader& r, std::size_t bytes, std::span<Result> result, const F& f) {
    run(r, bytes, result, [&](const cuda& exec, std::span<Result> there) { f(exec, exec.workspace, there); });
  }
};

}  // namespace suture::abi
