// expect: suture: a label conversion takes an int32 label and gives an int32 or float
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

auto bound(suture::view<const std::uint8_t> in, suture::view<std::uint8_t> out) {
  return suture::labels(in, out, suture::window{.center = 40, .width = 400});
}
