// SPDX-License-Identifier: Apache-2.0
// Digests of one pipeline on the CPU, over any split of the batch and number of threads.
#pragma once

#include <numeric>

#include "color_recipes.hpp"
#include "recipes.hpp"

namespace digest_test {

// Runs samples [first, last) of `order` as one batch and adds their digests to `result`.
template <class Cases, class Pipeline>
void add_batch(const Cases& data, const Pipeline& pipeline, const std::vector<std::size_t>& order, int threads,
               line& result) {
  std::vector<view<const typename Cases::element>> images;
  std::vector<view<const std::uint8_t>> labels_in;
  std::vector<std::uint64_t> ids;
  for (std::size_t i : order) {
    images.push_back(lying(Cases::source(data.images[i].data(), data.grids[i]), data.axes));
    labels_in.push_back(lying(contiguous(data.labels[i].data(), data.grids[i]), data.axes));
    ids.push_back(data.ids[i]);
  }
  const auto p = plan(pipeline, images, {.seed = 20261120, .epoch = 3, .sample_ids = ids, .image = Cases::which});
  using Out = typename std::remove_cvref_t<decltype(p)>::pipeline_type::result_type;
  std::vector<std::vector<Out>> out(order.size());
  std::vector<std::vector<std::uint8_t>> labels_out(order.size());
  std::vector<view<Out>> out_views;
  std::vector<view<std::uint8_t>> label_views;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const grid& g = p.output_grid(i);
    out[i].resize(static_cast<std::size_t>(Cases::channels * g.voxels()));
    labels_out[i].resize(static_cast<std::size_t>(g.voxels()));
    out_views.push_back(lying(contiguous(out[i].data(), g, Cases::channels), data.axes));
    label_views.push_back(lying(contiguous(labels_out[i].data(), g), data.axes));
  }
  run(cpu{.threads = threads}, p, image(images, out_views), labels(labels_in, label_views));
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.images = combine_digest(result.images, ids[i], digest(out_views[i]));
    result.labels = combine_digest(result.labels, ids[i], digest(label_views[i]));
  }
}

template <class Cases, class Pipeline>
line host_digest(const Cases& data, const char* name, const Pipeline& pipeline, int threads = 0) {
  line result{name};
  std::vector<std::size_t> all(data.grids.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  add_batch(data, pipeline, all, threads, result);
  return result;
}

}  // namespace digest_test
