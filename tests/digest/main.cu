// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every pipeline, computed on the device.
#include "device.cuh"

int main() {
  const digest_test::cases data;
  digest_test::for_each_recipe(
      [&](const char* name, const auto& pipeline) { digest_test::device_digest(data, name, pipeline).print(); });
  const digest_test::second_image second;
  digest_test::device_digest(second, "second_image", digest_test::noisy_recipe()).print();
}
