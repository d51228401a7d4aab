// SPDX-License-Identifier: Apache-2.0
// What the card is, the clock its multiprocessors run at, and how fast a plain copy is, of random data and of zeros.
//   facts [--tiny]
#include "micro.cuh"

namespace {

template <int Per>
double bytes_per_second(const micro::device& d, const micro::memory<uint4>& from, const micro::memory<uint4>& to,
                        std::size_t words) {
  double best = 0;
  for (const int threads : {128, 256, 512, 1024}) {
    const auto blocks = static_cast<unsigned>(words / static_cast<std::size_t>(Per * threads));
    const double s = d.seconds(1, [&] {
      bench::copy_kernel<Per><<<blocks, static_cast<unsigned>(threads), 0, d.stream>>>(from.data(), to.data());
      micro::check_cuda(cudaGetLastError(), "copy");
    });
    best = std::max(best, 32 * static_cast<double>(words) / s);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const micro::device d("facts", argc, argv);
  const cudaDeviceProp& p = d.properties;
  d.note("device", p.name);
  d.note("compute capability", std::to_string(p.major) + "." + std::to_string(p.minor));
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  d.note("CUDA of the driver and of the runtime", std::to_string(driver) + ", " + std::to_string(runtime));
  d.say("multiprocessors", p.multiProcessorCount, "");
  d.say("L2 cache", static_cast<double>(p.l2CacheSize), "B");
  d.say("memory", static_cast<double>(p.totalGlobalMem), "B");
  d.say("shared memory of a multiprocessor", static_cast<double>(p.sharedMemPerMultiprocessor), "B");
  d.say("clock, idle", d.clock(), "Hz");

  const std::size_t words = d.tiny ? std::size_t{1} << 15 : std::size_t{1} << 26;  // of 16 bytes
  const micro::memory<uint4> from(words), to(words);
  for (const bool random : {true, false}) {
    if (random)
      bench::fill_random(from.data(), 16 * words, d.stream);
    else
      micro::check_cuda(cudaMemsetAsync(from.data(), 0, 16 * words, d.stream), "zeros");
    const double best = std::max({bytes_per_second<1>(d, from, to, words), bytes_per_second<2>(d, from, to, words),
                                  bytes_per_second<4>(d, from, to, words), bytes_per_second<8>(d, from, to, words)});
    d.say(random ? "copy of random data, read + written" : "copy of zeros, read + written", best, "B/s");
    if (random) d.say("clock, behind copies", d.clock(), "Hz");
  }
}
