// SPDX-License-Identifier: Apache-2.0
#include <suture/base/config.hpp>
#include <suture/base/vec.hpp>

int main() {
  static_assert(__cplusplus >= 202002L);
  return suture::fma(2.0f, 3.0f, 4.0f) == 10.0f && SUTURE_VERSION_MAJOR >= 0 ? 0 : 1;
}
