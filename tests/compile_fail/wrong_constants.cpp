// expect: suture: g++ 12.1 and 12.2 store wrong constants when they tune for this processor; add -mtune=generic
// flags: -U__clang__ -U__GNUC__ -U__GNUC_MINOR__ -D__GNUC__=12 -D__GNUC_MINOR__=2 -D__tune_cascadelake__
// SPDX-License-Identifier: Apache-2.0
#include <suture/base/config.hpp>
