// expect: suture: vote is for labels: sampling<linear, constant, vote>
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::resample{} | suture::sampling<suture::vote, suture::constant>{}, batch);
