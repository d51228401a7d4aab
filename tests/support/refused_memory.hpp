// SPDX-License-Identifier: Apache-2.0
// A program that includes this header can have `new` fail, as it does when memory runs out. Only one file of a program
// may include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace support {

inline std::atomic<bool> refuses_memory{false};

// While it lives, every `new` of the program throws std::bad_alloc.
struct refused_memory {
  refused_memory() { refuses_memory = true; }
  ~refused_memory() { refuses_memory = false; }
};

}  // namespace support

void* operator new(std::size_t bytes) {
  void* const memory = support::refuses_memory ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
