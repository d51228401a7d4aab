// expect: suture: the output views' element type is not what the pipeline ends with; end the chain with cast<T>{}
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

void half_without_cast(suture::view<const float> in, suture::view<suture::half> out) {
  suture::run(suture::cpu{}, suture::plan(suture::clamp{}, std::vector{in}), suture::image(in, out));
}
