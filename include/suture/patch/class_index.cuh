// SPDX-License-Identifier: Apache-2.0
// The function index_classes for label maps in device memory.
#pragma once

#include "../exec/cuda/run.cuh"
#include "class_index.hpp"

namespace suture {

namespace detail {

// Queues a copy of a view's bytes to `memory` on the host and returns the view of the copy.
template <class T>
view<const T> copied_to_host(const view<const T>& v, std::vector<std::byte>& memory, const cuda& exec) {
  const byte_range from = bytes(v);
  memory.resize(from.last - from.first);
  check_cuda(cudaMemcpyAsync(memory.data(), reinterpret_cast<const void*>(from.first), memory.size(),
                             cudaMemcpyDeviceToHost, exec.stream),
             "index_classes", exec.at);
  view<const T> copy = v;
  copy.data = reinterpret_cast<const T*>(memory.data() + (reinterpret_cast<std::uintptr_t>(v.data) - from.first));
  return copy;
}

}  // namespace detail

// index_classes (class_index.hpp) for maps in device memory: copies one after the other to the host, waits for the
// stream and indexes the copy. Call it once per case, not in a training step.
template <class Classes>
std::vector<class_index> index_classes(const cuda& exec, const Classes& map) {
  detail::check_indexed(map);
  std::vector<class_index> all;
  for (std::size_t i = 0; i < map.samples(); ++i) {
    std::vector<std::byte> labels, images;
    Classes one = map;
    one.labels = {detail::copied_to_host(map.labels[i], labels, exec)};
    if constexpr (requires { map.images; })
      if (!map.images.empty()) one.images = {detail::copied_to_host(map.images[i], images, exec)};
    check_cuda(cudaStreamSynchronize(exec.stream), "index_classes", exec.at);
    all.push_back(detail::index_sample(0, one, 0));
  }
  return all;
}

}  // namespace suture
