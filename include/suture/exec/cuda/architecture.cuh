// SPDX-License-Identifier: Apache-2.0
// Kernels refuse to be compiled for devices that lack instructions they use. Headers with such kernels include this
// first, so that its sentence is the only error.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "suture: needs compute capability 8.0; compile with -arch=sm_80 or newer (CMake: CMAKE_CUDA_ARCHITECTURES=80)"
#endif
