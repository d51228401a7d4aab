// expect: suture: the levels of a label map have the element type of its output
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

auto bound(suture::view<const std::uint8_t> in, suture::view<float> out, suture::view<std::uint8_t> level) {
  return suture::labels(in, out, suture::one_hot{.classes = 3}, suture::deep_supervision(level));
}
