// SPDX-License-Identifier: Apache-2.0
// place<cuda>: typed functions on a CUDA device, on the stream of the request and in its workspace.
//
// The first call has no workspace (workspace_bytes is 0) and asks for its size: where memory is needed, the size is
// written to the std::uint64_t that `workspace` points to, and nothing runs. The second call brings that much device
// memory. A function that needs none runs at once.
#pragma once

#include <tuple>

#include "../exec/cuda/run.cuh"
#include "executor.hpp"

namespace suture::abi {

template <>
struct place<cuda> {
  template <class F, class... Results>
  static void run(const reader& r, std::size_t workspace, const F& f, std::span<Results>... results) {
    r.finish();
    const request& given = r.request();
    const std::size_t need = (workspace + ... + suture::detail::aligned(results.size_bytes()));
    if (need > 0 && given.workspace_bytes == 0) {
      require(given.workspace != nullptr, r.where(), "workspace: expected room for its size, got none");
      *static_cast<std::uint64_t*>(given.workspace) = need;
      return;
    }
    auto* next = need == 0 ? nullptr : static_cast<std::byte*>(given.workspace);
    suture::detail::check_workspace(next, given.workspace_bytes, need, r.where(), "workspace: ");
    const auto take = [&]<class T>(std::span<T> host) {
      const std::span<T> there(reinterpret_cast<T*>(next), host.size());
      next += suture::detail::aligned(host.size_bytes());
      return there;
    };
    const std::tuple<std::span<Results>...> there{take(results)...};  // braces: from left to right
    const cuda exec{static_cast<cudaStream_t>(given.stream), {next, workspace}};
    std::apply([&](const auto&... spans) { f(exec, spans...); }, there);
    if constexpr (sizeof...(Results) > 0) {
      std::apply([&](const auto&... spans) { (to_host(spans, results, exec.stream), ...); }, there);
      check_cuda(cudaStreamSynchronize(exec.stream), "copy");  // results are read by the caller
    }
  }
  template <class F, class... Results>
  static void run_with_table(const reader& r, std::size_t bytes, const F& f, std::span<Results>... results) {
    run(
        r, bytes, [&](const cuda& exec, const auto&... spans) { f(exec, exec.workspace, spans...); }, results...);
  }

private:
  template <class T>
  static void to_host(std::span<T> from, std::span<T> to, cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDeviceToHost, stream), "copy");
  }
};

}  // namespace suture::abi
