// expect: suture: inverse_of takes the plan that went out, not one that comes back
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto out = suture::plan(suture::elastic{}, batch);
const auto back = suture::plan(suture::inverse_of(out), batch);
const auto again = suture::inverse_of(back);
