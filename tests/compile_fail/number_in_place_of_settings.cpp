// expect: suture: run: bind views with suture::image(in, out) or labels(in, out); seed, epoch and sample_ids belong
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

void mistaken(const suture::planned<suture::chain<suture::random_flip>>& plan, suture::view<const float> in,
              suture::view<float> out) {
  suture::run(suture::cpu{}, plan, suture::image(in, out), 5);
}
