// SPDX-License-Identifier: Apache-2.0
// Three small cases of different extents with label maps, and batches of two samples each, for the tests of feeds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "suture/feed/feed.hpp"
#include "suture/suture.hpp"

namespace support {

struct feed_cohort {
  static constexpr std::size_t cases = 3;
  std::vector<suture::grid> grids;
  std::vector<std::vector<std::int16_t>> voxels;
  std::vector<std::vector<std::uint8_t>> labels;

  suture::view<const std::int16_t> scan(std::size_t i) const { return suture::contiguous(voxels[i].data(), grids[i]); }
  suture::view<const std::uint8_t> map(std::size_t i) const { return suture::contiguous(labels[i].data(), grids[i]); }

  feed_cohort()
      : grids{{.extents = {20, 33, 30}, .spacing = {2, 1, 1}},
              {.extents = {31, 24, 29}, .spacing = {1, 1.5, 1}},
              {.extents = {18, 40, 40}, .spacing = {2.5, .8, .8}}},
        scans(make<std::int16_t>(voxels)),
        maps(make<std::uint8_t>(labels)) {}

  // Step s is made of cases 2 s and 2 s + 1, counted around.
  static std::vector<std::size_t> cases_of(std::size_t step) { return {2 * step % cases, (2 * step + 1) % cases}; }
  auto plans(std::size_t batches) const {
    return [this, batches](std::size_t step) {
      const auto chain = suture::random_affine{.rotate_deg = 20, .scale = {.8f, 1.2f}} |
                         suture::random_crop{.size = {9, 13, 17}} | suture::gaussian_noise{.sigma = .1f} |
                         suture::cast<suture::half>{};
      const std::vector<std::size_t> of = cases_of(step);
      const std::vector<suture::grid> on{grids[of[0]], grids[of[1]]};
      const std::uint64_t ids[] = {2 * step, 2 * step + 1};
      auto plan = suture::plan(chain, on, {.seed = 5, .sample_ids = ids});
      using request = suture::feed_request<decltype(plan)>;
      return step < batches ? std::optional<request>(request{of, std::move(plan)}) : std::nullopt;
    };
  }

private:
  template <class T>
  suture::memory_reader<T> make(std::vector<std::vector<T>>& memory) const {
    std::vector<typename suture::memory_reader<T>::item> items;
    std::uint32_t state = 7;
    for (std::size_t i = 0; i < cases; ++i) {
      std::vector<T> v(static_cast<std::size_t>(grids[i].voxels()));
      for (T& each : v) each = static_cast<T>((state = state * 1664525u + 1013904223u) >> 20);
      memory.push_back(std::move(v));
      items.push_back({"case " + std::to_string(i), suture::contiguous<const T>(memory.back().data(), grids[i])});
    }
    return suture::memory_reader<T>(std::move(items));
  }

public:
  suture::memory_reader<std::int16_t> scans;
  suture::memory_reader<std::uint8_t> maps;
};

// Digests of images and label maps, by batch.
struct feed_digests {
  std::vector<std::uint64_t> list;

  template <class Images, class Maps>
  void add(std::size_t step, const Images& images, const Maps& maps) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < images.size(); ++i) {
      sum = suture::combine_digest(sum, 4 * step + 2 * i, suture::digest(images[i]));
      sum = suture::combine_digest(sum, 4 * step + 2 * i + 1, suture::digest(maps[i]));
    }
    list.push_back(sum);
  }
};

// Returns the results of whole volumes.
inline feed_digests of_whole_volumes(const feed_cohort& cohort, std::size_t batches) {
  feed_digests all;
  for (std::size_t step = 0; step < batches; ++step) {
    const auto request = *cohort.plans(batches)(step);
    std::vector<suture::view<const std::int16_t>> scans;
    std::vector<suture::view<const std::uint8_t>> maps;
    for (const std::size_t index : request.cases) {
      scans.push_back(cohort.scan(index));
      maps.push_back(cohort.map(index));
    }
    const std::vector<suture::grid> grids = request.plan.output_grids();
    const auto voxels = static_cast<std::size_t>(grids[0].voxels()) * grids.size();
    std::vector<suture::half> images(voxels);
    std::vector<std::uint8_t> labels_out(voxels);
    const auto to = suture::batch_views(images.data(), grids);
    const auto labels_to = suture::batch_views(labels_out.data(), grids);
    suture::run(suture::cpu{.threads = 1}, request.plan, suture::image(scans, to), suture::labels(maps, labels_to));
    all.add(step, to, labels_to);
  }
  return all;
}

}  // namespace support
