// expect: suture: cast ends a chain; nothing can follow it
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::cast<suture::half>{} | suture::gaussian_blur{}, batch);
