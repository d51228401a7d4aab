// SPDX-License-Identifier: Apache-2.0
// Prints the digests of masks, computed on the device.
#include <suture/mask/loops.cuh>

#include "device_backend.cuh"
#include "masks.hpp"

int main() {
  digest_test::print_masks(digest_test::device_backend{});
  return 0;
}
