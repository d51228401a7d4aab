// SPDX-License-Identifier: Apache-2.0
// Definition of a module, a shared library with a C ABI, for one chain on the CPU: SUTURE_ABI_CHAIN(suture::chain<...>,
// slots...). planned_chain.hpp documents its functions.
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
