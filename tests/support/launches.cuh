// SPDX-License-Identifier: Apache-2.0
// What a piece of work queues on a stream, captured in a graph: counted, or launched as often as one likes.
#pragma once

#include "suture/exec/cuda/run.cuh"

namespace support {

class captured_work {
public:
  // work(stream)
  template <class Work>
  explicit captured_work(const Work& work) {
    suture::check_cuda(cudaStreamCreate(&stream_), "capture");
    suture::check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    work(stream_);
    suture::check_cuda(cudaStreamEndCapture(stream_, &graph_), "capture");
  }
  captured_work(const captured_work&) = delete;
  ~captured_work() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
    cudaStreamDestroy(stream_);
  }

  cudaStream_t stream() const { return stream_; }
  std::size_t nodes() const {
    std::size_t nodes = 0;
    suture::check_cuda(cudaGraphGetNodes(graph_, nullptr, &nodes), "capture");
    return nodes;
  }
  // Behind what the stream holds, and waits.
  void launch() {
    if (exec_ == nullptr) suture::check_cuda(cudaGraphInstantiate(&exec_, graph_, 0), "replay");
    suture::check_cuda(cudaGraphLaunch(exec_, stream_), "replay");
    suture::check_cuda(cudaStreamSynchronize(stream_), "replay");
  }

private:
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

// The kernels, copies and fills of work(stream).
template <class Work>
std::size_t launches(const Work& work) {
  return captured_work(work).nodes();
}

}  // namespace support
