// SPDX-License-Identifier: Apache-2.0
// Prints the digests of stain fits and normalization, computed on the device.
#include <suture/suture.cuh>

#include "device_backend.cuh"
#include "stains.hpp"

int main() {
  digest_test::print_stains(digest_test::device_backend{});
  return 0;
}
