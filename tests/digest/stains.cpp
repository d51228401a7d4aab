// SPDX-License-Identifier: Apache-2.0
// Prints the digests of stain fits and normalization, computed on the CPU.
#include "stains.hpp"

#include "host_backend.hpp"

int main() {
  digest_test::print_stains(digest_test::host_backend{});
  return 0;
}
