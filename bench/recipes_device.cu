// SPDX-License-Identifier: Apache-2.0
// Whole recipes on the device.
//   recipes_device [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
// Without a device, and without --tiny under an emulator, there is nothing to measure.

#include "cuda_machine.cuh"

// After the executor it runs on.
#include "recipe_rows.hpp"

int main(int argc, char** argv) {
  const bench::options chosen = bench::parse(argc, argv);
  if (!chosen.good) return 2;
  cudaDeviceProp device{};
  if (!bench::find_device(device, chosen.tiny)) return 0;
  bench::cuda_machine machine(device, chosen.seconds);
  bench::recipe_inputs<bench::cuda_machine> inputs(chosen.tiny ? bench::tiny_recipe_scene() : bench::recipe_scene{});
  bench::add_recipe_rows(machine, inputs, "");
  bench::add_context(device, machine);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return bench::any_failed ? 1 : 0;
}
