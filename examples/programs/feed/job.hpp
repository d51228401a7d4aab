// SPDX-License-Identifier: Apache-2.0
// A stand-in for a training: batches come from a feed, and every step takes as long as it is told to. On the CPU or a
// GPU.
#pragma once

#include <functional>

#include "common/gpu.hpp"
#include "ct_patches/recipe.hpp"
#include "suture/feed/feed.hpp"

namespace suture::examples {

// Patch i has the persistent id i and comes from case i, counted around.
struct feed_job {
  any_reader<std::int16_t> images;
  any_reader<std::uint8_t> labels;
  recipe patches;
  feed_settings feed;
  double step_ms = 100;
  std::int64_t count = 24, batch_size = 2;
  int threads = 0;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  bool evaluation = false;
};

struct feed_result {
  std::string device;
  std::uint64_t image_digest = 0, label_digest = 0;
  feed_statistics statistics;
  std::vector<feed_times> times;
};

// `done` is called with the number of patches of each batch.
using feed_progress = std::function<void(std::int64_t)>;
feed_result feed_on_cpu(const feed_job& j, const feed_progress& done);
feed_result feed_on_cuda(const feed_job& j, const feed_progress& done);

}  // namespace suture::examples
