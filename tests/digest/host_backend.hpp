// SPDX-License-Identifier: Apache-2.0
// Where the work of a digest runs and keeps its memory: the CPU.
#pragma once

#include <suture/exec/cpu/run.hpp>

#include <cstring>
#include <memory>
#include <vector>

namespace digest_test {

using namespace suture;

struct host_backend {
  std::vector<std::shared_ptr<std::byte[]>> memory;

  cpu exec(std::size_t) { return {}; }
  template <class T>
  T* room(std::size_t n) {
    memory.emplace_back(new std::byte[n * sizeof(T)]);
    return reinterpret_cast<T*>(memory.back().get());
  }
  template <class T>
  T* place(const std::vector<T>& values) {
    T* const at = room<T>(values.size());
    std::memcpy(at, values.data(), values.size() * sizeof(T));
    return at;
  }
  template <class T>
  std::vector<T> back(const T* at, std::size_t n) {
    return {at, at + n};
  }
};

}  // namespace digest_test
