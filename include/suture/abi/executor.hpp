// SPDX-License-Identifier: Apache-2.0
// Gives a typed function its executor, and memory for its results where that executor writes. The body is written once:
//
//   template <class T, class Executor>
//   struct bounding_box {
//     static void call(const request& given) {
//       reader r(given, "bounding_box");
//       const auto images = r.input<T>("images");
//       const auto threshold = r.next<float>("threshold");
//       const auto boxes = r.result<bounding_box_result>("boxes", given.samples);
//       place<Executor>::run(
//           r, workspace_bytes(mask_work::bounding_box{}, images),
//           [&](const Executor& exec, auto found) { suture::bounding_box(exec, images, found, threshold); }, boxes);
//     }
//   };
//
// executor.cuh has place<cuda>. A function that runs nothing on an executor reads, calls r.finish() and computes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../exec/common/workspace.hpp"
#include "../exec/cpu/cpu.hpp"
#include "reader.hpp"

namespace suture::abi {

// `place<Executor>` says how a request names its executor. Every specialization has
//   run(r, workspace, f, results...)         calls f(executor, results...); the executor's workspace has `workspace`
//                                            bytes, where the executor needs one (cuda)
//   run_with_table(r, bytes, f, results...)  calls f(executor, table, results...); the table has `bytes` bytes, aligned
//                                            to 256, where the executor writes
// `results` are spans of the caller's memory, as reader::result returns them; f gets spans of the same lengths where
// the executor writes. Both refuse a request of which something was not read.
template <class Executor>
struct place;

template <>
struct place<cpu> {
  template <class F, class... Results>
  static void run(const reader& r, std::size_t, const F& f, std::span<Results>... results) {
    r.finish();
    f(cpu{.threads = r.request().threads}, results...);
  }
  template <class F, class... Results>
  static void run_with_table(const reader& r, std::size_t bytes, const F& f, std::span<Results>... results) {
    r.finish();
    std::vector<std::byte> memory(bytes + suture::detail::workspace_alignment - 1);
    void* begin = memory.data();
    std::size_t space = memory.size();
    std::align(suture::detail::workspace_alignment, bytes, begin, space);
    f(cpu{.threads = r.request().threads}, std::span(static_cast<std::byte*>(begin), bytes), results...);
  }
};

}  // namespace suture::abi
