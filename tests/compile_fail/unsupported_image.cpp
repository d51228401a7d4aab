// expect: suture: unsupported element type
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

void misuse() {
  const suture::grid g{.extents = {10, 10, 10}};
  const std::vector<std::int16_t> ct(1000);
  const auto in = suture::contiguous<const std::int16_t>(ct.data(), g);
  std::vector<double> values(1000);
  std::vector<float> out(1000);
  const auto p = suture::plan(suture::flip{}, in);
  suture::run(suture::cpu{}, p,
              suture::image(suture::contiguous<const double>(values.data(), g), suture::contiguous(out.data(), g)));
}
