// SPDX-License-Identifier: Apache-2.0
// The functions of abi/mask.hpp with suture::cuda.
#pragma once

#include "../mask/loops.cuh"
#include "executor.cuh"
#include "mask.hpp"
