// SPDX-License-Identifier: Apache-2.0
// Prints the digests of fits of color and of what applies them, computed on the CPU.
#include "color_fits.hpp"
#include "host_backend.hpp"

int main() {
  digest_test::color_fits(digest_test::host_backend{}).print();
  return 0;
}
