// SPDX-License-Identifier: Apache-2.0
// The library's own elementary functions: the same bits on every machine, on host and device.
#pragma once

#include "cube_root.hpp"
#include "error_function.hpp"
#include "exponential.hpp"
#include "root.hpp"
#include "trigonometric.hpp"
