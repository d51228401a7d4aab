// expect: suture: plan takes a range of grids or views, one per sample; a single one as std::span(&x, 1)
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

const auto plan = suture::plan(suture::window{.center = 40, .width = 400}, suture::view<const float>{});
