// expect: suture: levels are bound with deep_supervision
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

auto bound(suture::view<const std::uint8_t> in, suture::view<float> out, suture::view<float> level) {
  return suture::labels(in, out, suture::one_hot{.classes = 3}, level);
}
