// expect: suture: suture.cuh is for nvcc; a C++ compiler takes suture/suture.hpp
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.cuh>
