// expect: suture: at most one elastic deformation per pipeline
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::random_elastic{} | suture::elastic{}, batch);
