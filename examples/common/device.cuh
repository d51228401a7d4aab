// SPDX-License-Identifier: Apache-2.0
// What the CUDA halves of the examples share.
#pragma once

#include <string_view>
#include <vector>

#include "suture/suture.cuh"

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

}  // namespace suture::examples
