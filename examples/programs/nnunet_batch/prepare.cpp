// SPDX-License-Identifier: Apache-2.0
#include "prepare.hpp"

#include "suture/recipe/nnunet.hpp"
#include "suture/suture.hpp"

namespace suture::examples {
namespace {

template <class Pipeline, class T>
prepared run_on(const cpu& exec, const Pipeline& pipeline, const volume<T>& image, const volume<std::int8_t>& labels) {
  const auto in = contiguous(image.voxels.data(), image.grid);
  const auto seg = contiguous(labels.voxels.data(), image.grid);
  const auto planned = plan(pipeline, std::span(&in.grid, 1));
  const grid to = planned.output_grid(0);
  const auto n = static_cast<std::size_t>(to.voxels());
  prepared made{{to, std::vector<float>(n)}, {to, std::vector<std::int8_t>(n)}};
  run(exec, planned, suture::image(in, contiguous(made.image.voxels.data(), to)),
      suture::labels(seg, contiguous(made.labels.voxels.data(), to)));
  return made;
}

// pipeline_to(spacing) is what brings a case without a slice axis to that spacing.
template <class PipelineTo, class T>
prepared resampled(const cpu& exec, const PipelineTo& pipeline_to, const volume<T>& image,
                   const volume<std::int8_t>& labels, point3 spacing) {
  for (int k = 0; k < 3; ++k)
    if (spacing[k] == 0) spacing[k] = image.grid.spacing[k];
  const int slices = separate_axis(image.grid.spacing, spacing);
  point3 in_plane = spacing;
  if (slices >= 0) in_plane[slices] = image.grid.spacing[slices];
  const prepared made = run_on(exec, pipeline_to(in_plane), image, labels);
  return slices < 0 ? made : run_on(exec, nnunet_preprocess_across(spacing), made.image, made.labels);
}

}  // namespace

prepared prepare(const image_volume& image, const label_volume& labels, bool by_cohort, const point3& spacing,
                 int threads) {
  const cpu exec{.threads = threads};
  volume<std::int8_t> classes{labels.grid, {}};
  for (const std::uint8_t label : labels.voxels) {
    require(label <= 127, {"--label"}, "label ", static_cast<int>(label),
            " is above 127, the highest that can be trained on; renumber the labels");
    classes.voxels.push_back(static_cast<std::int8_t>(label));
  }
  return std::visit(
      [&](const auto& v) -> prepared {
        const auto voxels = contiguous(v.voxels.data(), v.grid);
        if (by_cohort) {
          cohort_fingerprint cohort;
          cohort.add(exec, "case", voxels, contiguous(labels.voxels.data(), labels.grid));
          const ct_normalize normalize = cohort.normalization(0);
          prepared made = resampled(
              exec, [&](const point3& to) { return nnunet_preprocess_ct(normalize, to); }, v, classes, spacing);
          made.normalize = normalize;
          return made;
        }
        moments whole;
        fit(exec, fit_moments{}, std::span(&voxels, 1), everything{}, std::span(&whole, 1));
        return resampled(
            exec,
            [&](const point3& to) {
              return z_score{.fitted = {&whole, 1}} | resample{.spacing_mm = to} |
                     sampling<cubic_bspline, edge, vote>{};
            },
            v, classes, spacing);
      },
      image);
}

}  // namespace suture::examples
