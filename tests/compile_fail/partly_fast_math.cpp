// expect: suture: -ffinite-math-only, -fassociative-math, -freciprocal-math and -fno-signed-zeros change results
// flags: -ffinite-math-only
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>
