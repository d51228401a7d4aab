// SPDX-License-Identifier: Apache-2.0
// place<cuda> executes functions of a request on a CUDA device, on the stream and in the workspace of the request.
//
// A function that needs device memory is called twice. In the first request workspace_bytes is 0 and `workspace` points
// to a std::uint64_t on the host: the function only writes there how many bytes it needs. In the second request
// `workspace` is device memory of that many bytes. A function that needs no memory does its work in the first call.
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
