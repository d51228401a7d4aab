// expect: suture: at most 16 random operations of one kind in a pipeline, and kinds below 4096
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

constexpr auto four(const auto& op) { return op | op | op | op; }

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(four(four(suture::random_brightness{})) | suture::random_brightness{}, batch);
