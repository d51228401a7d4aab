// SPDX-License-Identifier: Apache-2.0
// How a row is measured and what it says. A machine (cpu_machine.hpp, cuda_machine.cuh) says where memory lies, how
// runs are timed and how fast a copy is.
//
// Time is the median of the samples, p10_us and p90_us stand beside it. bytes_per_second counts useful bytes: what must
// be read and written, each byte once. pct_copy is their share of the bandwidth of a plain copy, measured in the same
// process, which counts bytes read and written; on the CPU both by the time the processors work, which other programs
// disturb less. launches is the number of kernels, on the CPU of stages; workspace is
// in bytes. cpu_us is processor time, which other programs on the machine disturb less; host_us what queueing a run on
// a device costs the host. warm_us is the time of one set of inputs and outputs again and again, which may stay in a
// cache; clock_mhz is what the multiprocessors ran at right behind the samples.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "suture/plan/plan.hpp"

namespace bench {

struct timing {
  std::vector<double> seconds;   // of every sample
  double processor_seconds = 0;  // that the host's processors worked for one run, median
  double clock = 0;              // of a device's multiprocessors right behind the samples, in hertz
};

struct distribution {
  double p10 = 0, median = 0, p90 = 0;
};

inline distribution distribution_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
  };
  return {quantile(0.1), quantile(0.5), quantile(0.9)};
}

// Input and output bytes that must move for one run.
template <class Plan>
double useful_bytes(const Plan& plan, double input_voxel, double output_voxel) {
  double bytes = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto& g = plan.geometry(i);
    const auto out = static_cast<double>(g.output.voxels()), in = static_cast<double>(g.source.voxels());
    const double covered = out * std::abs(suture::determinant((g.to_source * g.to_deformed).linear));
    bytes += out * output_voxel + (Plan::pipeline_type::prefiltered ? in : std::min(in, covered)) * input_voxel;
  }
  return bytes;
}

inline bool any_failed = false;

// What a row has to say beside its time.
struct row_facts {
  double bytes = 0, voxels = 0;  // of one run
  std::size_t workspace = 0;
  int stages = 1;
  // A sample is the mean of a run of every set, where sets differ in what they draw.
  bool mean_of_sets = false;
};

// Times run(k), k below `sets`, and leaves the counters of the row.
template <class Machine, class Run>
void report(benchmark::State& state, Machine& machine, std::size_t sets, const Run& run, const row_facts& facts) {
  const timing measured = machine.time(sets, run, facts.mean_of_sets);
  const distribution seconds = distribution_of(measured.seconds);
  for (auto _ : state) state.SetIterationTime(seconds.median);
  state.SetBytesProcessed(static_cast<std::int64_t>(facts.bytes));
  state.counters["voxels/s"] = facts.voxels / seconds.median;
  state.counters["pct_copy"] = 100 * facts.bytes / machine.share_seconds(measured) / machine.copy_bandwidth();
  state.counters["p10_us"] = seconds.p10 * 1e6;
  state.counters["p90_us"] = seconds.p90 * 1e6;
  state.counters["launches"] = static_cast<double>(machine.launches(run, facts.stages));
  state.counters["workspace"] = static_cast<double>(facts.workspace);
  state.counters[Machine::on_device ? "host_us" : "cpu_us"] = measured.processor_seconds * 1e6;
  if constexpr (Machine::on_device) {
    state.counters["clock_mhz"] = measured.clock * 1e-6;
    state.counters["warm_us"] = distribution_of(machine.time(1, run, false).seconds).median * 1e6;
  }
}

// What the command line says: our --tiny, --benchmark_min_time as the seconds of samples for a row, and what is Google
// Benchmark's.
struct options {
  bool tiny = false;
  double seconds = 0.2;
  bool good = true;  // no argument is unknown
};
inline options parse(int argc, char** argv) {
  // A row takes its own samples, so Google Benchmark must be content with one iteration.
  static char one_iteration[] = "--benchmark_min_time=1e-9";
  constexpr std::string_view min_time = "--benchmark_min_time=";
  std::vector<char*> rest{argv[0], one_iteration};
  options o;
  double seconds = -1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--tiny")
      o.tiny = true;
    else if (argument.starts_with(min_time))
      seconds = std::atof(argv[i] + min_time.size());
    else
      rest.push_back(argv[i]);
  }
  if (o.tiny) o.seconds = 0;
  if (seconds >= 0) o.seconds = seconds;
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  o.good = !benchmark::ReportUnrecognizedArguments(count, rest.data());
  return o;
}

}  // namespace bench
