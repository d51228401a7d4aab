// SPDX-License-Identifier: Apache-2.0
// The host side of a fit on a CUDA device: checks, the records of the samples in the workspace, launches.
#pragma once

#include "reduction.cuh"

namespace suture {

namespace detail {

// The samples of a fit in the form that its kernels read, and the number of blocks for the rows of the largest.
struct fit_batch {
  std::vector<fit_record> records;
  std::int64_t blocks = 1;
};

inline constexpr std::int32_t voxels_per_block = 65536;
inline std::int32_t rows_per_block(std::int32_t width) {
  return std::max<std::int32_t>(1, voxels_per_block / std::max(1, width));
}

// Makes the records of the samples. A group is `channels` channels of a sample, and a block processes
// rows_in_block(width) rows of it. AnyOrder states that the fit uses no positions; rows then follow the axis with the
// smallest stride.
template <bool AnyOrder = false, class T, class Selection, class Rows>
fit_batch fit_records(std::span<const view<const T>> images, const Selection& selection, std::int64_t channels,
                      const Rows& rows_in_block) {
  fit_batch batch;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const extent3 &stride = images[i].stride, &n = images[i].grid.extents;
    fit_record r{};
    r.data = images[i].data;
    r.channel_stride = images[i].channel_stride;
    for (int k = 0; k < 3; ++k) {
      r.stride[k] = stride[k];
      r.extents[k] = static_cast<std::int32_t>(n[k]);
    }
    if constexpr (Selection::has_map) {
      const auto map = selection.map(i);
      r.map = map.data;
      for (int k = 0; k < 3; ++k) r.map_stride[k] = map.stride[k];
    }
    if constexpr (AnyOrder) {
      const std::uint8_t loops = loops_in_memory({stride[0], stride[1], stride[2]}, {n[0], n[1], n[2]});
      reorder(r.stride, loops);
      reorder(r.map_stride, loops);
      reorder(r.extents, loops);
    }
    r.rows_per_block = rows_in_block(r.extents[2]);
    const std::int64_t rows = r.rows() * channels;
    batch.blocks = std::max(batch.blocks, (rows + r.rows_per_block - 1) / r.rows_per_block);
    batch.records.push_back(r);
  }
  return batch;
}

inline std::size_t record_bytes(std::size_t samples) { return aligned(samples * sizeof(fit_record)); }

// A fit before its launch. The workspace holds the records of the samples, followed by the states.
struct fit_launcher {
  const cuda& exec;
  std::string_view name;
  fit_grouping grouping;
  std::int64_t blocks;
  std::size_t groups;
  std::byte* states;

  void launched() const { check_cuda(cudaGetLastError(), name, exec.at); }
  void clear(void* memory, std::size_t bytes) const {
    check_cuda(cudaMemsetAsync(memory, 0, bytes, exec.stream), name, exec.at);
  }
  unsigned group_count() const { return static_cast<unsigned>(groups); }

  // Calls launch(grid, grouping) for all groups.
  template <class Launch>
  void over_groups(const Launch& launch) const {
    for (std::size_t first = 0; first < groups; first += 65535) {
      fit_grouping part = grouping;
      part.first_group = static_cast<std::int64_t>(first);
      launch(dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min<std::size_t>(65535, groups - first))),
             part);
      launched();
    }
  }

  // Sums the voxels of every group and returns the sums, one per group.
  template <class T, class Map, class Part, class Selector, class... Rules>
  auto* sum(const Selector& select, const Rules&... rules) const {
    using Sums = typename Part::sums_type;
    auto* const sums = reinterpret_cast<Sums*>(states);
    clear(sums, groups * sizeof(Sums));
    over_groups([&](dim3 grid, const fit_grouping& part) {
      sum_kernel<T, Map, Part><<<grid, fit_threads, 0, exec.stream>>>(part, select, sums, rules...);
    });
    return sums;
  }
  // Computes the results of such sums, one thread per group.
  template <class Sums, class Fit>
  void finish(Sums* sums, const Fit& settings, typename Fit::result* results) const {
    finish_kernel<<<(group_count() + 31) / 32, 32, 0, exec.stream>>>(sums, settings, results,
                                                                     static_cast<std::int64_t>(groups));
    launched();
  }
};

// Checks the arguments of a fit on a device, uploads the records of the samples, and returns the object that launches
// the fit. One group is a channel of a sample, or where `pooled` all its `channels`.
template <bool AnyOrder = false, class T, class Selection, class Result, class Rows>
fit_launcher start_fit(const cuda& exec, std::string_view name, std::span<const view<const T>> images,
                       const Selection& selection, std::span<Result> results, std::int64_t channels, bool pooled,
                       std::size_t state_bytes, const Rows& rows_in_block) {
  require(results.data() != nullptr, {name}, "null pointer for the results");
  const std::size_t before = record_bytes(images.size());
  check_device_workspace(exec, before + state_bytes, {name}, "workspace: ");
  each_fit_pointer(memory_check(exec), name, images, selection, results);
  const auto [list, blocks] = fit_records<AnyOrder>(images, selection, pooled ? channels : 1, rows_in_block);
  require(blocks <= 2147483647, {name}, blocks, " blocks exceed the grid of a kernel");
  auto* const records = reinterpret_cast<fit_record*>(exec.workspace.data());
  upload_list(exec, name, list, records);
  const fit_grouping grouping{records, static_cast<std::int32_t>(channels), pooled, 0};
  return {exec, name, grouping, blocks, results.size(), exec.workspace.data() + before};
}

template <class Fit>
concept fit_with_result = requires {
  typename Fit::result;
  Fit::name;
};

}  // namespace detail

// Returns the bytes of device memory that a fit of these images needs. The memory may be reused as soon as the stream
// has passed the fit.
template <detail::fit_with_result Fit, class Images>
std::size_t workspace_bytes(const Fit& settings, const Images& images) {
  const auto views = detail::constant_views(images);
  return fit_workspace_bytes(settings, std::span(views));
}

// Queues a fit on a stream; fit_on_device is found by the type of the fit. Images, maps and results lie in device
// memory; as for the CPU there is one result per sample and channel, channel fastest, or one per sample where pooled.
// Everything is checked first; when it throws for bad input, nothing has been launched.
template <class Fit, class Images, class Selection>
void fit(const cuda& exec, const Fit& settings, const Images& images, const Selection& selection,
         std::span<typename Fit::result> results) {
  if constexpr (detail::require_selection<Selection>()) {
    const auto views = detail::constant_views(images);
    fit_on_device(exec, settings, std::span(views), selection, results);
  }
}

}  // namespace suture
