// SPDX-License-Identifier: Apache-2.0
// Prints the digests of fits of colour and of what applies them, computed on the CPU.
#include "colour_fits.hpp"
#include "host_backend.hpp"

int main() { digest_test::colour_fits(digest_test::host_backend{}).print(); }
