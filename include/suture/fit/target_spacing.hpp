// SPDX-License-Identifier: Apache-2.0
// The spacing a cohort is resampled to.
#pragma once

#include "fingerprint.hpp"

namespace suture {

// Returns the median spacing of the cohort, axis by axis, along (z, y, x) in mm. The coarsest axis is treated apart if
// its spacing exceeds `anisotropy` times that of each other axis, and its median extent times `anisotropy` is below that
// of each other axis. It then gets the 10th percentile of its spacings or, if another axis is coarser than that, 1e-5
// mm more than the spacing of that axis. Percentiles are linear. Errors: no case, an anisotropy below 1. Source:
// nnU-Net determine_fullres_target_spacing.
inline point3 target_spacing(const cohort_fingerprint& cohort, double anisotropy = 3) {
  const site where{"target_spacing"};
  require(!cohort.cases().empty(), where, "a cohort without cases has no spacing");
  require(std::isfinite(anisotropy) && anisotropy >= 1, where, "anisotropy ", anisotropy, " must be at least 1");
  point3 target = cohort.median_spacing();
  const point3 shape = cohort.median_shape();
  int worst = 0;
  for (int k = 1; k < 3; ++k)
    if (target[k] > target[worst]) worst = k;
  const int a = (worst + 1) % 3, b = (worst + 2) % 3;
  const double others = std::max(target[a], target[b]);
  if (!(target[worst] > anisotropy * others && shape[worst] * anisotropy < std::min(shape[a], shape[b]))) return target;
  std::vector<double> spacings;
  for (const case_geometry& c : cohort.cases()) spacings.push_back(c.spacing[worst]);
  std::sort(spacings.begin(), spacings.end());
  const double tenth = detail::percentile_of_ranked(
      10, spacings.size(), [&](std::uint64_t rank) { return spacings[static_cast<std::size_t>(rank)]; });
  target[worst] = tenth < others ? others + 1e-5 : tenth;
  return target;
}

}  // namespace suture
