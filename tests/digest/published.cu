// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every published recipe, computed on the device.
#include "device.cuh"

#include "published.hpp"

int main() {
  const digest_test::cases data;
  digest_test::for_each_published_recipe(
      [&](const char* name, const auto& pipeline) { digest_test::device_digest(data, name, pipeline).print(); });
  return 0;
}
