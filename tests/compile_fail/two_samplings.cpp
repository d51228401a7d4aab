// expect: suture: sampling stands at most once in a pipeline
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::sampling<suture::nearest>{} | suture::resample{} | suture::sampling<>{}, batch);
