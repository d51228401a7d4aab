// SPDX-License-Identifier: Apache-2.0
// Memory between two pages that nothing may touch: a read or write beyond it ends the process.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <utility>

// `bytes` bytes that end where a page does (at_end), or begin where one does. Where both are wanted, run twice.
class guarded_memory {
public:
  guarded_memory(std::size_t bytes, bool at_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (bytes + page - 1) / page * page;
    size_ = room + 2 * page;
    all_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all_ == MAP_FAILED) throw std::bad_alloc();
    auto* const first = static_cast<std::byte*>(all_) + page;
    if (room > 0 && mprotect(first, room, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = at_end ? first + (room - bytes) : first;
  }
  guarded_memory(guarded_memory&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), size_(other.size_), data_(other.data_) {}
  guarded_memory(const guarded_memory&) = delete;
  guarded_memory& operator=(const guarded_memory&) = delete;
  ~guarded_memory() {
    if (all_ != nullptr) munmap(all_, size_);
  }

  std::byte* data() const { return data_; }

private:
  void* all_;
  std::size_t size_;
  std::byte* data_;
};
