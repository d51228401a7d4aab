// SPDX-License-Identifier: Apache-2.0
// A module of a chain that runs on the processor: SUTURE_ABI_CHAIN(suture::chain<...>, slots...). What its functions
// take stands in planned_chain.hpp.
#pragma once

#include "../exec/cpu/run.hpp"
#include "planned_chain.hpp"

namespace suture::abi {

template <>
inline cpu executor_of<cpu>(const request& r) {
  return {.threads = r.threads};
}

}  // namespace suture::abi

#define SUTURE_ABI_CHAIN(...) SUTURE_ABI_PLANNED_CHAIN(suture::cpu, __VA_ARGS__)
