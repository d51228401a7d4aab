// SPDX-License-Identifier: Apache-2.0
// What the digests of masks are made from.
#pragma once

#include <suture/image/digest.hpp>
#include <suture/mask/body_mask.hpp>
#include <suture/mask/bounding_box.hpp>
#include <suture/mask/gray_morphology.hpp>
#include <suture/mask/label_perturbation.hpp>
#include <suture/mask/mask_image.hpp>
#include <suture/mask/tissue_mask.hpp>

#include <cstdio>

namespace digest_test {

using namespace suture;

// Noisy boxes, so that there are large components, specks and holes.
struct mask_cases {
  std::vector<grid> grids{{.extents = {9, 31, 70}}, {.extents = {1, 40, 130}}, {.extents = {14, 6, 15}}};
  std::vector<std::vector<std::int16_t>> images;
  std::vector<std::vector<float>> floats;
  grid thumbnail{.extents = {1, 47, 101}};
  std::vector<std::uint8_t> rgb;

  mask_cases() {
    for (const grid& g : grids) {
      images.emplace_back();
      floats.emplace_back();
      const extent3& n = g.extents;
      for (std::int64_t z = 0; z < n[0]; ++z)
        for (std::int64_t y = 0; y < n[1]; ++y)
          for (std::int64_t x = 0; x < n[2]; ++x) {
            const bool inside = y > n[1] / 6 && y < n[1] / 2 && x > n[2] / 5;
            const auto noise = static_cast<int>(mix64(images.back().size() + 77 * images.size()) % 1000);
            images.back().push_back(static_cast<std::int16_t>((inside ? 100 : -900) + noise - 500));
            floats.back().push_back(noise % 40 == 0 ? __builtin_nanf("") : static_cast<float>(noise) / 7);
          }
    }
    for (std::uint64_t i = 0; i < 3 * 47 * 101; ++i)
      rgb.push_back(static_cast<std::uint8_t>(i / 300 % 3 == 0 ? 90 + mix64(i) % 110 : 215 + mix64(i) % 40));
  }
};

// Prints every digest. Backend: exec(bytes) is an executor with workspace; place(values) puts values where it runs
// and room<T>(n) makes space there; back(pointer, n) reads them again.
template <class Backend>
void print_masks(Backend backend) {
  const mask_cases data;
  std::uint64_t sum = 0;
  const auto add = [&](const auto* values, const grid& g) {
    const auto host = backend.back(values, static_cast<std::size_t>(g.voxels()));
    sum = combine_digest(sum, 1, digest(contiguous(host.data(), g)));
  };
  const auto print = [&](const char* name) {
    std::printf("%-24s %016llx\n", name, static_cast<unsigned long long>(sum));
    sum = 0;
  };
  std::vector<view<const std::int16_t>> images;
  std::vector<view<const float>> floats;
  std::vector<view<std::uint8_t>> masks;
  std::vector<view<std::int32_t>> labels;
  std::vector<view<float>> grays;
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    const grid& g = data.grids[i];
    const auto n = static_cast<std::size_t>(g.voxels());
    images.push_back(contiguous<const std::int16_t>(backend.place(data.images[i]), g));
    floats.push_back(contiguous<const float>(backend.place(data.floats[i]), g));
    masks.push_back(contiguous(backend.template room<std::uint8_t>(n), g));
    labels.push_back(contiguous(backend.template room<std::int32_t>(n), g));
    grays.push_back(contiguous(backend.template room<float>(n), g));
  }
  const auto add_all = [&](const auto& views) {
    for (const auto& v : views) add(v.data, v.grid);
  };
  const std::size_t enough = std::size_t{1} << 20, n = images.size();
  const auto exec = backend.exec(enough);
  const std::span<largest_component_result> largest(backend.template room<largest_component_result>(n), n);

  for (const std::int64_t radius : {0, 1}) {
    body_mask(exec, images, masks, largest, {.opening_radius = radius});
    add_all(masks);
    for (const auto& r : backend.back(largest.data(), n)) sum = mix64(sum ^ r.voxels);
  }
  print("body_mask");
  const std::span<std::uint32_t> counts(backend.template room<std::uint32_t>(n), n);
  for (const auto touching : {connectivity::faces, connectivity::edges, connectivity::corners}) {
    label_components(exec, masks, labels, touching, counts);
    add_all(labels);
    for (const std::uint32_t c : backend.back(counts.data(), n)) sum = mix64(sum ^ c);
    body_mask(exec, images, masks, largest, {.threshold = 200});
    remove_small_components(exec, masks, masks, touching, 3);
    add_all(masks);
  }
  print("components");
  const std::int32_t disturbed[] = {1, 2, 3, 5};
  const std::uint64_t ids[] = {5, 123456789012ull, 77};
  body_mask(exec, images, masks, largest, {.threshold = 300});
  label_components(exec, masks, labels, connectivity::faces, counts);
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const settings s{.seed = 20261120, .epoch = epoch, .sample_ids = ids};
    disturb_labels(exec, random_binary_operation{.labels = disturbed, .probability = .9f, .largest_radius = 3}, labels,
                   s);
    add_all(labels);
    disturb_labels(exec, random_component_removal{.labels = disturbed, .probability = .9f}, labels, s);
    add_all(labels);
  }
  print("disturbed_labels");
  body_mask(exec, images, masks, largest, {.threshold = 300});
  for (const structuring_element& e : {structuring_element{element_shape::box, {1, 2, 3}},
                                       structuring_element{element_shape::ball, {2, 2, 2}}, structuring_element{}}) {
    binary_dilation(exec, masks, masks, e);
    add_all(masks);
    binary_closing(exec, masks, masks, e, true);
    fill_holes(exec, masks, masks);
    binary_opening(exec, masks, masks, e);
    add_all(masks);
    gray_erosion(exec, floats, grays, e);
    add_all(grays);
    gray_dilation(exec, floats, grays, e, 50);
    add_all(grays);
  }
  print("morphology");
  mask_image(exec, labels, grays, {.below = 3, .value = -5});
  add_all(grays);
  print("mask_image");
  const std::span<bounding_box_result> boxes(backend.template room<bounding_box_result>(n), n);
  bounding_box(exec, images, boxes, 300);
  for (const auto& b : backend.back(boxes.data(), n))
    for (int k = 0; k < 3; ++k) sum = mix64(sum ^ static_cast<std::uint64_t>(b.first[k] * 4096 + b.last[k]));
  print("bounding_box");
  const auto rgb = channels_last<const std::uint8_t>(backend.place(data.rgb), data.thumbnail, 3);
  const auto tissue = contiguous(backend.template room<std::uint8_t>(static_cast<std::size_t>(data.thumbnail.voxels())),
                                 data.thumbnail);
  const std::span<tissue_mask_result> found(backend.template room<tissue_mask_result>(1), 1);
  for (const auto rule : {tissue_rule::gray, tissue_rule::saturation, tissue_rule::luminosity}) {
    tissue_mask(exec, rgb, tissue, found, {.rule = rule, .least_size = 3, .dilation_radius = 2});
    add(tissue.data, tissue.grid);
    sum = mix64(sum ^ static_cast<std::uint64_t>(backend.back(found.data(), 1)[0].threshold));
  }
  print("tissue_mask");
}

}  // namespace digest_test
