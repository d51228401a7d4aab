// SPDX-License-Identifier: Apache-2.0
// What the small programs of this folder have in common. Each asks a GPU one question that docs/performance.md leaves
// open, and prints a line of JSON for each answer as soon as it has it:
//   {"micro": "gathers", "case": "16 x 2, 15 degrees", "value": 0.78, "unit": "cycles", "emulated": false}
// bench/report reads the lines. Under an emulator, where --tiny is needed, times mean nothing and the lines say so.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "../device_clock.cuh"

namespace micro {

using suture::check_cuda;

class device {
public:
  cudaDeviceProp properties{};
  cudaStream_t stream = nullptr;
  bool tiny = false, emulated = false;

  device(std::string_view test, int argc, char** argv) : test_(test) {
    for (int i = 1; i < argc; ++i) {
      if (std::string_view(argv[i]) == "--tiny") {
        tiny = true;
      } else if (std::string_view(argv[i]) == "--starts") {
        std::exit(0);  // whether the program finds all libraries
      } else {
        std::fprintf(stderr, "%s [--tiny]\n", argv[0]);
        std::exit(2);
      }
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
      check_cuda(cudaGetDeviceProperties(&properties, 0), "device");
    emulated = std::string_view(properties.name).find("emu") != std::string_view::npos;
    if (properties.major < 8 || (emulated && !tiny)) {
      std::fprintf(
          stderr, "%s: %s, nothing is measured\n", argv[0],
          emulated ? "an emulated device without --tiny" : "no CUDA device of compute capability 8.0 or above");
      std::exit(77);
    }
    check_cuda(cudaStreamCreate(&stream), "stream");
    check_cuda(cudaEventCreate(&begin_), "event");
    check_cuda(cudaEventCreate(&end_), "event");
  }
  device(const device&) = delete;

  void say(const std::string& name, double value, std::string_view unit) const {
    std::printf("{\"micro\": \"%s\", \"case\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"emulated\": %s}\n",
                test_.c_str(), name.c_str(), value, std::string(unit).c_str(), emulated ? "true" : "false");
    std::fflush(stdout);
  }
  // What a case was left out for, or a fact that is no number.
  void note(const std::string& name, const std::string& text) const {
    std::printf("{\"micro\": \"%s\", \"case\": \"%s\", \"note\": \"%s\", \"emulated\": %s}\n", test_.c_str(),
                name.c_str(), text.c_str(), emulated ? "true" : "false");
    std::fflush(stdout);
  }

  // Seconds of `queue`, which queues work on the stream `repeats` times: the median of several runs after one that is
  // not counted.
  template <class Queue>
  double seconds(int repeats, const Queue& queue) const {
    return seconds_of([&] {
             for (int i = 0; i < repeats; ++i) queue();
           }) /
           repeats;
  }
  // The same in a captured graph.
  template <class Queue>
  double seconds_in_graph(int repeats, const Queue& queue) const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < repeats; ++i) queue();
    check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&ready, graph, 0), "graph");
    const double s = seconds_of([&] { check_cuda(cudaGraphLaunch(ready, stream), "graph"); }) / repeats;
    check_cuda(cudaGraphExecDestroy(ready), "graph");
    check_cuda(cudaGraphDestroy(graph), "graph");
    return s;
  }
  // Seconds of the calling thread for one call of `queue`.
  template <class Queue>
  double host_seconds(int repeats, const Queue& queue) const {
    check_cuda(cudaStreamSynchronize(stream), "stream");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) queue();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    check_cuda(cudaStreamSynchronize(stream), "stream");
    return taken.count() / repeats;
  }
  double clock() const { return bench::multiprocessor_clock(stream, tiny ? 1 << 8 : 1 << 18); }

private:
  template <class Work>
  double seconds_of(const Work& work) const {
    std::vector<double> samples;
    for (int i = 0; i < (tiny ? 2 : 12); ++i) {
      const double s = bench::seconds_between(begin_, end_, stream, work);
      if (i > 0) samples.push_back(s);
    }
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
  }

  std::string test_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

template <class T>
class memory {
public:
  explicit memory(std::size_t n) : n_(n) { check_cuda(cudaMalloc(&data_, n * sizeof(T)), "memory"); }
  explicit memory(const std::vector<T>& values) : memory(values.size()) {
    check_cuda(cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice), "memory");
  }
  memory(const memory&) = delete;
  ~memory() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> values() const {
    std::vector<T> v(n_);
    check_cuda(cudaDeviceSynchronize(), "memory");
    check_cuda(cudaMemcpy(v.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "memory");
    return v;
  }

private:
  std::size_t n_;
  void* data_ = nullptr;
};

}  // namespace micro
