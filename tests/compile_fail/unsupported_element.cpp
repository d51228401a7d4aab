// expect: suture: unsupported element type; use int8, uint8, int16, uint16, int32, float, half or bfloat16
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

auto bound(suture::view<const double> in, suture::view<float> out) { return suture::image(in, out); }
