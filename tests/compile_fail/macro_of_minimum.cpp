// expect: suture: min or max is a macro
// SPDX-License-Identifier: Apache-2.0
#define min(a, b) ((a) < (b) ? (a) : (b))
#include <suture/base/config.hpp>
