// expect: suture: not an operation: give it prepare(site) or operator()(float or rgb[, voxel]) for values
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct nothing {};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::chain<nothing>{}, batch);
