// SPDX-License-Identifier: Apache-2.0
// A case as nnU-Net trains on it: normalized, then resampled.
#pragma once

#include <optional>

#include "common/volume.hpp"
#include "suture/ops/value/ct_normalize.hpp"

namespace suture::examples {

struct prepared {
  volume<float> image;
  volume<std::int8_t> labels;
  std::optional<ct_normalize> normalize{};  // by which a CT was normalized
};

// `by_cohort`: CT, normalized by the statistics of its foreground (here the cohort is the case); else by mean and
// deviation of the whole image. `spacing` in mm along (z, y, x); 0 keeps that of the axis.
// Throws suture::error: no foreground to take statistics of, labels above 127, extents beyond what can be sampled.
prepared prepare(const image_volume& image, const label_volume& labels, bool by_cohort, const point3& spacing,
                 int threads);

}  // namespace suture::examples
