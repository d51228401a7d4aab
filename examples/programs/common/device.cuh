// SPDX-License-Identifier: Apache-2.0
// What the CUDA halves of the examples share.
#pragma once

#include <string_view>
#include <vector>

#include "suture/suture.cuh"
#include "timed_runs.hpp"

namespace suture::examples {

// Device memory that grows on demand.
template <class T>
class device_buffer {
public:
  T* reserve(std::size_t count) {
    memory_.reserve(count * sizeof(T));
    return reinterpret_cast<T*>(memory_.span().data());
  }
  T* upload(const std::vector<T>& from) {
    T* to = reserve(from.size());
    check_cuda(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "device_buffer");
    return to;
  }
  // The first values of what it holds; waits for nothing but the copy.
  void download(std::vector<T>& to) const {
    check_cuda(cudaMemcpy(to.data(), memory_.span().data(), to.size() * sizeof(T), cudaMemcpyDeviceToHost),
               "device_buffer");
  }

private:
  cuda_workspace memory_;
};

// What a run launches, counted by capturing it in a graph: kernels and nothing else.
template <class Run>
int count_kernels(cudaStream_t stream, const Run& run) {
  constexpr std::string_view here = "count_kernels";
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), here);
  run();
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), here);
  std::size_t count = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &count), here);
  check_cuda(cudaGraphDestroy(graph), here);
  return static_cast<int>(count);
}

// A stream that waits for no other.
class owned_stream {
public:
  owned_stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "owned_stream"); }
  ~owned_stream() { cudaStreamDestroy(stream_); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_), "owned_stream"); }

private:
  cudaStream_t stream_ = nullptr;
};

// cpu_runs for the device: on a stream of its own, done when run() returns.
class cuda_runs {
public:
  // The stream with memory for other work of that many bytes.
  cuda executor(std::size_t bytes) {
    workspace_.reserve(bytes);
    return {stream_, workspace_};
  }
  void wait() const { stream_.wait(); }

  template <class Plan, class... Bindings>
  void run(run_statistics& spent, const Plan& plan, const Bindings&... bound) {
    spent.workspace_bytes = std::max(spent.workspace_bytes, workspace_bytes(plan, bound...));
    const cuda on = executor(spent.workspace_bytes);
    const auto queue = [&] { suture::run(on, plan, bound...); };
    if (spent.launches == 0) {
      spent.launches = count_kernels(stream_, queue);
      queue();  // the first launch loads the kernels, which is no part of the speed
      wait();
    }
    spent.seconds += seconds_of([&] {
      queue();
      wait();
    });
    spent.stages = plan.stages();
  }

private:
  owned_stream stream_;
  cuda_workspace workspace_;
};

}  // namespace suture::examples
