// expect: suture: the output views' element type is not what the pipeline ends with; end the chain with cast<T>{}
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

suture::half half_without_cast(const suture::cpu& exec, suture::view<const float> in, suture::view<suture::half> out) {
  const auto plan = suture::plan(suture::clamp{}, std::vector{in});
  return suture::prepare(exec, plan, suture::image(in, out))(0, 0, 0, 0);
}
