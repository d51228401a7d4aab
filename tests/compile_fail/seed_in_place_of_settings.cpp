// expect: suture: plan takes settings, not a number
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

void misuse() {
  const suture::grid g{.extents = {10, 10, 10}};
  const std::vector<std::int16_t> ct(1000);
  const auto in = suture::contiguous<const std::int16_t>(ct.data(), g);
  (void)suture::plan(suture::random_flip{}, in, 42);
}
