// SPDX-License-Identifier: Apache-2.0
// CUDA errors as exceptions.
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <string_view>

#include "../../base/error.hpp"

namespace suture {

// Throws an exception for a CUDA error, which names the operation and where it was called.
inline void check_cuda(cudaError_t status, std::string_view operation,
                       std::source_location at = std::source_location::current()) {
  if (status == cudaSuccess) return;
  fail({operation}, cudaGetErrorName(status), " (", cudaGetErrorString(status), ") at ", at.file_name(), ":",
       at.line());
}

}  // namespace suture
