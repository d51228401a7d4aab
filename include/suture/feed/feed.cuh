// SPDX-License-Identifier: Apache-2.0
// A feed for CUDA: boxes are read into pinned memory, copied on a stream of the feed, and run on the caller's.
#pragma once

#include "../exec/cuda/run.cuh"
#include "feed.hpp"

namespace suture::detail {

// An event with the time at which a stream reached it.
class timed_event {
public:
  timed_event() { check_cuda(cudaEventCreate(&event_), "feed"); }
  timed_event(const timed_event&) = delete;
  timed_event& operator=(const timed_event&) = delete;
  ~timed_event() { cudaEventDestroy(event_); }

  void record(cudaStream_t stream) const { check_cuda(cudaEventRecord(event_, stream), "feed"); }
  void hold_back(cudaStream_t stream) const { check_cuda(cudaStreamWaitEvent(stream, event_, 0), "feed"); }
  void wait() const { check_cuda(cudaEventSynchronize(event_), "feed"); }
  double seconds_since(const timed_event& earlier) const {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, earlier.event_, event_), "feed");
    return static_cast<double>(ms) / 1000;
  }

private:
  cudaEvent_t event_ = nullptr;
};

template <>
class feed_executor<cuda> {
public:
  static constexpr bool runs_ahead = false;

  explicit feed_executor(const cuda& on) : on_(on) {
    check_cuda(cudaGetDevice(&device_), "feed");
    check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "feed");
    try {
      begin_.record(copies_);
      begin_.wait();
    } catch (...) {
      cudaStreamDestroy(copies_);
      throw;
    }
  }
  feed_executor(const feed_executor&) = delete;
  feed_executor& operator=(const feed_executor&) = delete;
  ~feed_executor() { cudaStreamDestroy(copies_); }

  void enter_thread() const { cudaSetDevice(device_); }
  const cuda& executor() const { return on_; }
  cudaStream_t copies() const { return copies_; }
  const timed_event& begin() const { return begin_; }

private:
  cuda on_;
  int device_ = 0;
  cudaStream_t copies_ = nullptr;
  timed_event begin_;
};

// The device's block holds the boxes, then the other data.
template <>
class feed_memory<cuda> {
public:
  explicit feed_memory(const feed_executor<cuda>& on) : on_(on) {}
  feed_memory(const feed_memory&) = delete;
  feed_memory& operator=(const feed_memory&) = delete;
  ~feed_memory() {
    // The caller may still use the batch, and cudaFree does not wait for every stream.
    cudaStreamSynchronize(on_.copies());
    cudaStreamSynchronize(on_.executor().stream);
    drop();
  }

  static std::size_t bytes_of(std::size_t staged, std::size_t others) { return 2 * staged + others; }
  std::size_t capacity() const { return bytes_of(staged_, others_); }

  void reserve(std::size_t staged, std::size_t others) {
    if (staged <= staged_ && others <= others_) return;
    staged = std::max(staged, staged_);
    others = std::max(others, others_);
    drop();
    check_cuda(cudaHostAlloc(&pinned_, staged, cudaHostAllocDefault), "feed");
    check_cuda(cudaMalloc(&device_, staged + others), "feed");
    staged_ = staged;
    others_ = others;
  }
  void drop() {
    if (pinned_ != nullptr) cudaFreeHost(pinned_);
    if (device_ != nullptr) cudaFree(device_);
    pinned_ = device_ = nullptr;
    staged_ = others_ = 0;
  }
  std::byte* staging() const { return static_cast<std::byte*>(pinned_); }
  std::byte* inputs() const { return static_cast<std::byte*>(device_); }
  std::byte* others() const { return inputs() + staged_; }

  void copy(std::size_t bytes) {
    copy_begin_.record(on_.copies());
    check_cuda(cudaMemcpyAsync(device_, pinned_, bytes, cudaMemcpyHostToDevice, on_.copies()), "feed");
    copy_end_.record(on_.copies());
  }
  template <class Run>
  void run(const Run& run_plan) {
    const cudaStream_t stream = on_.executor().stream;
    copy_end_.hold_back(stream);
    run_begin_.record(stream);
    run_plan();
    run_end_.record(stream);
  }
  // Makes the memory reusable once the work that the caller has queued so far is done.
  void release() {
    released_.record(on_.executor().stream);
    was_released_ = true;
  }
  void wait_until_released() const {
    if (was_released_) released_.wait();
  }
  // Adds the times of the device, and sets `last_released` to the end of the batch before.
  void fill(feed_times& t, double& last_released) const {
    wait_until_released();
    const auto at = [&](const timed_event& e) { return e.seconds_since(on_.begin()); };
    t.copy_begin = at(copy_begin_);
    t.copy_end = at(copy_end_);
    t.run_begin = at(run_begin_);
    t.run_end = t.delivered = at(run_end_);
    t.released = at(released_);
    t.waited = std::max(0.0, t.run_begin - last_released);
    last_released = t.released;
  }

private:
  const feed_executor<cuda>& on_;
  void *pinned_ = nullptr, *device_ = nullptr;
  std::size_t staged_ = 0, others_ = 0;
  timed_event copy_begin_, copy_end_, run_begin_, run_end_, released_;
  bool was_released_ = false;
};

}  // namespace suture::detail
