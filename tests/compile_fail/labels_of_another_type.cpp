// expect: suture: a label map keeps its element type
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

auto bound(suture::view<const std::uint8_t> in, suture::view<std::int16_t> out) { return suture::labels(in, out); }
