// SPDX-License-Identifier: Apache-2.0
// The resampling of a case, in one place for the CPU and the GPU. A machine says where voxels lie and runs a plan:
//   const T* upload(const std::vector<T>&)   memory of the machine with these values
//   T* result(std::vector<T>&)               memory of the machine whose values `download` puts there
//   run(plan, pairs...), download()
#pragma once

#include "resample.hpp"
#include "suture/ops/geometry/separate_axis.hpp"
#include "suture/ops/value/limit_to_range.hpp"
#include "suture/sample/majority.hpp"
#include "suture/suture.hpp"

namespace suture::examples {

// SciPy's mode "nearest" extends an image by 12 voxels of its edge before the spline filter. The border `edge` would do
// the same across the slices as well, where there is only one; so the case is extended here, along the axes that are
// interpolated, and the filter reflects at the end of the extension, as SciPy's does.
inline constexpr std::int64_t extension = 12;

inline auto make_pipeline(const ct_normalize& normalize, const crop& inside, const extent3& extents,
                          std::span<const intensity_range> ranges) {
  return normalize | inside | resize{.extents = extents} | sampling<cubic_bspline, reflect, majority>{} |
         limit_to_range{.fitted = ranges};
}

template <class T>
struct extended_parts {
  std::vector<grid> grids;
  std::vector<T> voxels;
};

// Copies of the parts with `margin` voxels of their edge on every side.
template <class T>
extended_parts<T> extended(const cpu& exec, const std::vector<view<const T>>& parts, const extent3& margin) {
  const auto plan = suture::plan(pad{.before = margin, .after = margin} | sampling<nearest, edge>{} | cast<T>{}, parts);
  extended_parts<T> made{plan.output_grids(), {}};
  made.voxels.resize(parts.size() * static_cast<std::size_t>(made.grids.front().voxels()));
  const auto to = batch_views(made.voxels.data(), made.grids);
  suture::run(exec, plan, suture::image(parts, to));
  return made;
}

// Copies slice k - 1 of a dense volume over slice k.
template <class T>
void repeat_slice(std::vector<T>& voxels, const extent3& n, int axis, std::int64_t k) {
  extent3 size = n, stride{n[1] * n[2], n[2], 1};
  size[axis] = 1;
  T* const to = voxels.data() + k * stride[axis];
  for (std::int64_t z = 0; z < size[0]; ++z)
    for (std::int64_t y = 0; y < size[1]; ++y)
      for (std::int64_t x = 0; x < size[2]; ++x) {
        T* const at = to + z * stride[0] + y * stride[1] + x;
        *at = *(at - stride[axis]);
      }
}

template <class Machine, class T>
resampled resample_with(Machine& machine, const cpu& host, const view<const T>& image,
                        const std::optional<view<const std::uint8_t>>& labels, const resampling& how) {
  const site here{"ct_preprocess"};
  resampled made;
  const grid& from = image.grid;
  const grid to = resize{.extents = how.extents}.step(from, here).output;
  made.image = {to, std::vector<float>(static_cast<std::size_t>(to.voxels()))};
  if (labels) made.labels = {to, std::vector<std::uint8_t>(static_cast<std::size_t>(to.voxels()))};
  const auto to_image = contiguous(machine.result(made.image.voxels), to);
  const auto to_labels = contiguous(labels ? machine.result(made.labels.voxels) : nullptr, to);

  // Runs a pipeline over parts of the case, given as copies whose voxels follow one another.
  const auto run = [&](const auto& pipeline, const extended_parts<T>& images,
                       const extended_parts<std::uint8_t>& label_maps, const std::vector<view<float>>& image_parts,
                       const std::vector<view<std::uint8_t>>& label_parts) {
    const auto plan = suture::plan(pipeline, images.grids);
    const auto in = batch_views(machine.upload(images.voxels), images.grids);
    const auto image_pair = suture::image(in, image_parts);
    if (labels) {
      const auto labels_in = batch_views(machine.upload(label_maps.voxels), images.grids);
      machine.run(plan, image_pair, suture::labels(labels_in, label_parts));
    } else {
      machine.run(plan, image_pair);
    }
  };

  std::vector<view<const T>> parts{image};
  std::vector<view<const std::uint8_t>> label_parts;
  if (labels) label_parts.push_back(*labels);
  std::vector<view<float>> to_image_parts{to_image};
  std::vector<view<std::uint8_t>> to_label_parts{to_labels};
  const auto copied = [&](const extent3& margin) {
    extended_parts<std::uint8_t> label_maps;
    if (labels) label_maps = extended(host, label_parts, margin);
    return std::pair(extended(host, parts, margin), std::move(label_maps));
  };
  if (how.extents == from.extents) {
    const auto [images, label_maps] = copied({0, 0, 0});
    run(how.normalize | cast<float>{}, images, label_maps, to_image_parts, to_label_parts);
    machine.download();
    return made;
  }

  // The parts: the case, or those of its slices that are the nearest to some slice of the result.
  extent3 size = from.extents, extents = how.extents, margin{extension, extension, extension};
  std::vector<std::int64_t> nearest;
  if (how.separate >= 0) {
    nearest = nearest_slices(from.extents[how.separate], to.extents[how.separate]);
    std::vector<std::int64_t> read, written;
    for (std::size_t k = 0; k < nearest.size(); ++k)
      if (k == 0 || nearest[k] != nearest[k - 1]) {
        read.push_back(nearest[k]);
        written.push_back(static_cast<std::int64_t>(k));
      }
    parts = slices(image, how.separate, read);
    if (labels) label_parts = slices(*labels, how.separate, read);
    to_image_parts = slices(to_image, how.separate, written);
    if (labels) to_label_parts = slices(to_labels, how.separate, written);
    size[how.separate] = extents[how.separate] = 1;
    margin[how.separate] = 0;
  }

  // The range of every part, normalized as its voxels are.
  std::vector<intensity_range> ranges(parts.size());
  suture::fit(host, fit_range{}, parts, everything{}, std::span(ranges));
  const auto normalized = how.normalize.prepare(here);
  const auto value_of = [&](double bound) { return static_cast<double>(normalized(static_cast<float>(bound))); };
  for (intensity_range& r : ranges)
    r = {.low = value_of(r.low), .high = value_of(r.high), .tally = r.tally, .status = r.status};

  const auto [images, label_maps] = copied(margin);
  run(make_pipeline(how.normalize, crop{margin, size}, extents, {machine.upload(ranges), ranges.size()}), images,
      label_maps, to_image_parts, to_label_parts);
  machine.download();
  for (std::size_t k = 1; k < nearest.size(); ++k) {
    if (nearest[k] != nearest[k - 1]) continue;
    repeat_slice(made.image.voxels, to.extents, how.separate, static_cast<std::int64_t>(k));
    if (labels) repeat_slice(made.labels.voxels, to.extents, how.separate, static_cast<std::int64_t>(k));
  }
  return made;
}

}  // namespace suture::examples
