// SPDX-License-Identifier: Apache-2.0
// One batch, embedded twice: with the augmentation fused into the embedding, and by way of stored patches.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/gpu.hpp"
#include "common/volume.hpp"
#include "ct_patches/recipe.hpp"
#include "embedding.hpp"

namespace suture::examples {

// Sample i has the persistent id i and comes from scan i modulo their number.
struct job {
  std::vector<volume<std::int16_t>> scans;  // Hounsfield units
  std::vector<float> weights;
  embedding layer;
  std::int32_t samples = 4;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  int repetitions = 3;  // the shortest counts

  std::size_t feature_count() const {
    return static_cast<std::size_t>(samples) * static_cast<std::size_t>(layer.tokens()) *
           static_cast<std::size_t>(layer.features);
  }
};

struct embedded {
  std::vector<float> fused, stored;  // features (sample, token, feature)
  std::vector<half> patches;         // of the stored way
  double fused_seconds = 0, stored_seconds = 0;
  std::size_t workspace_bytes = 0;
  std::string device;
};

embedded embed_on_cpu(const job& j);
embedded embed_on_cuda(const job& j);

// `scans` are views of where the voxels are: in memory of the host or of the device.
inline auto plan_job(const job& j, const std::vector<view<const std::int16_t>>& scans) {
  std::vector<std::uint64_t> ids;
  for (std::int32_t i = 0; i < j.samples; ++i) ids.push_back(static_cast<std::uint64_t>(i));
  return plan(make_pipeline({.patch = vec_cast<std::int64_t>(j.layer.patch)}), scans,
              {.seed = j.seed, .epoch = j.epoch, .sample_ids = ids});
}

// Seconds of the shortest of several runs of f.
template <class F>
double seconds_of(int repetitions, const F& f) {
  using clock = std::chrono::steady_clock;
  double shortest = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = clock::now();
    f();
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    shortest = i == 0 ? seconds : std::min(shortest, seconds);
  }
  return shortest;
}

}  // namespace suture::examples
