// SPDX-License-Identifier: Apache-2.0
// Everything for the CPU. With nvcc, include suture/suture.cuh instead.
#pragma once

#include "core/digest.hpp"
#include "exec/cpu.hpp"
#include "ops/geometry/affine.hpp"
#include "ops/geometry/crop.hpp"
#include "ops/geometry/elastic.hpp"
#include "ops/geometry/resample.hpp"
