// SPDX-License-Identifier: Apache-2.0
#include "preparation.hpp"

#include "common/nifti.hpp"
#include "orient_volume.hpp"

namespace suture::examples {

prepared_case prepare_case(const case_files& files, const preparation& how) {
  prepared_case made;
  image_volume image = read_image(files.image);
  label_volume labels;
  if (!files.labels.empty()) {
    labels = read_labels_of(grid_of(image), files.image.filename().string(), files.labels);
    made.labels = oriented(labels, how.orientation, how.threads);
    labels = {};
  }
  made.image =
      std::visit([&](const auto& v) -> image_volume { return oriented(v, how.orientation, how.threads); }, image);
  image = {};

  const cpu exec{.threads = how.threads};
  const grid& g = grid_of(made.image);
  made.body = {g, std::vector<std::uint8_t>(static_cast<std::size_t>(g.voxels()))};
  const auto mask = contiguous(made.body.voxels.data(), g);
  std::vector<largest_component_result> body(1);
  std::visit(
      [&](const auto& v) {
        body_mask(exec, contiguous(v.voxels.data(), g), mask, std::span(body),
                  {.threshold = static_cast<float>(how.body_threshold), .opening_radius = how.opening_radius});
      },
      made.image);
  require(body[0].status == mask_status::ok, site{"body_mask"}, files.image.string(), ": no body above ",
          how.body_threshold, " HU");

  std::vector<bounding_box_result> box(1), label_box(1);
  bounding_box(exec, mask, std::span(box));
  if (!made.labels.voxels.empty()) {
    bounding_box(exec, contiguous(made.labels.voxels.data(), g), std::span(label_box));
    if (label_box[0].status == mask_status::ok)
      for (int k = 0; k < 3; ++k) {
        box[0].first[k] = std::min(box[0].first[k], label_box[0].first[k]);
        box[0].last[k] = std::max(box[0].last[k], label_box[0].last[k]);
      }
  }
  const box_crop crop = crop_foreground{.margin = {how.margin, how.margin, how.margin}}.placed(box[0], g);
  made.start = crop.start;
  made.size = crop.size;
  return made;
}

cohort_fingerprint fingerprint_of(const std::string& name, const prepared_case& prepared, int threads) {
  const label_volume& foreground = prepared.labels.voxels.empty() ? prepared.body : prepared.labels;
  cohort_fingerprint one;
  std::visit(
      [&](const auto& v) {
        one.add(cpu{.threads = threads}, name, region(v, prepared.start, prepared.size),
                region(foreground, prepared.start, prepared.size));
      },
      prepared.image);
  return one;
}

}  // namespace suture::examples
