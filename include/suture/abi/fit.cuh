// SPDX-License-Identifier: Apache-2.0
// The functions of abi/fit.hpp with suture::cuda.
#pragma once

#include "../fit/color_moments.cuh"
#include "../fit/fit.cuh"
#include "../fit/macenko.cuh"
#include "../fit/sharpness.cuh"
#include "executor.cuh"
#include "fit.hpp"
