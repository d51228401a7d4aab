// SPDX-License-Identifier: Apache-2.0
// fit_color_moments on a CUDA device. Results remain in device memory; nothing is allocated, synchronized or copied
// back.
#pragma once

#include "color_moments.hpp"
#include "launch.cuh"

namespace suture {

namespace detail {

// The sums of colors that a thread keeps in registers.
template <class Space, class T>
class color_part {
public:
  using sums_type = color_totals;

  __device__ __forceinline__ explicit color_part(const color_range& range) : range_(range) {}

  __device__ __forceinline__ void add(color_totals& to, const T* place, std::int64_t channel_stride, verdict v) {
    if (v == verdict::rejected) return;
    const rgb pixel{{storage<T>::load(place[0]), storage<T>::load(place[channel_stride]),
                     storage<T>::load(place[2 * channel_stride])}};
    if (v == verdict::undeclared) {
      ++tally_.undeclared;
    } else if (!all_finite(pixel)) {
      ++tally_.excluded;
    } else {
      ++tally_.count;
      std::int32_t color[3];
      to_fixed_color<Space>(range_, pixel, color);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) add_value<std::int32_t>(sums_[k], color[k], to.sums[k]);
    }
  }
  __device__ __forceinline__ void end(color_totals& to) const {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) to.sums[k].add(sums_[k]);
    add_tally(to.tally, tally_);
  }

private:
  const color_range& range_;
  partial_sums sums_[3];
  fit_tally tally_;
};

}  // namespace detail

template <class Space, class T>
std::size_t fit_workspace_bytes(const fit_color_moments<Space>&, std::span<const view<const T>> images) {
  return detail::record_bytes(images.size()) + detail::aligned(images.size() * sizeof(detail::color_totals));
}

template <class Space, class T, class Selection>
void fit_on_device(const cuda& exec, const fit_color_moments<Space>& settings, std::span<const view<const T>> images,
                   const Selection& selection, std::span<color_moments<Space>> results) {
  using namespace detail;
  settings.check();
  check_color_fit(settings.name, images, selection, results.size());
  if (images.empty()) return;
  // Blocks have few rows, since converting colors takes much longer than adding the sums of a block.
  const auto rows_in_block = [](std::int32_t width) { return std::max<std::int32_t>(1, 8192 / width); };
  const std::size_t state_bytes = aligned(images.size() * sizeof(color_totals));
  const fit_launcher launcher =
      start_fit(exec, settings.name, images, selection, results, 1, true, state_bytes, rows_in_block);
  const color_range range = make_color_range(settings.white, {settings.name});
  color_totals* const sums =
      launcher.sum<T, typename Selection::map_type, color_part<Space, T>>(selection.select(), range);
  launcher.finish(sums, settings, results.data());
}

}  // namespace suture
