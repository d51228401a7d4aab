// expect: suture: plan takes grids or views, a range of them or a single one
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

const suture::grid* const one = nullptr;
const auto plan = suture::plan(suture::window{.center = 40, .width = 400}, one);
