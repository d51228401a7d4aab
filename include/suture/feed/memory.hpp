// SPDX-License-Identifier: Apache-2.0
// The executor of a feed, and the memory of one of its batches. For CUDA see feed.cuh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "../exec/cpu/run.hpp"
#include "batch.hpp"

namespace suture::detail {

// feed_executor is the state that all batches of a feed share; feed_memory is the memory of one batch: `staged` bytes
// that readers fill, and `others` for outputs and workspace. The CPU runs a plan in advance on a thread of the feed, a
// device in next().
template <class Executor>
class feed_executor;
template <class Executor>
class feed_memory;

template <>
class feed_executor<cpu> {
public:
  static constexpr bool runs_ahead = true;
  explicit feed_executor(const cpu& on) : on_(on) {}
  void enter_thread() const {}
  const cpu& executor() const { return on_; }

private:
  cpu on_;
};

template <>
class feed_memory<cpu> {
public:
  explicit feed_memory(const feed_executor<cpu>&) {}
  static std::size_t bytes_of(std::size_t staged, std::size_t others) { return staged + others; }
  std::size_t capacity() const { return staged_ + others_; }

  void reserve(std::size_t staged, std::size_t others) {
    if (staged <= staged_ && others <= others_) return;
    staged = std::max(staged, staged_);
    others = std::max(others, others_);
    drop();
    memory_.reset(static_cast<std::byte*>(::operator new(staged + others, alignment)));
    staged_ = staged;
    others_ = others;
  }
  void drop() {
    memory_.reset();
    staged_ = others_ = 0;
  }
  std::byte* staging() const { return memory_.get(); }
  std::byte* inputs() const { return memory_.get(); }
  std::byte* others() const { return memory_.get() + staged_; }

  void copy(std::size_t) {}
  template <class Run>
  void run(const Run& run_plan) {
    run_plan();
  }
  void release() {}
  void wait_until_released() {}
  void fill(feed_times&, double&) const {}

private:
  static constexpr std::align_val_t alignment{256};
  struct aligned_delete {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<std::byte, aligned_delete> memory_;
  std::size_t staged_ = 0, others_ = 0;
};

}  // namespace suture::detail
