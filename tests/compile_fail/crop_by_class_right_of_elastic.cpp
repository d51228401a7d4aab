// expect: suture: crop_by_class stands right of an elastic deformation
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::random_elastic{} | suture::crop_by_class{}, batch);
