// expect: suture: run: expected a plan, got something else
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

void mistaken(suture::view<const float> in, suture::view<float> out) {
  suture::run(suture::cpu{}, suture::random_flip{}, suture::image(in, out));
}
