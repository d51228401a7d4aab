// SPDX-License-Identifier: Apache-2.0
// What a piece of work queues on a stream, counted in a graph and not run.
#pragma once

#include "suture/exec/cuda.cuh"

namespace support {

// The kernels, copies and fills of work(stream).
template <class Work>
std::size_t launches(const Work& work) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  std::size_t nodes = 0;
  suture::check_cuda(cudaStreamCreate(&stream), "launches");
  suture::check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "launches");
  work(stream);
  suture::check_cuda(cudaStreamEndCapture(stream, &graph), "launches");
  suture::check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "launches");
  suture::check_cuda(cudaGraphDestroy(graph), "launches");
  suture::check_cuda(cudaStreamDestroy(stream), "launches");
  return nodes;
}

}  // namespace support
