// SPDX-License-Identifier: Apache-2.0
// Sources to which the operations before the geometry were applied. Interpolation reads a voxel several times, and
// would compute noise or a bias field again each time, voxel by voxel; here it is computed once for each voxel, in
// whole rows.
#pragma once

#include <memory>
#include <vector>

#include "../../evaluate/evaluator.hpp"
#include "../../plan/source_box.hpp"
#include "../common/lanes.hpp"
#include "cpu.hpp"

namespace suture::detail {

// Owns the floats that record::processed points to during a run. At its end the records, which prepare() leaves in the
// caller's workspace, point to them no longer.
class processed_sources {
public:
  processed_sources() = default;
  processed_sources(const processed_sources&) = delete;
  processed_sources& operator=(const processed_sources&) = delete;
  ~processed_sources() {
    for (source_tensor* t : filled_) *t = {};
  }

  // Computes the images of those samples whose operations before the geometry use positions, within source_box().
  template <class Evaluator, class Plan>
  void fill(const cpu& exec, typename Evaluator::record_type* records, const Plan& plan) {
    for (std::size_t i = 0; i < plan.size(); ++i) {
      auto& r = records[i];
      if (!any_on_needs_voxel(r.sample.source_functors)) continue;
      each_pair<Evaluator, false>([&]<std::size_t B>() {
        using In = typename Evaluator::template binding_type<B>::input;
        filled_.push_back(&r.processed[B]);
        r.processed[B] = process<In>(exec, r.sample, r.in[B], static_cast<std::int32_t>(i), source_box(plan, i));
      });
    }
  }

private:
  template <class In, class Pipeline>
  source_tensor process(const cpu& exec, const sample_parameters<Pipeline>& sample, const source_tensor& in,
                        std::int32_t sample_index, const voxel_box& box) {
    source_tensor made = in;
    made.stride[2] = 1;
    made.stride[1] = box.size[2];
    made.stride[0] = box.size[2] * box.size[1];
    made.channel_stride = box.voxels();
    made.side_by_side = 0;
    count_pairs(made.stride, made.extents, made.pairs);
    float* const first =
        memory_.emplace_back(new float[static_cast<std::size_t>(in.channels * box.voxels())]).get();  // not cleared
    made.data = first - (box.first[0] * made.stride[0] + box.first[1] * made.stride[1] + box.first[2]);
    parallel_for(exec.threads, in.channels * box.size[0], [&](std::int64_t plane) {
      const auto channel = static_cast<std::int32_t>(plane / box.size[0]);
      const auto z = static_cast<std::int32_t>(box.first[0] + plane % box.size[0]);
      float* to = first + plane * made.stride[0];
      for (std::int64_t row = 0; row < box.size[1]; ++row) {
        const auto y = static_cast<std::int32_t>(box.first[1] + row);
        for (std::int64_t column = 0; column < box.size[2]; column += strip_width) {
          const auto x = static_cast<std::int32_t>(box.first[2] + column);
          const int count = static_cast<int>(std::min<std::int64_t>(strip_width, box.size[2] - column));
          const voxel_index at{sample_index, channel, z, y, x};
          alignas(lane_alignment) float v[strip_width];
          load_strip(element_at<const In>(in, at), in.stride[2], count, v);
          apply_lanes(sample.source_functors, v, along_x{voxel_at(in.extents, at)}, [](const float(&)[strip_width]) {});
          to = std::copy_n(v, count, to);
        }
      }
    });
    return made;
  }

  std::vector<std::unique_ptr<float[]>> memory_;
  std::vector<source_tensor*> filled_;
};

}  // namespace suture::detail
