// SPDX-License-Identifier: Apache-2.0
// Whether there is a GPU, found out when a program runs.
#pragma once

#include <string>

namespace suture::examples {

// Why there is no GPU to use, or nothing if there is one.
std::string why_no_cuda();

// The model of the GPU in use. Throws suture::error where there is none.
std::string gpu_description();

}  // namespace suture::examples
