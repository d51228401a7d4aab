// SPDX-License-Identifier: Apache-2.0
// What the digests of patch sampling, of reassembly, and of tiles of slides are made from.
#pragma once

#include <suture/fit/sharpness.hpp>
#include <suture/image/digest.hpp>
#include <suture/ops/geometry/affine.hpp>
#include <suture/ops/geometry/elastic.hpp>
#include <suture/ops/geometry/pad.hpp>
#include <suture/ops/geometry/resample.hpp>
#include <suture/patch/average.hpp>
#include <suture/patch/crop_by_class.hpp>
#include <suture/patch/reassemble.hpp>
#include <suture/patch/tile_list.hpp>
#include <suture/plan/inverse.hpp>
#include <suture/points/points.hpp>

#include <cstdio>

#include "support/move_lists.hpp"

namespace digest_test {

using namespace suture;
using support::move_lists;

// Ragged label maps with six values, of which five are declared, and images of two channels.
struct patch_cases {
  std::vector<grid> grids;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<std::vector<float>> images;
  std::vector<std::vector<std::uint16_t>> weights;
  std::vector<std::uint64_t> ids{1234567890123ull, 7, 42};
  patch_grid patches = sliding_window_grid({14, 21, 45}, {6, 8, 16});
  std::vector<float> predictions, coverage;  // a voxel of a patch in three is not covered

  patch_cases() {
    const extent3 sizes[3] = {{21, 40, 37}, {9, 6, 11}, {17, 52, 45}};
    for (std::uint64_t i = 0; i < 3; ++i) {
      grids.push_back({.extents = sizes[i]});
      const auto n = static_cast<std::size_t>(grids.back().voxels());
      labels.emplace_back(n);
      images.emplace_back(2 * n);
      weights.emplace_back(n);
      for (std::size_t v = 0; v < n; ++v) {
        labels[i][v] = static_cast<std::uint8_t>(mix64(v / 7 + 100 * i) % 40 < 34 ? 0 : 1 + v % 5);
        weights[i][v] = static_cast<std::uint16_t>(mix64(v + 31) & 0xffff);
        for (const std::size_t at : {v, n + v})
          images[i][at] = static_cast<float>(static_cast<int>(mix64(at * 3 + i) % 600) - 400);
      }
    }
    predictions.resize(static_cast<std::size_t>(patches.count() * 2 * 6 * 8 * 16));
    for (std::size_t v = 0; v < predictions.size(); ++v)
      predictions[v] = static_cast<float>(static_cast<int>(mix64(v) % 2000001) - 1000000) * 1e-5f;
    coverage.resize(predictions.size() / 2);
    for (std::size_t v = 0; v < coverage.size(); ++v)
      coverage[v] = mix64(v + 5) % 3 == 0 ? 0.0f : static_cast<float>(mix64(v) % 4001) * 1e-3f;
  }
  patch_draws draws() const { return {.seed = 20261120, .epoch = 3, .sample_ids = ids, .patches = 20, .ordinal = 1}; }
};

inline std::uint64_t digest_of(const std::vector<patch_choice>& choices) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < choices.size(); ++i) {
    const patch_choice& c = choices[i];
    for (const std::int64_t word :
         {c.start[0], c.start[1], c.start[2], c.voxel, std::int64_t{c.of_class}, static_cast<std::int64_t>(c.status)})
      sum = mix64(sum ^ mix64(static_cast<std::uint64_t>(word) + i));
  }
  return sum;
}

inline std::uint64_t digest_of(const std::vector<slide_tile>& tiles) {
  std::uint64_t sum = tiles.size();
  for (const slide_tile& t : tiles) {
    for (const std::int64_t word : {t.region.y, t.region.x, std::int64_t{t.region.level}, t.region.size})
      sum = mix64(sum ^ mix64(static_cast<std::uint64_t>(word)));
    for (const double share : {t.region.scale, t.tissue}) sum = mix64(sum ^ bit_cast<std::uint64_t>(share));
  }
  return sum;
}

inline std::uint64_t digest_of(const std::vector<sharpness>& fitted) {
  std::uint64_t sum = 0;
  for (const sharpness& s : fitted)
    for (const double v : {s.laplacian_variance, s.mean, s.standard_deviation, static_cast<double>(s.pixels)})
      sum = mix64(sum ^ bit_cast<std::uint64_t>(v));
  return sum;
}

inline std::uint64_t digest_of(const std::vector<double>& words) {
  std::uint64_t sum = words.size();
  for (const double v : words) sum = mix64(sum ^ bit_cast<std::uint64_t>(v));
  return sum;
}

inline std::uint64_t digest_of(const std::vector<located_point>& points) {
  std::vector<double> words;
  for (const located_point& p : points)
    for (const double v : {p.point[0], p.point[1], p.point[2], p.residual, p.converged ? 1.0 : 0, p.valid ? 1.0 : 0})
      words.push_back(v);
  return digest_of(words);
}

inline std::uint64_t digest_of(const std::vector<source_point>& points) {
  std::vector<double> words;
  for (const source_point& p : points)
    for (const double v : {p.point[0], p.point[1], p.point[2], p.valid ? 1.0 : 0}) words.push_back(v);
  return digest_of(words);
}

inline std::uint64_t digest_of(const std::vector<box_in_source>& boxes) {
  std::vector<double> words;
  for (const box_in_source& b : boxes) {
    for (const point3& p : {b.envelope.low, b.envelope.high})
      for (const double v : p.v) words.push_back(v);
    words.push_back(b.valid ? 1.0 : 0);
  }
  return digest_of(words);
}

inline std::uint64_t digest_of(const std::vector<box_result>& boxes) {
  std::vector<double> words;
  for (const box_result& b : boxes) {
    for (const point3& p : {b.clipped.low, b.clipped.high, b.unclipped.low, b.unclipped.high})
      for (const double v : p.v) words.push_back(v);
    for (const double v : {b.visible, b.converged ? 1.0 : 0, b.valid ? 1.0 : 0}) words.push_back(v);
  }
  return digest_of(words);
}

inline void print(const char* name, std::uint64_t digest) {
  std::printf("%-24s %016llx\n", name, static_cast<unsigned long long>(digest));
}

// Prints every digest. Backend: copies of vectors where it runs, selection and reassembly there.
template <class Backend>
void print_all(Backend backend) {
  const patch_cases data;
  const auto labels = backend.views(data.labels, data.grids, 1);
  const auto images = backend.views(data.images, data.grids, 2);
  const auto weights = backend.views(data.weights, data.grids, 1);
  const std::vector<float> ratios{.5f, 1, .1f, 3, .7f};
  const auto classes = label_classes(labels, 5);
  print("class_balanced",
        digest_of(backend.select(class_balanced_patch{.size = {5, 6, 7}, .ratios = ratios}, classes, data.draws())));
  print("oversampled",
        digest_of(backend.select(oversampled_patch{.size = {12, 12, 12}, .margin = {3, 2, 1}}, classes, data.draws())));
  print("pos_neg", digest_of(backend.select(pos_neg_patch{.size = {5, 6, 7}, .positive = 2},
                                            foreground_background(labels, images, 50.0f), data.draws())));
  print("weighted", digest_of(backend.select(weighted_patch{}, weight_map(weights, {5, 6, 7}), data.draws())));
  const extent3& size = data.patches.size;
  print("reassembled", backend.reassembled(data, constant_window(size)));
  print("reassembled_gaussian", backend.reassembled(data, gaussian_window(size)));
  print("reassembled_sliding", backend.reassembled(data, sliding_window_gaussian(size)));
  print("reassembled_coverage", backend.reassembled(data, gaussian_window(size), data.coverage));

  // Points and boxes in lists of 1, 17 and 40, two in none.
  const auto bent =
      random_affine{.rotate_deg = 30} | random_elastic{.control_spacing_mm = 5, .max_displacement_mm = 1.2};
  const auto moved = plan(bent, data.grids, {.seed = 3, .sample_ids = data.ids});
  const std::vector<std::int64_t> offsets{0, 1, 18, 58};
  std::vector<point3> points;
  std::vector<box> boxes;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const point3 p{static_cast<double>(mix64(i) % 17) + 0.25, static_cast<double>(mix64(i + 99) % 40),
                   static_cast<double>(i) - 9};
    points.push_back(p);
    boxes.push_back({p, {p[0] + 3, p[1] + 4.5, p[2] + static_cast<double>(i)}});
  }
  print("points", digest_of(backend.template moved<located_point>(moved, points, offsets)));
  print("source_points", digest_of(backend.template moved<source_point>(moved, points, offsets)));
  print("boxes", digest_of(backend.template moved<box_result>(moved, boxes, offsets)));
  print("source_boxes", digest_of(backend.template moved<box_in_source>(moved, boxes, offsets)));

  // Images of two channels on the way back from the same plan, and from one without a deformation.
  const auto digest_of_images = [&](const auto& p) {
    std::uint64_t set = 0;
    const std::vector<std::vector<float>> out = backend.through(p, images);
    for (std::size_t i = 0; i < out.size(); ++i)
      set = combine_digest(set, data.ids[i], digest(contiguous(out[i].data(), p.output_grid(i), 2)));
    return set;
  };
  const sampling<linear, constant> rule{.border = {.value = .5f}};
  const std::vector<class_index> indexes = backend.indexes(classes);
  std::vector<const class_index*> voxels_of;
  for (const class_index& index : indexes) voxels_of.push_back(&index);
  const settings balanced{.seed = 9, .sample_ids = data.ids};
  print("crop_by_class",
        digest_of_images(plan(
            resample{.spacing_mm = {.5, 1.3, .7}} | pad_to{{12, 12, 12}} |
                crop_by_class{.rule = class_balanced_patch{.size = {12, 6, 7}, .ratios = ratios}, .cases = voxels_of} |
                rule,
            data.grids, balanced)));
  print("crop_by_class_oversampled",
        digest_of_images(plan(
            random_affine{.rotate_deg = 30} |
                crop_by_class{.rule = oversampled_patch{.size = {19, 15, 12}, .probability = .6f}, .cases = voxels_of} |
                rule,
            data.grids, balanced)));
  print("inverse_elastic", digest_of_images(plan(inverse_of(moved) | rule, moved.output_grids())));
  std::vector<float> weights_of_three(3 * 24 * 37);
  for (std::size_t i = 0; i < weights_of_three.size(); ++i) weights_of_three[i] = static_cast<float>(mix64(i) % 7) / 3;
  print("average", backend.averaged(data.images[0], weights_of_three, {.extents = {2, 12, 37}}));
  const auto turned = plan(random_affine{.rotate_deg = 30}, data.grids, {.seed = 4, .sample_ids = data.ids});
  print("inverse_affine", digest_of_images(plan(inverse_of(turned) | rule, turned.output_grids())));

  // The first slice of labels is the tissue of a slide, and label maps read as RGB are tiles.
  const slide_layout slide{{{5600, 5180, 1}, {1400, 1295, 4.0003}}, 0.2527};
  const mask_area tissue(slide, contiguous(data.labels[0].data(), grid{.extents = {1, 40, 37}}));
  const tile_options tiles{.size = 96, .stride = 70, .mpp = 0.5, .least_tissue = 0.1};
  print("grid_tiles", digest_of(grid_tiles(slide, tissue, tiles)));
  print("random_tiles",
        digest_of(random_tiles(slide, tissue, tiles, {.seed = 5, .epoch = 1, .slide_id = 77, .count = 50})));
  print("sharpness",
        digest_of(backend.sharpness_of(std::vector<std::vector<std::uint8_t>>{data.labels[0], data.labels[2]},
                                       {{.extents = {1, 40 * 7, 37}}, {.extents = {1, 52, 45 * 5 + 30}}}, 3)));
}

template <class T>
std::uint64_t digest_of_volume(const std::vector<T>& values, const extent3& extents, std::int64_t channels = 2) {
  return digest(contiguous(values.data(), grid{.extents = extents}, channels));
}

}  // namespace digest_test
