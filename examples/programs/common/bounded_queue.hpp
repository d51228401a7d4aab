// SPDX-License-Identifier: Apache-2.0
// Hands things from a thread that makes them to one that uses them, at most so many waiting.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace suture::examples {

template <class T>
class bounded_queue {
public:
  explicit bounded_queue(std::size_t most) : most_(most) {}

  // Waits for room; false, and nothing is kept, once the queue is closed.
  bool push(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || waiting_.size() < most_; });
    if (closed_) return false;
    waiting_.push_back(std::move(value));
    changed_.notify_all();
    return true;
  }
  // Waits for a value; none once the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return std::nullopt;
    std::optional<T> value(std::move(waiting_.front()));
    waiting_.pop_front();
    changed_.notify_all();
    return value;
  }
  // From either side: nothing more comes, or nothing more is wanted.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

private:
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> waiting_;
  bool closed_ = false;
};

}  // namespace suture::examples
