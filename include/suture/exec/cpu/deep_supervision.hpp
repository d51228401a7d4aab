// SPDX-License-Identifier: Apache-2.0
// Label maps of smaller grids on the CPU: each voxel of a level is copied from the full output once that is written.
#pragma once

#include <algorithm>
#include <vector>

#include "../../evaluate/evaluator.hpp"
#include "cpu.hpp"

namespace suture::detail {

// Copies one level of `channels` channels, plane by plane. Planes of all channels are numbered together.
template <class T>
class level_copy {
public:
  level_copy(const level_tensor& level, const target_tensor& full, const std::int32_t (&extents)[3],
             std::int32_t channels)
      : level_(level), full_(full), planes_(std::int64_t{channels} * level.extents[0]) {
    for (int k = 0; k < 3; ++k) {
      const level_axis axis{static_cast<std::uint32_t>(level.extents[k]), static_cast<std::uint32_t>(extents[k])};
      for (std::uint32_t i = 0; i < axis.level; ++i)
        from_[k].push_back(static_cast<std::int64_t>(axis.picked(i)) * full.stride[k]);
    }
  }

  std::int64_t planes() const { return planes_; }
  void write(std::int64_t plane) const {
    const target_tensor& to = level_.to;
    const std::int64_t channel = plane / level_.extents[0], z = plane % level_.extents[0];
    for (std::int32_t y = 0; y < level_.extents[1]; ++y) {
      const T* const row = static_cast<const T*>(full_.data) + channel * full_.channel_stride +
                           from_[0][static_cast<std::size_t>(z)] + from_[1][static_cast<std::size_t>(y)];
      T* const out = static_cast<T*>(to.data) + channel * to.channel_stride + z * to.stride[0] + y * to.stride[1];
      // Local copies, which the compiler need not read again after each store.
      const std::int64_t* const picked = from_[2].data();
      const std::int64_t step = to.stride[2];
      const std::int32_t width = level_.extents[2];
      for (std::int32_t x = 0; x < width; ++x) out[x * step] = row[picked[x]];
    }
  }

private:
  const level_tensor& level_;
  const target_tensor& full_;
  std::int64_t planes_;
  std::vector<std::int64_t> from_[3];  // the picked voxels of an axis of the full output, in elements
};

// Writes the levels of pair B of every sample. nvcc does not discard statements of a lambda, so this is a function.
template <std::size_t B, class Evaluator>
void write_levels_of(const cpu& exec, const Evaluator& e, std::size_t samples) {
  using Binding = typename Evaluator::template binding_type<B>;
  if constexpr (Binding::has_levels) {
    std::vector<level_copy<typename Binding::output>> copies;
    std::vector<std::int64_t> end;  // of the planes of each copy, numbered together
    for (std::size_t i = 0; i < samples; ++i) {
      const auto& r = e.records[i];
      const level_list& list = r.levels[Evaluator::template levels_of<B>];
      for (std::int32_t n = 0; n < list.count; ++n) {
        copies.emplace_back(list.levels[n], r.out[B], r.sample.extents, e.template label_channels<B>(r));
        end.push_back((end.empty() ? 0 : end.back()) + copies.back().planes());
      }
    }
    parallel_for(exec.threads, end.empty() ? 0 : end.back(), [&](std::int64_t plane) {
      const auto k = static_cast<std::size_t>(std::upper_bound(end.begin(), end.end(), plane) - end.begin());
      copies[k].write(plane - end[k] + copies[k].planes());
    });
  }
}

// Writes the levels of every pair of every sample.
template <class Evaluator>
void write_levels(const cpu& exec, const Evaluator& e, std::size_t samples) {
  each_pair<Evaluator>([&]<std::size_t B>() { write_levels_of<B>(exec, e, samples); });
}

}  // namespace suture::detail
