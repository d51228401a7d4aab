// SPDX-License-Identifier: Apache-2.0
// This header has the default training augmentation and the preprocessing of nnU-Net v2.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "../evaluate/binding.hpp"
#include "../ops/filter/gaussian_blur.hpp"
#include "../ops/filter/low_resolution.hpp"
#include "../ops/geometry/crop.hpp"
#include "../ops/geometry/crop_at.hpp"
#include "../ops/geometry/flip.hpp"
#include "../ops/geometry/random_scale.hpp"
#include "../ops/geometry/resample.hpp"
#include "../ops/value/brightness.hpp"
#include "../ops/value/clamp.hpp"
#include "../ops/value/ct_normalize.hpp"
#include "../ops/value/gaussian_noise.hpp"
#include "../ops/value/patch_contrast.hpp"
#include "../ops/value/patch_gamma.hpp"
#include "../ops/value/per_channel.hpp"
#include "../sample/sampling.hpp"
#include "nnunet_shape.hpp"

namespace suture {

// The shape and the starts by which training patches are cut from volumes.
struct nnunet_training {
  nnunet_shape shape;
  // The start of the enlarged patch of each sample, as select_patches returns it for oversampled_patch{.size =
  // shape.enlarged(), .margin = shape.margin()}. The patch may reach beyond the volume.
  std::span<const extent3> starts = {};
  // The label beyond the volume: -1, which a conversion of labels has to map to 0 (remap{{{-1, 0}}}). Before v2.7 it
  // was 0.
  std::int32_t label_outside = -1;
};

// Result of nnunet_cut_out: views of the volumes' own memory, and the starts of the enlarged patches in them.
template <class T>
struct nnunet_cut_outs {
  std::vector<view<T>> views;
  std::vector<extent3> starts;
};

// Cuts out the enlarged patches, as nnU-Net does before it rotates and scales them. Use these views and starts in place
// of the volumes, for images and label maps alike. All that is beyond the enlarged patch then reads 0 in images and
// label_outside in label maps. Nothing is copied. A cubic_bspline then filters the enlarged patches and not the
// volumes. Errors: another number of starts than of volumes, a view of a box, an enlarged patch wholly outside.
template <class Volumes>
auto nnunet_cut_out(const Volumes& volumes, const nnunet_shape& shape, std::span<const extent3> starts) {
  constexpr std::string_view name = "nnunet_cut_out";
  const auto whole = detail::as_views(volumes);
  const extent3 size = shape.enlarged();
  require(starts.size() == whole.size(), {name}, starts.size(), " starts for ", whole.size(), " volumes");
  nnunet_cut_outs<detail::view_element_t<Volumes>> cut;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto v = whole[i];
    check(v, {name, static_cast<std::int64_t>(i)});
    const extent3 &start = starts[i], n = v.grid.extents;
    extent3 first{}, inner{};
    for (int k = 0; k < 3; ++k) {
      require(start[k] > -size[k] && start[k] < n[k], {name, static_cast<std::int64_t>(i)}, "the enlarged patch of ",
              size, " from ", start, " lies outside the volume of ", n);
      first[k] = std::max<std::int64_t>(start[k], 0);
      inner[k] = start[k] - first[k];
      v.grid.extents[k] = std::min(start[k] + size[k], n[k]) - first[k];
      v.data += first[k] * v.stride[k];
    }
    v.grid.origin = whole[i].grid.index_to_physical()(vec_cast<double>(first));
    cut.views.push_back(v);
    cut.starts.push_back(inner);
  }
  return cut;
}

// Default augmentation of v2.7 to v2.8, on preprocessed volumes. Append cast<half>{} for half precision. Mirroring is
// part of the geometry: it commutes with what follows. Voxels beyond the enlarged patch but inside the volume are read,
// where nnU-Net has zeros: see nnunet_cut_out. Source: nnUNetTrainer.get_training_transforms, batchgeneratorsv2.
inline auto nnunet_v2_8(const nnunet_training& t) {
  const nnunet_shape& s = t.shape;
  constexpr auto mixture = interval_law::mixture;
  constexpr auto nnunet = affine_convention::nnunet;
  return crop_at{.starts = t.starts, .size = s.enlarged(), .may_leave = true} |
         random_affine{.rotate_deg = s.rotation(), .convention = nnunet, .probability = .2f} |
         random_scale{.range = {.7f, 1.4f}, .axes = s.axes(), .convention = nnunet, .probability = .2f} |
         center_crop{s.patch} | random_flip{.axis_probability = {s.two_dimensional() ? 0.0f : .5f, .5f, .5f}} |
         sampling<linear, constant, vote>{.label_outside = t.label_outside} |
         gaussian_noise{.sigma = {0, .1f}, .probability = .1f} |
         random_gaussian_blur{.kernel = blur_kernel::nnunet, .channel_probability = .5f, .probability = .2f} |
         per_channel(random_brightness_factor{.law = mixture, .probability = .15f}) |
         random_patch_contrast{.law = mixture, .probability = .15f} |
         random_low_resolution{.axes = s.axes(), .channel_probability = .5f, .probability = .25f} |
         random_patch_gamma{.law = mixture, .invert = true, .probability = .1f} |
         random_patch_gamma{.law = mixture, .probability = .3f};
}

// Default augmentation up to v2.3, by batchgenerators: cubic interpolation of images, the scale a mixture, brightness
// uniform, one sigma for all axes of a channel. Low resolution is interpolated linearly here, by a cubic spline there.
inline auto nnunet_v2_3(const nnunet_training& t) {
  const nnunet_shape& s = t.shape;
  constexpr auto mixture = interval_law::mixture;
  constexpr auto nnunet = affine_convention::nnunet;
  return crop_at{.starts = t.starts, .size = s.enlarged(), .may_leave = true} |
         random_affine{.rotate_deg = s.rotation(), .convention = nnunet, .probability = .2f} |
         random_scale{
             .range = {.7f, 1.4f}, .law = mixture, .axes = s.axes(), .convention = nnunet, .probability = .2f} |
         center_crop{s.patch} | random_flip{.axis_probability = {s.two_dimensional() ? 0.0f : .5f, .5f, .5f}} |
         sampling<cubic_bspline, constant, vote>{.label_outside = t.label_outside} |
         gaussian_noise{.sigma = {0, .1f}, .probability = .1f} |
         random_gaussian_blur{.each = sigma_of::channel, .channel_probability = .5f, .probability = .2f} |
         per_channel(random_brightness_factor{.probability = .15f}) |
         random_patch_contrast{.law = mixture, .probability = .15f} |
         random_low_resolution{.axes = s.axes(), .channel_probability = .5f, .probability = .25f} |
         random_patch_gamma{.law = mixture, .invert = true, .probability = .1f} |
         random_patch_gamma{.law = mixture, .probability = .3f};
}

// This target is for data with channels of use_mask_for_norm. labels(in, out, nnunet_masked_target{}) stores two
// channels from one sampling. Channel 0 is the target, where -1 has become 0 (RemoveLabel). Channel 1 is the label as
// sampled, by which mask_image masks the image (MaskImage, which comes before).
struct nnunet_masked_target {
  struct channels_of {
    std::int32_t label;
    SUTURE_FN std::int32_t operator[](std::int32_t channel) const { return channel == 0 && label == -1 ? 0 : label; }
  };
  SUTURE_FN channels_of operator()(std::int32_t label) const { return {label}; }
  SUTURE_FN std::int32_t channels() const { return 2; }
};

// Preprocessing of CT: normalized by the statistics of the cohort, then resampled to `target` mm (z, y, x), cubic for
// the image and by vote for labels, and limited to the range of normalized values. For volumes whose slices are not
// resampled one by one (separate_axis is -1).
inline auto nnunet_preprocess_ct(const ct_normalize& cohort, const point3& target) {
  const float divisor = cohort.standard_deviation > 1e-8f ? cohort.standard_deviation : 1e-8f;
  return cohort | resample{.spacing_mm = target} | sampling<cubic_bspline, edge, vote>{} |
         clamp{.low = (cohort.lower - cohort.mean) / divisor, .high = (cohort.upper - cohort.mean) / divisor};
}

// Preprocesses the other volumes in two runs: every slice in its plane, then to the nearest slice across `slice_axis`,
// which separate_axis returns.
inline auto nnunet_preprocess_ct_in_plane(const ct_normalize& cohort, point3 target, int slice_axis) {
  target[slice_axis] = 0;
  return nnunet_preprocess_ct(cohort, target);
}
inline auto nnunet_preprocess_across(const point3& target) {
  return resample{.spacing_mm = target} | sampling<nearest, edge, nearest>{};
}

}  // namespace suture
