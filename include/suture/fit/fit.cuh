// SPDX-License-Identifier: Apache-2.0
// Fits on a CUDA device. Results remain in device memory, where operations of later launches on the same stream read
// them. A fit allocates nothing, synchronizes nothing, copies nothing back and can be captured in a CUDA graph. Up
// to 65535 groups take as many launches as one.
#pragma once

#include "histogram.cuh"
#include "moments.cuh"
#include "one_pass.hpp"
#include "otsu.cuh"
#include "percentiles.cuh"

namespace suture {

namespace detail {

template <class Fit>
inline constexpr bool is_histogram_fit = false;
template <class T>
inline constexpr bool is_histogram_fit<fit_histogram<T>> = true;

template <class Fit>
constexpr bool is_fit = !has_partial<Fit> && requires(const Fit& f) {
  typename Fit::result;
  f.pooled;
  f.check();
};

template <class T, class Fit>
std::size_t device_state_bytes(const Fit& settings, std::size_t groups) {
  if constexpr (is_histogram_fit<Fit>)
    return 0;  // it counts in the memory of the results
  else if constexpr (counted<T>::by_histogram)
    return aligned(groups * sizeof(histogram_counts<T>));
  else
    return fit_state_bytes<T>(settings, groups);
}

template <class T>
std::size_t count_groups(std::span<const view<const T>> images, bool pooled) {
  if (!images.empty()) suture::check_channels(images[0].channels, {"fit", 0});
  return images.empty() ? 0 : images.size() * (pooled ? 1 : static_cast<std::size_t>(images[0].channels));
}

}  // namespace detail

template <class Fit, class T>
requires(detail::is_fit<Fit>) std::size_t
    fit_workspace_bytes(const Fit& settings, std::span<const view<const T>> images) {
  return detail::record_bytes(images.size()) +
         detail::device_state_bytes<T>(settings, detail::count_groups(images, settings.pooled));
}

template <class T, class Fit, class Selection>
requires(detail::is_fit<Fit>) void fit_on_device(const cuda& exec, const Fit& settings,
                                                 std::span<const view<const T>> images, const Selection& selection,
                                                 std::span<typename Fit::result> results) {
  using namespace detail;
  using Map = typename Selection::map_type;
  check_parameters<T>(settings);
  const std::size_t groups = check_fit(Fit::name, images, selection, settings.pooled, results.size());
  if (groups == 0) return;
  const fit_launcher launcher =
      start_fit<true>(exec, Fit::name, images, selection, results, images[0].channels, settings.pooled,
                      device_state_bytes<T>(settings, groups), rows_per_block);
  const auto select = selection.select();
  if constexpr (is_histogram_fit<Fit>) {
    queue_histogram<T, Map>(launcher, select, results.data());
  } else if constexpr (counted<T>::by_histogram) {
    auto* const histograms = reinterpret_cast<histogram_counts<T>*>(launcher.states);
    queue_histogram<T, Map>(launcher, select, histograms);
    histogram_finish_kernel<T, Fit>
        <<<launcher.group_count(), fit_threads, 0, exec.stream>>>(histograms, settings, results.data());
    launcher.launched();
  } else {
    queue_fit<T, Map>(launcher, settings, select, results.data());
  }
}

}  // namespace suture
