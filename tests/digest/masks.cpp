// SPDX-License-Identifier: Apache-2.0
// Prints the digests of masks, computed on the CPU.
#include "host_backend.hpp"
#include "masks.hpp"

int main() { digest_test::print_masks(digest_test::host_backend{}); }
