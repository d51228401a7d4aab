// expect: suture: bind at least one image or label map
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

void run_without_views(const std::vector<suture::grid>& batch) {
  suture::run(suture::cpu{}, suture::plan(suture::clamp{}, batch));
}
