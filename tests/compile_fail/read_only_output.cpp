// expect: suture: the output view must be writable
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

auto bound(suture::view<const float> in, suture::view<const float> out) { return suture::image(in, out); }
