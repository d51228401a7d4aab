// SPDX-License-Identifier: Apache-2.0
// Fits on a CUDA device: the results stay there, for operations of later launches on the same stream to read. A fit
// allocates nothing, synchronizes nothing, copies nothing back and can be captured in a CUDA graph; its launches are
// those of one sample, whatever the batch.
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
std::size_t device_state_bytes(const Fit& how, std::size_t groups) {
  if constexpr (is_histogram_fit<Fit>)
    return 0;  // it counts where the results are
  else if constexpr (counted<T>::by_histogram)
    return aligned(groups * sizeof(histogram_counts<T>));
  else
    return fit_state_bytes<T>(how, groups);
}

template <class T>
std::size_t fit_groups(std::span<const view<const T>> images, bool pooled) {
  if (!images.empty()) suture::check_channels(images[0].channels, {"fit", 0});
  return images.empty() ? 0 : images.size() * (pooled ? 1 : static_cast<std::size_t>(images[0].channels));
}

template <class T, class Fit, class Selection>
void fit_on_device(const cuda& exec, const Fit& how, std::span<const view<const T>> images, const Selection& selection,
                   std::span<typename Fit::result> results) {
  using Map = typename Selection::map_type;
  const std::size_t groups = check_fit(Fit::name, images, selection, how.pooled, results.size());
  if (groups == 0) return;
  const fit_launcher fit = start_fit<true>(exec, Fit::name, images, selection, results, images[0].channels, how.pooled,
                                           device_state_bytes<T>(how, groups), rows_per_block);
  const auto select = selection.select();
  if constexpr (is_histogram_fit<Fit>) {
    queue_histogram<T, Map>(fit, select, results.data());
  } else if constexpr (counted<T>::by_histogram) {
    auto* const histograms = reinterpret_cast<histogram_counts<T>*>(fit.states);
    queue_histogram<T, Map>(fit, select, histograms);
    histogram_finish_kernel<T, Fit>
        <<<fit.group_count(), fit_threads, 0, exec.stream>>>(histograms, how, results.data());
    fit.launched();
  } else {
    queue_fit<T, Map>(fit, how, select, results.data());
  }
}

}  // namespace detail

// Device memory a fit of these images needs; it may be reused as soon as the stream has passed the fit.
template <class Fit, class Images>
requires(detail::is_fit<Fit>) std::size_t workspace_bytes(const Fit& how, const Images& images) {
  const auto views = detail::constant_views(images);
  using T = std::remove_const_t<detail::view_element_t<Images>>;
  const std::span<const view<const T>> all(views);
  return detail::record_bytes(all.size()) + detail::device_state_bytes<T>(how, detail::fit_groups(all, how.pooled));
}

// Queues a fit on a stream. Images, maps and results lie in device memory; as for the CPU there is one result per
// sample and channel, channel fastest, or one per sample where pooled. Everything is checked first; when it throws for
// bad input, nothing has been launched.
template <class Fit, class Images, class Selection>
void fit(const cuda& exec, const Fit& how, const Images& images, const Selection& selection,
         std::span<typename Fit::result> results) {
  if constexpr (detail::require_selection<Selection>()) {
    const auto views = detail::constant_views(images);
    using T = std::remove_const_t<detail::view_element_t<Images>>;
    detail::check_parameters<T>(how);
    detail::fit_on_device<T>(exec, how, std::span<const view<const T>>(views), selection, results);
  }
}

}  // namespace suture
