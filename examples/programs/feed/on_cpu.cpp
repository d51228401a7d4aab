// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "steps.hpp"

namespace suture::examples {

// The step stands for a network on a device: this thread waits for it.
feed_result feed_on_cpu(const feed_job& j, const feed_progress& done) {
  feed_result result = take_steps(cpu{.threads = j.threads}, j, done, [&](const auto& batch) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(j.step_ms));
    return std::pair(batch.template outputs<0>(), batch.template outputs<1>());
  });
  result.device = cpu_description(j.threads);
  return result;
}

#if !defined(SUTURE_EXAMPLE_CUDA)
feed_result feed_on_cuda(const feed_job&, const feed_progress&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
