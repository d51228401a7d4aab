// SPDX-License-Identifier: Apache-2.0
// Digests of one pipeline on the device.
#pragma once

#include <suture/suture.cuh>

#include "color_recipes.hpp"
#include "recipes.hpp"
#include "support/device_array.cuh"

namespace digest_test {

using support::device_array;

template <class Cases, class Pipeline>
line device_digest(const Cases& data, const char* name, const Pipeline& pipeline) {
  using In = typename Cases::element;
  std::vector<device_array<In>> in;
  std::vector<device_array<std::uint8_t>> labels_in;
  std::vector<view<const In>> images;
  std::vector<view<const std::uint8_t>> label_maps;
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    in.emplace_back(data.images[i]);
    labels_in.emplace_back(data.labels[i]);
    images.push_back(lying(Cases::source(in[i].data(), data.grids[i]), data.axes));
    label_maps.push_back(lying(contiguous<const std::uint8_t>(labels_in[i].data(), data.grids[i]), data.axes));
  }
  const auto p = plan(pipeline, images, {.seed = 20261120, .epoch = 3, .sample_ids = data.ids, .image = Cases::which});
  using Out = typename std::remove_cvref_t<decltype(p)>::pipeline_type::result_type;
  std::vector<device_array<Out>> out;
  std::vector<device_array<std::uint8_t>> labels_out;
  std::vector<view<Out>> out_views;
  std::vector<view<std::uint8_t>> label_views;
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    const grid& g = p.output_grid(i);
    out.emplace_back(static_cast<std::size_t>(Cases::channels * g.voxels()));
    labels_out.emplace_back(static_cast<std::size_t>(g.voxels()));
    out_views.push_back(lying(contiguous(out[i].data(), g, Cases::channels), data.axes));
    label_views.push_back(lying(contiguous(labels_out[i].data(), g), data.axes));
  }
  cuda_workspace workspace(workspace_bytes(p, image(images, out_views), labels(label_maps, label_views)));
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  run(suture::cuda{stream, workspace}, p, image(images, out_views), labels(label_maps, label_views));
  check_cuda(cudaStreamSynchronize(stream), "run");
  cudaStreamDestroy(stream);
  line result{name};
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    const auto host = out[i].values();
    const auto host_labels = labels_out[i].values();
    const grid& g = p.output_grid(i);
    result.images = combine_digest(result.images, data.ids[i],
                                   digest(lying(contiguous(host.data(), g, Cases::channels), data.axes)));
    result.labels =
        combine_digest(result.labels, data.ids[i], digest(lying(contiguous(host_labels.data(), g), data.axes)));
  }
  return result;
}

}  // namespace digest_test
