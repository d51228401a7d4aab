// SPDX-License-Identifier: Apache-2.0
// This header lets the functions of abi/mask.hpp run on a CUDA device.
#pragma once

#include "../mask/loops.cuh"
#include "executor.cuh"
#include "mask.hpp"
