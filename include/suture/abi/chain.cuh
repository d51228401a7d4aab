// SPDX-License-Identifier: Apache-2.0
// Definition of a module, a shared library with a C ABI, for one chain on a GPU: SUTURE_ABI_CHAIN(suture::chain<...>,
// slots...). planned_chain.hpp documents its functions.
#pragma once

#include "../exec/cuda/architecture.cuh"
#include "../exec/cuda/run.cuh"
#include "planned_chain.hpp"

namespace suture::abi {

template <>
inline cuda executor_of<cuda>(const request& r) {
  return {static_cast<cudaStream_t>(r.stream),
          {static_cast<std::byte*>(r.workspace), static_cast<std::size_t>(r.workspace_bytes)}};
}

}  // namespace suture::abi

#define SUTURE_ABI_CHAIN(...) SUTURE_ABI_PLANNED_CHAIN(suture::cuda, __VA_ARGS__)
