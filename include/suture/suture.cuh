// SPDX-License-Identifier: Apache-2.0
// suture.hpp and the same for CUDA. feed/feed.cuh is included by itself.
#pragma once

#if !defined(__CUDACC__)
#error "suture: suture.cuh is for nvcc; a C++ compiler takes suture/suture.hpp"
#else
#include "base/config.hpp"
#if !defined(SUTURE_REFUSED)
#include "exec/cuda/architecture.cuh"

#include "exec/cuda/resident_volume.cuh"
#include "exec/cuda/run.cuh"
#include "fit/color_moments.cuh"
#include "fit/fit.cuh"
#include "fit/macenko.cuh"
#include "fit/sharpness.cuh"
#include "mask/loops.cuh"
#include "patch/average.cuh"
#include "patch/class_index.cuh"
#include "patch/reassemble.cuh"
#include "patch/select_patches.cuh"
#include "points/points.cuh"
#include "suture.hpp"
#endif
#endif
