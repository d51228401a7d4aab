// expect: suture: a pipeline needs at least one operation
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::chain<>{}, batch);
