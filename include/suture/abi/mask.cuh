// SPDX-License-Identifier: Apache-2.0
// Includes that the functions of abi/mask.hpp need on a CUDA device.
#pragma once

#include "../mask/loops.cuh"
#include "executor.cuh"
#include "mask.hpp"
