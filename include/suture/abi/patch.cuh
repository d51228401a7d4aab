// SPDX-License-Identifier: Apache-2.0
// Includes that the functions of abi/patch.hpp need on a CUDA device.
#pragma once

#include "../patch/average.cuh"
#include "../patch/class_index.cuh"
#include "../patch/reassemble.cuh"
#include "../patch/select_patches.cuh"
#include "executor.cuh"
#include "patch.hpp"
