// SPDX-License-Identifier: Apache-2.0
// A feed takes requests and sources, and returns batches with their times and statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../image/view.hpp"
#include "reader.hpp"

namespace suture {

// Limits of how far a feed works in advance. They do not change a bit of a result.
struct feed_settings {
  int depth = 3;    // batches in memory at once: the caller's, and those in preparation
  int threads = 2;  // that read and decode
  // Limit of the memory of all batches together: boxes, outputs and workspace, and for a device the pinned copies of
  // the boxes.
  std::size_t most_bytes = std::size_t{4} << 30;
  std::size_t kept_times = 64;  // how many batches times() remembers
};

// A requested batch: the plan, and for each of its samples the case of the readers that it is cut from.
template <class Plan>
struct feed_request {
  std::vector<std::size_t> cases;
  Plan plan;
};
template <class Plan>
feed_request(std::vector<std::size_t>, Plan) -> feed_request<Plan>;

// An image or a label map of every sample, and its reader. The reader must outlive the feed.
template <box_reader Reader, bool IsLabel>
struct feed_source {
  using element = typename Reader::element;
  static constexpr bool is_label = IsLabel;
  const Reader* reader;

  template <class Plan>
  using output = std::conditional_t<IsLabel, element, typename Plan::pipeline_type::result_type>;
};
template <box_reader Reader>
feed_source<Reader, false> image_source(const Reader& reader) {
  return {&reader};
}
template <box_reader Reader>
feed_source<Reader, true> label_source(const Reader& reader) {
  return {&reader};
}

// Start and end of the work on a batch, in seconds since the feed began. For a device, copy, run and release are
// measured by its clock. On the CPU nothing is copied.
struct feed_times {
  std::size_t step = 0;
  double plan_begin = 0, plan_end = 0;
  double read_begin = 0, read_end = 0;  // from the start of the first box to the end of the last
  double copy_begin = 0, copy_end = 0;
  double run_begin = 0, run_end = 0;
  double delivered = 0, released = 0;  // the caller had the batch in between
  double waited = 0;                   // by the caller for the batch (CPU), or by its stream for the run (device)
  double reading = 0;                  // by all threads together
  std::uint64_t bytes = 0;             // of the voxels that were read, as they lie in memory
};

// Statistics of the released batches. `waited` leaves out the first batch, which is always waited for.
struct feed_statistics {
  std::size_t batches = 0;
  std::uint64_t bytes = 0;
  double reading = 0, copying = 0, running = 0, waited = 0;  // seconds; reading by all threads together
  std::size_t most_held = 0;                                 // bytes of memory, at once
  double to_first = 0, elapsed = 0;  // until the first batch was delivered, and from then until the last was released

  double waited_share() const { return elapsed > 0 ? waited / elapsed : 0; }
  double bytes_per_second() const {
    return to_first + elapsed > 0 ? static_cast<double>(bytes) / (to_first + elapsed) : 0;
  }
};

// A batch that a feed returns. The outputs of a source are views in the order of the samples, channels-first, in one
// block of memory: a dense tensor if all samples have the same extents.
template <class Plan, class... Sources>
struct feed_batch {
  std::size_t step = 0;
  std::vector<std::size_t> cases;
  std::optional<Plan> planned;
  std::tuple<std::vector<view<typename Sources::template output<Plan>>>...> made;

  const Plan& plan() const { return *planned; }
  template <std::size_t K = 0>
  const auto& outputs() const {
    return std::get<K>(made);
  }
};

}  // namespace suture
