// SPDX-License-Identifier: Apache-2.0
// Settings for planning a batch besides its grids: seed, epoch, the ids of its samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../base/error.hpp"

namespace suture {

struct settings {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  // One persistent id per sample (a dataset index, never the batch position). Required when anything is random.
  std::span<const std::uint64_t> sample_ids = {};
  // Runs the same pipeline without chance: random operations are off, and random_crop takes the center.
  bool evaluation = false;
  // Number of this image, if several with plans of their own share one geometry (CT and PET): geometry draws are the
  // same for all; value operations and filters, noise among them, draw anew for each.
  std::uint32_t image = 0;
  // Allows samples with the same id, and so the same draws. Otherwise two of one id are an error: a case that is in a
  // batch twice would be augmented twice alike.
  bool same_ids = false;
};

namespace detail {

inline void check_ids(const settings& s, std::size_t samples, bool has_random) {
  const site where{"plan"};
  const std::span<const std::uint64_t> ids = s.sample_ids;
  const bool draws = has_random && !s.evaluation;
  require(ids.size() == samples || (ids.empty() && !draws), where, ids.size(), " sample ids for ", samples, " samples",
          draws ? "; random operations need one persistent id per sample" : "");
  if (!draws || s.same_ids) return;
  std::vector<std::uint64_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return;
  const auto first = std::find(ids.begin(), ids.end(), *twice), second = std::find(first + 1, ids.end(), *twice);
  fail(where, "samples ", first - ids.begin(), " and ", second - ids.begin(), " have the same id ", *twice,
       ", so they would get the same draws; give each an id of its own, or set same_ids");
}

}  // namespace detail

}  // namespace suture
