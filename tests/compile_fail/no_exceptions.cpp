// expect: suture: errors are exceptions; compile this file without -fno-exceptions
// flags: -fno-exceptions
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>
