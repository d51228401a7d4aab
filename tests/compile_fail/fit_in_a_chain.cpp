// expect: Fits are no operations: suture::fit runs them ahead
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::fit_macenko{} | suture::random_flip{}, batch);
