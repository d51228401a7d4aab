// expect: suture: inverse_of: expected a plan with a name, got a temporary one
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto back = suture::inverse_of(suture::plan(suture::flip{.axes = {true, false, false}}, batch));
