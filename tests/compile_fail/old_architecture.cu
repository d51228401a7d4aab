// SPDX-License-Identifier: Apache-2.0
// expect: suture: needs compute capability 8.0; compile with -arch=sm_80 or newer
// flags: -arch=sm_75
// The default of nvcc 13.
#include <suture/suture.cuh>
