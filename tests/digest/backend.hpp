// SPDX-License-Identifier: Apache-2.0
// Where a digest program runs, on the CPU: an executor with workspace, and memory beside it.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include <suture/suture.hpp>

namespace digest_test {

struct host_backend {
  std::vector<std::shared_ptr<std::byte[]>> memory;

  suture::cpu exec(std::size_t) { return {}; }
  // Room for n values that are left as they are.
  template <class T>
  T* room(std::size_t n) {
    memory.emplace_back(new std::byte[n * sizeof(T)]);
    return reinterpret_cast<T*>(memory.back().get());
  }
  template <class T>
  T* place(const std::vector<T>& values) {
    T* const at = room<T>(values.size());
    std::memcpy(static_cast<void*>(at), values.data(), values.size() * sizeof(T));
    return at;
  }
  template <class T>
  std::vector<T> back(const T* at, std::size_t n) {
    return {at, at + n};
  }
};

}  // namespace digest_test
