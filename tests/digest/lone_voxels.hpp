// SPDX-License-Identifier: Apache-2.0
// The walk of the CPU executor beside an evaluator that is asked for one voxel after the other, on the samples whose digests
// are taken.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "host.hpp"
#include "support/aligned_memory.hpp"

namespace digest_test {

template <class T>
std::uint64_t bits_of(T v) {
  std::uint64_t b = 0;
  std::memcpy(&b, &v, sizeof v);
  return b;
}

// A channel of what an evaluator gives.
template <class T>
T channel(T v, std::int32_t) {
  return v;
}
template <class T>
T channel(const pixel<T>& v, std::int32_t c) {
  return v.c[c];
}

// A lone voxel of the evaluator and the same voxel of a run.
template <class Cases, class Pipeline>
void expect_walk_equals_lone_voxels(const Cases& data, const char* name, const Pipeline& pipeline) {
  const std::size_t samples = data.grids.size();
  std::vector<view<const typename Cases::element>> in;
  std::vector<view<const std::uint8_t>> seg;
  for (std::size_t i = 0; i < samples; ++i) {
    in.push_back(Cases::source(data.images[i].data(), data.grids[i]));
    seg.push_back(contiguous(data.labels[i].data(), data.grids[i]));
  }
  const auto p = plan(pipeline, in, {.seed = 5, .epoch = 1, .sample_ids = data.ids});
  using Out = typename std::remove_cvref_t<decltype(p)>::pipeline_type::result_type;
  std::vector<std::vector<Out>> out(samples);
  std::vector<std::vector<std::uint8_t>> seg_out(samples);
  std::vector<view<Out>> out_views;
  std::vector<view<std::uint8_t>> seg_views;
  for (std::size_t i = 0; i < samples; ++i) {
    const grid& g = p.output_grid(i);
    out[i].resize(static_cast<std::size_t>(Cases::channels * g.voxels()));
    seg_out[i].resize(static_cast<std::size_t>(g.voxels()));
    out_views.push_back(contiguous(out[i].data(), g, Cases::channels));
    seg_views.push_back(contiguous(seg_out[i].data(), g));
  }
  const auto images = image(in, out_views);
  const auto masks = labels(seg, seg_views);
  run(cpu{}, p, images, masks);
  const support::aligned_memory workspace(workspace_bytes(p, images, masks));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, images, masks);
  std::int64_t wrong = 0, compared = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(samples); ++i) {
    const auto index = static_cast<std::size_t>(i);
    const extent3 n = p.output_grid(index).extents;
    std::size_t v = 0;
    for (std::int32_t c = 0; c < Cases::channels; ++c)
      for (std::int32_t z = 0; z < n[0]; ++z)
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x, ++v) {
            wrong += bits_of(channel(evaluate(i, z, y, x, c), c)) != bits_of(out[index][v]);
            if (c == 0) wrong += evaluate.template get<1>(i, z, y, x) != seg_out[index][v];
            ++compared;
          }
  }
  EXPECT_EQ(wrong, 0) << name << ": of " << compared << " voxels";
  EXPECT_GT(compared, 1000);
}

}  // namespace digest_test
