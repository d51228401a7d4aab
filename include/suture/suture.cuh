// SPDX-License-Identifier: Apache-2.0
// Everything, CUDA included.
#pragma once

#if !defined(__CUDACC__)
#error "suture: suture.cuh is for nvcc; a C++ compiler takes suture/suture.hpp"
#endif

#include "exec/cuda.cuh"
#include "exec/resident_volume.cuh"
#include "fit/colour_moments.cuh"
#include "fit/fit.cuh"
#include "fit/macenko.cuh"
#include "fit/sharpness.cuh"
#include "mask/loops.cuh"
#include "ops/geometry/points.cuh"
#include "patch/average.cuh"
#include "patch/reassemble.cuh"
#include "patch/select_patches.cuh"
#include "suture.hpp"
