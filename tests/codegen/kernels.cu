// SPDX-License-Identifier: Apache-2.0
// Kernels whose machine code is inspected: limits.txt bounds their registers and forbids stack and spills.
#include <suture/suture.cuh>

namespace {

using namespace suture;
template <class T>
using inputs = std::span<const view<const T>>;
template <class T>
using outputs = std::span<const view<T>>;

const auto ct = window{.center = 40, .width = 400} | resample{.spacing_mm = {1, 1, 1}} |
                random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}, .probability = .5f} |
                random_elastic{.control_spacing_mm = 32, .max_displacement_mm = 8, .probability = .3f} |
                random_crop{.size = {96, 96, 96}} | random_gamma{.range = {.7f, 1.5f}} | gaussian_noise{.sigma = .02f} |
                cast<suture::half>{};

}  // namespace

// The CT recipe: int16 volume and uint8 label map in, half and uint8 out.
void ct_recipe(const suture::cuda& exec, const settings& s, inputs<std::int16_t> in, outputs<__half> out,
               inputs<std::uint8_t> seg, outputs<std::uint8_t> seg_out) {
  run(exec, plan(ct, in, s), image(in, out), labels(seg, seg_out));
}

// The recipe of nnU-Net: six kernels.
void nnunet_recipe(const suture::cuda& exec, const settings& s, inputs<float> in, outputs<__half> out,
                   inputs<std::int8_t> seg, outputs<std::int8_t> seg_out) {
  const auto recipe =
      random_affine{.rotate_deg = 30} | crop_or_pad{{128, 128, 128}} | gaussian_noise{.sigma = {0, .1f}} |
      random_gaussian_blur{.kernel = blur_kernel::nnunet, .channel_probability = .5f} | random_brightness_factor{} |
      random_patch_contrast{} | random_low_resolution{.channel_probability = .5f} | random_patch_gamma{.invert = true} |
      random_patch_gamma{} | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out), labels(seg, seg_out));
}

// The same with the regions of a brain tumor and their smaller grids as targets.
void target_recipe(const suture::cuda& exec, const settings& s, inputs<std::int16_t> in, outputs<__half> out,
                   inputs<std::int8_t> seg, outputs<__half> targets,
                   std::span<const std::vector<view<__half>>> levels) {
  run(exec, plan(ct, in, s), image(in, out), labels(seg, targets, brats_regions_1_2_4, deep_supervision(levels)));
}

// A whole volume resampled, with votes for the labels.
void resample_recipe(const suture::cuda& exec, inputs<std::int16_t> in, outputs<float> out, inputs<std::uint8_t> seg,
                     outputs<std::uint8_t> seg_out) {
  run(exec, plan(resample{.spacing_mm = {1, 1, 1}} | sampling<linear, edge, vote>{}, in), image(in, out),
      labels(seg, seg_out));
}

// Windowed patches and their labels turned, and nothing else.
void turned_recipe(const suture::cuda& exec, const settings& s, inputs<std::int16_t> in, outputs<__half> out,
                   inputs<std::uint8_t> seg, outputs<std::uint8_t> seg_out) {
  run(exec, plan(window{.center = 40, .width = 400} | random_affine{.rotate_deg = 15} | cast<suture::half>{}, in, s),
      image(in, out), labels(seg, seg_out));
}

// Predictions on the way back from turned and bent patches, and their mean.
void way_back(const suture::cuda& exec, const settings& s, inputs<float> in, outputs<float> out,
              const patch_tensor<float>& restored, const patch_tensor<float>& coverage, const view<float>& mean) {
  const auto there = plan(random_affine{.rotate_deg = 15} | random_elastic{}, in, s);
  run(exec, plan(inverse_of(there), there.output_grids()), image(in, out));
  average(exec, restored, coverage, mean, {.outside = 0});
}

// No geometry.
void pointwise_recipe(const suture::cuda& exec, inputs<std::int16_t> in, outputs<__half> out) {
  run(exec, plan(window{.center = 40, .width = 400} | cast<suture::half>{}, in), image(in, out));
}

// Pointwise augmentation: a field over the grid, noise of two kinds of work, a table, boxes, and parameters by channel.
void pointwise_augmentation(const suture::cuda& exec, const settings& s, inputs<std::int16_t> in, outputs<__half> out) {
  const auto recipe = random_bias_field{} | poisson_noise{} | random_histogram_shift{} |
                      random_coarse_dropout{.holes = 6, .size = {8, 8, 8}, .fill = {0, 1}} |
                      per_channel(random_gamma{}) | per_channel(gaussian_noise{}) | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out));
}

// A stained tile turned, its stains and colors jittered.
void stain_recipe(const suture::cuda& exec, const settings& s, inputs<std::uint8_t> in, outputs<__half> out) {
  const auto recipe = random_affine{.rotate_deg = {180, 0, 0}, .scale = {.8f, 1.25f}} | sampling<linear, reflect>{} |
                      random_hed_jitter{} | random_color_jitter{} | channel_normalize{} | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out));
}

// Reinhard's normalization of the taps, and the fit it rests on.
void reinhard_recipe(const suture::cuda& exec, const settings& s, inputs<std::uint8_t> in, outputs<std::uint8_t> out,
                     std::span<color_moments<lab>> fitted, const color_moments<lab>& target) {
  fit(exec, fit_color_moments<lab>{}, in, everything{}, fitted);
  const auto recipe = reinhard<lab>{.fitted = fitted, .target = target} | random_flip{} | cast<std::uint8_t>{};
  run(exec, plan(recipe, in, s), image(in, out));
}

// Stains fitted to each tile and to all of them, and normalized between turns by what was found.
void macenko_recipe(const suture::cuda& exec, const settings& s, inputs<std::uint8_t> in, outputs<__half> out,
                    std::span<stain_basis> fitted, const macenko_search& search, std::span<macenko_counts> counts) {
  fit(exec, macenko::standard.fit, in, everything{}, fitted);
  fit(exec, fit_macenko_round{search}, in, everything{}, counts);
  const auto recipe = random_flip{} | macenko_normalize{.fitted = fitted} | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out));
}

// The same where nothing is turned, with jitter.
void macenko_tiles(const suture::cuda& exec, const settings& s, inputs<std::uint8_t> in, outputs<__half> out,
                   std::span<const stain_basis> fitted) {
  const auto recipe =
      macenko::standard.normalize(fitted) | random_hed_jitter{} | channel_normalize{} | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out));
}

// Points and boxes by the maps of a batch, elastic included.
void move_annotations(const suture::cuda& exec, const settings& s, inputs<std::int16_t> in,
                      const ragged<point3>& points, std::span<located_point> moved_points, const ragged<box>& boxes,
                      std::span<box_result> moved_boxes, std::span<source_point> read_points,
                      std::span<box_in_source> read_boxes) {
  const auto planned = plan(ct, in, s);
  to_source(exec, planned, points, read_points);
  to_source(exec, planned, boxes, read_boxes);
  to_output(exec, planned, points, moved_points);
  to_output(exec, planned, boxes, moved_boxes);
}

// Filters of k-space.
void kspace_recipe(const suture::cuda& exec, const settings& s, inputs<float> in, outputs<float> out) {
  run(exec, plan(random_gibbs_ringing{} | random_kspace_spike{}, in, s), image(in, out));
}
