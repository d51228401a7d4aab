// SPDX-License-Identifier: Apache-2.0
// The device as a machine that rows are measured on: CUDA events around captured graphs, against the best of a swept
// copy.
#pragma once

#include <chrono>
#include <cstdio>
#include <string_view>

#include "suture/suture.cuh"

// After the executor it runs on.
#include "device_clock.cuh"
#include "timing.hpp"

namespace bench {

using suture::check_cuda;

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class cuda_machine {
public:
  static constexpr bool on_device = true;

  template <class T>
  class buffer {
  public:
    explicit buffer(std::size_t n) : n_(n) { check_cuda(cudaMalloc(&data_, n * sizeof(T) + 1), "buffer"); }
    buffer(buffer&& other) noexcept : n_(other.n_), data_(other.data_) { other.data_ = nullptr; }
    buffer& operator=(buffer&&) = delete;
    ~buffer() { cudaFree(data_); }
    T* data() { return static_cast<T*>(data_); }
    void poison() { check_cuda(cudaMemset(data_, 0xff, n_ * sizeof(T)), "buffer"); }
    void assign(const T* values) {
      check_cuda(cudaMemcpy(data_, values, n_ * sizeof(T), cudaMemcpyHostToDevice), "buffer");
    }
    std::vector<T> values() {
      check_cuda(cudaDeviceSynchronize(), "buffer");
      std::vector<T> v(n_);
      if (n_) check_cuda(cudaMemcpy(v.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "buffer");
      return v;
    }

  private:
    std::size_t n_;
    void* data_ = nullptr;
  };

  cuda_machine(const cudaDeviceProp& device, double seconds)
      : cache_bytes_(device.l2CacheSize), seconds_(seconds), capacity_(device.totalGlobalMem) {
    check_cuda(cudaStreamCreate(&stream_), "stream");
    check_cuda(cudaEventCreate(&begin_), "event");
    check_cuda(cudaEventCreate(&end_), "event");
  }

  suture::cuda executor(std::span<std::byte> workspace) const { return {.stream = stream_, .workspace = workspace}; }
  double cache_bytes() const { return seconds_ > 0 ? static_cast<double>(cache_bytes_) : 0; }

  double share_seconds(const timing& measured) const { return distribution_of(measured.seconds).median; }
  double copy_bandwidth() {
    if (bandwidth_ == 0) {
      const std::size_t bytes =
          seconds_ > 0 ? std::min<std::size_t>(std::size_t{1} << 30, capacity_ / 16 >> 21 << 21) : std::size_t{1} << 21;
      buffer<std::byte> from(bytes), to(bytes);
      fill_random(from.data(), bytes, stream_);
      for (const int threads : {128, 256, 512, 1024}) {
        sweep<1>(from, to, bytes, threads);
        sweep<2>(from, to, bytes, threads);
        sweep<4>(from, to, bytes, threads);
        sweep<8>(from, to, bytes, threads);
      }
    }
    return bandwidth_;
  }

  template <class Run>
  std::size_t launches(const Run& run, int) const {
    const graph g(stream_, [&] { run(0); });
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(g.definition, nullptr, &nodes), "graph");
    return nodes;
  }

  template <class Evaluator>
  int registers() const {
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes, suture::detail::fused_kernel<true, Evaluator>), "registers");
    return attributes.numRegs;
  }

  // Each sample is a graph of runs, enough to last about two milliseconds, in which all sets take their turns.
  template <class Run>
  timing time(std::size_t sets, const Run& run, bool) {
    timing t;
    std::vector<double> host;
    for (int i = 0; i < (seconds_ > 0 ? 9 : 1); ++i) {
      const double start = now();
      run(0);
      host.push_back(now() - start);
    }
    t.processor_seconds = distribution_of(host).median;

    std::size_t rounds = 1;
    if (seconds_ > 0) {
      const graph probe(stream_, [&] { round(sets, run); });
      timed(probe);
      rounds = static_cast<std::size_t>(std::clamp(2e-3 / timed(probe), 1.0, 256.0 / static_cast<double>(sets)));
      rounds = std::max<std::size_t>(rounds, 1);
    }
    const graph g(stream_, [&] {
      for (std::size_t i = 0; i < rounds; ++i) round(sets, run);
    });
    timed(g);
    const double begin = now();
    do t.seconds.push_back(timed(g) / static_cast<double>(rounds * sets));
    while (seconds_ > 0 && (t.seconds.size() < 11 || (now() - begin < seconds_ && t.seconds.size() < 200)));
    t.clock = multiprocessor_clock(stream_, seconds_ > 0 ? 1 << 16 : 1 << 8);
    return t;
  }

private:
  struct graph {
    cudaGraph_t definition = nullptr;
    cudaGraphExec_t exec = nullptr;

    template <class Body>
    graph(cudaStream_t stream, const Body& body) {
      check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
      body();
      check_cuda(cudaStreamEndCapture(stream, &definition), "capture");
      check_cuda(cudaGraphInstantiate(&exec, definition, 0), "graph");
    }
    graph(const graph&) = delete;
    ~graph() {
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(definition);
    }
  };

  template <class Run>
  static void round(std::size_t sets, const Run& run) {
    for (std::size_t k = 0; k < sets; ++k) run(k);
  }

  double timed(const graph& g) {
    return timed([&] { check_cuda(cudaGraphLaunch(g.exec, stream_), "graph"); });
  }
  template <class Work>
  requires std::is_invocable_v<Work>
  double timed(const Work& work) { return seconds_between(begin_, end_, stream_, work); }

  template <int Per>
  void sweep(buffer<std::byte>& from, buffer<std::byte>& to, std::size_t bytes, int threads) {
    const std::size_t blocks = bytes / 16 / static_cast<std::size_t>(Per * threads);
    std::vector<double> samples;
    for (int i = 0; i < 6; ++i)
      samples.push_back(timed([&] {
        copy_kernel<Per><<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream_>>>(
            reinterpret_cast<const uint4*>(from.data()), reinterpret_cast<uint4*>(to.data()));
        check_cuda(cudaGetLastError(), "copy");
      }));
    bandwidth_ = std::max(bandwidth_, 2 * static_cast<double>(bytes) / distribution_of(samples).median);
  }

  int cache_bytes_;
  double seconds_;
  std::size_t capacity_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  double bandwidth_ = 0;
};

// The device to measure, unless there is none: an emulated one only shows that everything works, with --tiny.
inline bool find_device(cudaDeviceProp& device, bool tiny) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
    check_cuda(cudaGetDeviceProperties(&device, 0), "device");
  const bool emulated = std::string_view(device.name).find("emu") != std::string_view::npos;
  if (device.major >= 8 && (!emulated || tiny)) return true;
  std::printf("%s: the rows have no measurement\n",
              emulated ? "an emulated device" : "no CUDA device of compute capability 8.0 or above");
  return false;
}

inline void add_context(const cudaDeviceProp& device, cuda_machine& machine) {
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("l2_bytes", std::to_string(device.l2CacheSize));
  benchmark::AddCustomContext("copy_bytes_per_second", std::to_string(machine.copy_bandwidth()));
}

}  // namespace bench
