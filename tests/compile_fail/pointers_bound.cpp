// expect: suture: bind a view, as suture::contiguous(pointer, grid) makes it, or a contiguous range of views
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

void bind(const float* in, float* out) { suture::image(in, out); }
