// expect: suture: sampling stands in a pipeline without geometry, where nothing is sampled
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::window{.center = 40, .width = 400} | suture::sampling<>{}, batch);
