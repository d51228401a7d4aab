// SPDX-License-Identifier: Apache-2.0
// A fit as a user writes it, for host and device.
#pragma once

#include "suture/fit/one_pass.hpp"

namespace one_pass_test {

// [fit]
// The share of the selected voxels above `level`, in the units of the image; 0 where nothing is selected.
struct fit_share_above {
  float level = 0;
  bool pooled = false;

  static constexpr std::string_view name = "fit_share_above";
  void check() const { suture::require(std::isfinite(level), {name}, "level ", level, " must be finite"); }

  struct partial {
    std::uint64_t above = 0;
    template <class T>
    SUTURE_FN void add(const fit_share_above& settings, T value) {
      above += static_cast<double>(value) > static_cast<double>(settings.level) ? 1u : 0u;
    }
    SUTURE_FN void merge(const partial& other) { above += other.above; }
  };

  using result = double;
  SUTURE_FN double finish(const partial& all, const suture::fit_tally& tally) const {
    return tally.count == 0 ? 0 : static_cast<double>(all.above) / static_cast<double>(tally.count);
  }
};
// [/fit]

}  // namespace one_pass_test
