// SPDX-License-Identifier: Apache-2.0
// Prints the digests of masks, computed on the CPU.
#include "masks.hpp"
#include "host_backend.hpp"

int main() {
  digest_test::print_masks(digest_test::host_backend{});
  return 0;
}
