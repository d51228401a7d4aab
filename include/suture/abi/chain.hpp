// SPDX-License-Identifier: Apache-2.0
// This header makes a module of a chain that runs on the CPU: SUTURE_ABI_CHAIN(suture::chain<...>, slots...).
// planned_chain.hpp documents the functions of the module.
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
