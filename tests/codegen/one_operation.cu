// SPDX-License-Identifier: Apache-2.0
// The least of a pipeline: what recipes may take to compile is counted in how long this takes.
#include <suture/suture.cuh>

using namespace suture;

void one_operation(const suture::cuda& exec, std::span<const view<const std::int16_t>> in,
                   std::span<const view<suture::half>> out) {
  run(exec, plan(window{.center = 40, .width = 400} | cast<suture::half>{}, in), image(in, out));
}
