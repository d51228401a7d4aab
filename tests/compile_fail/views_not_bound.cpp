// expect: suture: run: bind views with suture::image(in, out) or labels(in, out)
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

void run_with_bare_views(suture::view<const float> in, suture::view<float> out) {
  suture::run(suture::cpu{}, suture::plan(suture::clamp{}, std::vector{in}), in, out);
}
