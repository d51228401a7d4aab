// SPDX-License-Identifier: Apache-2.0
// The loop over the batches of a feed: what the CPU and the GPU have in common.
#pragma once

#include "job.hpp"

namespace suture::examples {

inline auto plans_of(const feed_job& j) {
  return [&j](std::size_t step) {
    const std::int64_t first = static_cast<std::int64_t>(step) * j.batch_size;
    std::vector<std::uint64_t> ids;
    std::vector<std::size_t> cases;
    for (std::int64_t id = first; id < std::min(j.count, first + j.batch_size); ++id) {
      ids.push_back(static_cast<std::uint64_t>(id));
      cases.push_back(static_cast<std::size_t>(id) % j.images.size());
    }
    const auto make = [&] {
      return suture::plan(make_pipeline(j.patches), grids(j.images, cases),
                          {.seed = j.seed, .epoch = j.epoch, .sample_ids = ids, .evaluation = j.evaluation});
    };
    using request = feed_request<decltype(make())>;
    return cases.empty() ? std::nullopt : std::optional<request>(request{cases, make()});
  };
}

// step(batch) works on a batch and returns views of its images and label maps on the host.
template <class Executor, class Step>
feed_result take_steps(const Executor& on, const feed_job& j, const feed_progress& done, const Step& step) {
  feed fed(on, plans_of(j), j.feed, image_source(j.images), label_source(j.labels));
  feed_result result;
  while (const auto* batch = fed.next()) {
    const auto [images, labels] = step(*batch);
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::uint64_t id = batch->plan().sample_id(i);
      result.image_digest = combine_digest(result.image_digest, id, digest(images[i]));
      result.label_digest = combine_digest(result.label_digest, id, digest(labels[i]));
    }
    done(static_cast<std::int64_t>(images.size()));
  }
  result.statistics = fed.statistics();
  result.times = fed.times();
  return result;
}

}  // namespace suture::examples
