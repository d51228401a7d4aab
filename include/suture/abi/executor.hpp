// SPDX-License-Identifier: Apache-2.0
// `place` makes the executor of a request for a function, and memory for its results that the executor can write. A
// function is then written once for both executors:
//
//   template <class T, class Executor>
//   void bounding_box(const request& given) {
//     reader r(given, "bounding_box");
//     const auto images = r.input<T>("images");
//     const auto threshold = r.next<float>("threshold");
//     const auto boxes = r.result<bounding_box_result>("boxes", given.samples);
//     place<Executor>::run(r, workspace_bytes(mask_work::bounding_box{}, images), boxes, [&](auto& exec, auto found) {
//       suture::bounding_box(exec, images, found, threshold);
//     });
//   }
//
// executor.cuh has place<cuda>. A function that needs no executor must call r.finish() after it has read the request.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../exec/common/workspace.hpp"
#include "../exec/cpu/cpu.hpp"
#include "reader.hpp"

namespace suture::abi {

// `place<Executor>` makes the executor of a request and calls f with it. Every specialization has these functions:
//   run(r, workspace, f)                  calls f(executor); on a GPU the executor has `workspace` bytes of workspace
//   run(r, workspace, result, f)          calls f(executor, result)
//   run_with_table(r, bytes, result, f)   calls f(executor, table, result); the table is scratch memory of `bytes`
//                                         bytes, aligned to 256, that the executor can write
// `result` is the caller's memory on the host, as reader::result returns it. f gets a span of the same length that the
// executor can write; on a GPU the results are then copied to the host, and the call waits for that. All functions
// refuse a request of which a part was not read.
template <class Executor>
struct place;

template <>
struct place<cpu> {
  template <class F>
  static void run(const reader& r, std::size_t, const F& f) {
    r.finish();
    f(cpu{.threads = r.request().threads});
  }
  template <class Result, class F>
  static void run(const reader& r, std::size_t workspace, std::span<Result> result, const F& f) {
    run(r, workspace, [&](const cpu& exec) { f(exec, result); });
  }
  template <class Result, class F>
  static void run_with_table(const reader& r, std::size_t bytes, std::span<Result> result, const F& f) {
    std::vector<std::byte> memory(bytes + suture::detail::workspace_alignment - 1);
    void* begin = memory.data();
    std::size_t space = memory.size();
    std::align(suture::detail::workspace_alignment, bytes, begin, space);
    run(r, 0, [&](const cpu& exec) { f(exec, std::span(static_cast<std::byte*>(begin), bytes), result); });
  }
};

// Returns the bytes of workspace of a function that needs none on the CPU: workspace_bytes(of...), or 0 on the CPU.
template <class Executor, class... Of>
std::size_t device_bytes(const Of&... of) {
  if constexpr (std::is_same_v<Executor, cpu>)
    return 0;
  else
    return workspace_bytes(of...);
}

}  // namespace suture::abi
