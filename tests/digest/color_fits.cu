// SPDX-License-Identifier: Apache-2.0
// Prints the digests of fits of color and of what applies them, computed on the device.
#include <suture/suture.cuh>

#include "color_fits.hpp"
#include "device_backend.cuh"

int main() {
  digest_test::color_fits(digest_test::device_backend{}).print();
  return 0;
}
