// expect: suture: needs C++20; compile this file with -std=c++20
// flags: -std=c++17
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>
