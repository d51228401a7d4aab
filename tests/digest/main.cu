// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every pipeline, computed on the device.
#include "device.cuh"

int main() {
  const digest_test::cases data;
  bool same = true;
  digest_test::for_each_recipe([&](const char* name, const auto& pipeline) {
    const auto digest_of = [&](const auto& cases) { return digest_test::device_digest(cases, name, pipeline); };
    same = digest_test::print(data, digest_of) && same;
  });
  const digest_test::second_image second;
  digest_test::device_digest(second, "second_image", digest_test::noisy_recipe()).print();
  return same ? 0 : 1;
}
