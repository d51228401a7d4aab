// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every pipeline with operations on color, computed on the device.
#include "device.cuh"

int main() {
  const digest_test::color_cases data;
  digest_test::for_each_color_recipe(
      [&](const char* name, const auto& pipeline) { digest_test::device_digest(data, name, pipeline).print(); });
  return 0;
}
