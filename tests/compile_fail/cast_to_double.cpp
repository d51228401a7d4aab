// expect: suture: cast<T> needs a storage type
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

const suture::cast<double> to_double;
