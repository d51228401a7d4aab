// SPDX-License-Identifier: Apache-2.0
// What a launch costs by the bytes of its arguments, in a stream and in a graph: suture's kernels take up to 4,000
// bytes of records where a batch is small, and 32,000 where it is not.
//   arguments [--tiny]
#include "micro.cuh"

namespace {

template <int Bytes>
struct block {
  unsigned words[Bytes / 4];
};

// Reads one word, which is known when it runs, so that the arguments have to be there.
template <int Bytes>
__global__ void empty_kernel(const __grid_constant__ block<Bytes> arguments, unsigned* sink) {
  if (sink != nullptr) *sink = arguments.words[threadIdx.x];
}

template <int Bytes>
void measure(const micro::device& d) {
  const block<Bytes> arguments{};
  const auto launch = [&] {
    empty_kernel<Bytes><<<1, 32, 0, d.stream>>>(arguments, nullptr);
    micro::check_cuda(cudaGetLastError(), "launch");
  };
  const int repeats = d.tiny ? 3 : 500;
  const std::string name = std::to_string(Bytes) + " B of arguments, ";
  d.say(name + "stream", 1e6 * d.seconds(repeats, launch), "us");
  d.say(name + "graph", 1e6 * d.seconds_in_graph(repeats, launch), "us");
  d.say(name + "host", 1e6 * d.host_seconds(repeats, launch), "us");
}

}  // namespace

int main(int argc, char** argv) {
  const micro::device d("arguments", argc, argv);
  measure<4>(d);
  measure<4000>(d);
  measure<32000>(d);
}
