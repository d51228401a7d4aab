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
    return fit_state_bytes(how, groups);
}

template <class T>
std::size_t fit_groups(std::span<const view<const T>> images, bool pooled) {
  if (!images.empty()) suture::check_channels(images[0].channels, {"fit", 0});
  return images.empty() ? 0 : images.size() * (pooled ? 1 : static_cast<std::size_t>(images[0].channels));
}

inline std::size_t record_bytes(std::size_t samples) { return aligned(samples * sizeof(fit_record)); }

// The samples of a fit as its kernels see them, and the blocks that the rows of the largest of them make.
struct fit_batch {
  std::vector<fit_record> records;
  std::int64_t blocks = 1;
};
template <class T, class Selection>
fit_batch fit_records(std::span<const view<const T>> images, const Selection& selection, bool pooled) {
  fit_batch batch;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& image = images[i];
    fit_record r = record_of(image);
    if constexpr (Selection::has_map) {
      const auto map = selection.map(i);
      r.map = map.data;
      for (int k = 0; k < 3; ++k) r.map_stride[k] = map.stride[k];
    }
    r.rows_per_block = std::max<std::int32_t>(1, voxels_per_block / r.extents[2]);
    const std::int64_t rows =
        image.grid.extents[0] * image.grid.extents[1] * (pooled ? image.channels : std::int64_t{1});
    batch.blocks = std::max(batch.blocks, (rows + r.rows_per_block - 1) / r.rows_per_block);
    batch.records.push_back(r);
  }
  return batch;
}

template <class T, class Fit, class Selection>
void fit_on_device(const cuda& exec, const Fit& how, std::span<const view<const T>> images, const Selection& selection,
                   std::span<typename Fit::result> results) {
  using Map = typename Selection::map_type;
  const std::size_t groups = check_fit(Fit::name, images, selection, how.pooled, results.size());
  if (groups == 0) return;
  require(results.data() != nullptr, {Fit::name}, "null pointer for the results");
  const std::size_t before = record_bytes(images.size());
  check_device_workspace(exec, before + device_state_bytes<T>(how, groups), {Fit::name}, "workspace: ");
  each_fit_pointer(memory_check(exec), Fit::name, images, selection, results);

  const auto [list, blocks] = fit_records(images, selection, how.pooled);
  require(blocks <= 2147483647, {Fit::name}, blocks, " blocks exceed the grid of a kernel");
  auto* const records = reinterpret_cast<fit_record*>(exec.workspace.data());
  upload_list(exec, Fit::name, list, records);

  std::byte* const states = exec.workspace.data() + before;
  const auto select = selection.select();
  const auto channels = static_cast<std::int32_t>(images[0].channels);
  const fit_launcher fit{exec, Fit::name, {records, channels, how.pooled, 0}, blocks, groups};
  if constexpr (is_histogram_fit<Fit>) {
    queue_histogram<T, Map>(fit, select, results.data());
  } else if constexpr (counted<T>::by_histogram) {
    auto* const histograms = reinterpret_cast<histogram_counts<T>*>(states);
    queue_histogram<T, Map>(fit, select, histograms);
    histogram_finish_kernel<T, Fit>
        <<<fit.group_count(), fit_threads, 0, exec.stream>>>(histograms, how, results.data());
    fit.launched();
  } else {
    queue_fit<T, Map>(fit, how, select, states, results.data());
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
    how.check();
    if constexpr (std::is_same_v<Fit, fit_otsu>) how.template check_type<T>();
    detail::fit_on_device<T>(exec, how, std::span<const view<const T>>(views), selection, results);
  }
}

}  // namespace suture
