// SPDX-License-Identifier: Apache-2.0
// Prints the digests of fits of colour and of what applies them, computed on the device.
#include <suture/suture.cuh>

#include "colour_fits.hpp"
#include "device_backend.cuh"

int main() { digest_test::colour_fits(digest_test::device_backend{}).print(); }
