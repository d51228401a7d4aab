// expect: suture: one side of | is not an operation
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct nothing {};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::resample{} | nothing{}, batch);
