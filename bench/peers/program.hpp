// SPDX-License-Identifier: Apache-2.0
// What the programs that are compared with peers share: raw volumes in, clocks, lists in JSON.
#pragma once

#include <time.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "suture/core/error.hpp"

namespace peers {

inline double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Memory of a batch, which begins with a line of the cache as that of PyTorch does.
template <class T>
struct batch_allocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, alignment); }
  friend bool operator==(batch_allocator, batch_allocator) { return true; }
};
template <class T>
using batch_memory = std::vector<T, batch_allocator<T>>;

template <class T>
std::vector<T> read_raw(const std::string& path, std::int64_t voxels) {
  std::vector<T> v(static_cast<std::size_t>(voxels));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(T)));
  suture::require(file.good() && file.peek() == EOF, {"peers"}, path, " does not hold ", voxels, " voxels");
  return v;
}

template <class T>
void write_raw(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  suture::require(file.good(), {"peers"}, "cannot write ", path);
}

// A list in brackets.
template <class Range>
void print_list(const Range& values) {
  std::cout << '[';
  bool first = true;
  for (const auto& v : values) std::cout << (std::exchange(first, false) ? "" : ", ") << v;
  std::cout << ']';
}

// The clocks of several runs.
struct stopwatch {
  std::vector<double> wall, processor;

  template <class Work>
  void time(const Work& work) {
    const double start = seconds(CLOCK_MONOTONIC), processor_start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    work();
    processor.push_back(seconds(CLOCK_PROCESS_CPUTIME_ID) - processor_start);
    wall.push_back(seconds(CLOCK_MONOTONIC) - start);
  }
  void print() const {
    std::cout << "{\"wall\": ";
    print_list(wall);
    std::cout << ", \"processor\": ";
    print_list(processor);
    std::cout << '}';
  }
};

}  // namespace peers
