// SPDX-License-Identifier: Apache-2.0
// Includes that the functions of abi/fit.hpp need on a CUDA device.
#pragma once

#include "../fit/color_moments.cuh"
#include "../fit/fit.cuh"
#include "../fit/macenko.cuh"
#include "../fit/sharpness.cuh"
#include "executor.cuh"
#include "fit.hpp"
