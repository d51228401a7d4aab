// SPDX-License-Identifier: Apache-2.0
// What the programs that are compared with peers share: raw volumes in, clocks, lists in JSON, commands.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "suture/base/error.hpp"
#include "suture/image/grid.hpp"

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
std::vector<T> read_raw(const std::string& path, std::int64_t count) {
  std::vector<T> v(static_cast<std::size_t>(count));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(T)));
  suture::require(file.good() && file.peek() == EOF, {"peers"}, path, " does not hold ", count, " values");
  return v;
}

// One array behind the other.
template <class... Arrays>
void write_raw(const std::string& path, const Arrays&... arrays) {
  std::ofstream file(path, std::ios::binary);
  (file.write(reinterpret_cast<const char*>(arrays.data()),
              static_cast<std::streamsize>(arrays.size() * sizeof(arrays[0]))),
   ...);
  suture::require(file.good(), {"peers"}, "cannot write ", path);
}

// From the words NZ NY NX of a command line.
inline suture::grid read_extents(char** words) {
  suture::grid g{};
  for (int k = 0; k < 3; ++k) g.extents[k] = std::atoll(words[k]);
  check(g, {"peers"});
  return g;
}
// From NZ NY NX SZ SY SX.
inline suture::grid read_grid(char** words) {
  suture::grid g = read_extents(words);
  for (int k = 0; k < 3; ++k) g.spacing[k] = std::atof(words[3 + k]);
  check(g, {"peers"});
  return g;
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

using command = std::function<void(std::istream& arguments)>;

// The command "time N": seconds of N runs of `work`.
template <class Work>
command timed(const Work& work) {
  return [work](std::istream& arguments) {
    int runs = 0;
    arguments >> runs;
    stopwatch clock;
    for (int i = 0; i < runs; ++i) clock.time(work);
    clock.print();
  };
}

// Answers the commands of the standard input, one a line, each in one line.
inline void serve(const std::map<std::string, command>& commands) {
  for (std::string line, name; std::getline(std::cin, line);) {
    std::istringstream arguments(line);
    arguments >> name;
    const auto found = commands.find(name);
    suture::require(found != commands.end(), {"peers"}, "unknown command ", name);
    found->second(arguments);
    std::cout << std::endl;
  }
}

// What main returns: work(argv), or 1 after an error, which is told on the standard error.
template <class Work>
int run_program(int argc, char** argv, const std::string& usage, const Work& work) {
  const auto needed = std::count(usage.begin(), usage.end(), ' ');
  try {
    suture::require(argc == needed + 1, {"peers"}, argc - 1, " arguments instead of ", needed, ": ", usage);
    work(argv);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}

}  // namespace peers
