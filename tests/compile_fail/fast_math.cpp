// expect: suture: -ffast-math / --use_fast_math changes results
// flags: -ffast-math
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>
