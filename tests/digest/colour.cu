// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every pipeline with operations on colour, computed on the device.
#include "device.cuh"

int main() {
  const digest_test::colour_cases data;
  digest_test::for_each_colour_recipe(
      [&](const char* name, const auto& pipeline) { digest_test::device_digest(data, name, pipeline).print(); });
}
