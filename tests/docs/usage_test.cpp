// SPDX-License-Identifier: Apache-2.0
// Snippets of README.md and docs/execution.md.
#include <gtest/gtest.h>

#include <iostream>
#include <new>
#include <string>

// [include]
#include <suture/suture.hpp>
// [/include]

namespace {

// Two scans of different size and spacing, with labels.
struct scans {
  std::vector<suture::grid> grids{{.extents = {50, 120, 130}, .spacing = {2, .9, .85}},
                                  {.extents = {70, 100, 100}, .spacing = {1.5, 1, 1}}};
  std::vector<std::vector<std::int16_t>> voxels;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<suture::view<const std::int16_t>> ct;
  std::vector<suture::view<const std::uint8_t>> seg;
  std::vector<std::uint64_t> ids{4711, 12};

  scans() {
    for (const suture::grid& g : grids) {
      const auto n = static_cast<std::size_t>(g.voxels());
      voxels.emplace_back(n);
      labels.emplace_back(n);
      for (std::size_t i = 0; i < n; ++i) {
        voxels.back()[i] = static_cast<std::int16_t>(static_cast<int>(i * 37 % 801) - 300);
        labels.back()[i] = static_cast<std::uint8_t>(i / 9 % 4);
      }
      ct.push_back(suture::contiguous<const std::int16_t>(voxels.back().data(), g));
      seg.push_back(suture::contiguous<const std::uint8_t>(labels.back().data(), g));
    }
  }
};

TEST(Readme, Usage) {
  const scans data;
  const auto& [grids, voxels, labels, ct, seg, ids] = data;
  const std::uint32_t epoch = 3;
  constexpr std::size_t patch_voxels = 96 * 96 * 96;
  std::vector<suture::half> image_memory(2 * patch_voxels);
  std::vector<std::uint8_t> label_memory(2 * patch_voxels);
  suture::half* const images = image_memory.data();
  std::uint8_t* const label_maps = label_memory.data();
  // clang-format off
  // [usage]
  const auto train = suture::window{.center = 40, .width = 400}  // HU to 0 .. 1
                     | suture::resample{.spacing_mm = {1, 1, 1}}
                     | suture::random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}, .probability = .5f}
                     | suture::random_elastic{.control_spacing_mm = 32, .max_displacement_mm = 8, .probability = .3f}
                     | suture::random_crop{.size = {96, 96, 96}}
                     | suture::random_gamma{.range = {.7f, 1.5f}}
                     | suture::gaussian_noise{.sigma = .02f}
                     | suture::cast<suture::half>{};

  // ct and seg hold a view of each scan: pointer, extents, spacing, origin, direction. ids are indices in the data set.
  // images and label_maps point to the memory of the results.
  const auto plan = suture::plan(train, ct, {.seed = 42, .epoch = epoch, .sample_ids = ids});
  const auto patches = suture::batch_views(images, plan.output_grids());  // dense (sample, z, y, x) tensors
  const auto patch_labels = suture::batch_views(label_maps, plan.output_grids());
  suture::run(suture::cpu{}, plan, suture::image(ct, patches), suture::labels(seg, patch_labels));
  // [/usage]
  // clang-format on
  EXPECT_NE(suture::digest(patches[0]), suture::digest(patches[1]));

  // The second sample alone, on one thread.
  std::vector<suture::half> alone(patch_voxels);
  std::vector<std::uint8_t> alone_labels(patch_voxels);
  const auto single = suture::plan(train, std::vector{ct[1]}, {.seed = 42, .epoch = 3, .sample_ids = {&ids[1], 1}});
  const auto out = suture::contiguous(alone.data(), single.output_grid(0));
  const auto labels_out = suture::contiguous(alone_labels.data(), single.output_grid(0));
  suture::run(suture::cpu{.threads = 1}, single, suture::image(ct[1], out), suture::labels(seg[1], labels_out));
  EXPECT_EQ(suture::digest(out), suture::digest(patches[1]));
  EXPECT_EQ(suture::digest(labels_out), suture::digest(patch_labels[1]));
}

TEST(Execution, ViewsOfAnyLayout) {
  const std::int64_t z = 4, y = 6, x = 5, pitch = 8;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * z * y * x)), rows(static_cast<std::size_t>(z * y * pitch));
  // [views]
  suture::grid g{.extents = {z, y, x}, .spacing = {1.5, .9, .9}, .origin = {-120, 35, 12}};  // all (z, y, x), mm, LPS
  auto interleaved = suture::channels_last(rgb.data(), g, 3);
  suture::view<std::uint8_t> pitched{.data = rows.data(), .grid = g, .stride = {y * pitch, pitch, 1}};
  // [/views]
  suture::check(interleaved, {"views"});
  suture::check(pitched, {"views"});
  EXPECT_EQ(interleaved.stride, (suture::extent3{y * x * 3, x * 3, 3}));
}

TEST(Execution, Boxes) {
  const scans s;
  const auto& ct = s.ct;
  const auto train = suture::random_affine{.rotate_deg = 15} | suture::random_crop{.size = {24, 32, 32}};
  const auto whole = suture::plan(train, ct, {.seed = 42, .sample_ids = s.ids});
  std::vector<float> memory(2 * 24 * 32 * 32), expected(memory.size());
  suture::run(suture::cpu{}, whole, suture::image(ct, suture::batch_views(expected.data(), whole.output_grids())));
  const auto read = [&](std::size_t i, const suture::voxel_box& box, std::int16_t* to) {
    for (std::int64_t z = 0; z < box.size[0]; ++z)
      for (std::int64_t y = 0; y < box.size[1]; ++y)
        for (std::int64_t x = 0; x < box.size[2]; ++x)
          *to++ =
              ct[i]
                  .data[(box.first[0] + z) * ct[i].stride[0] + (box.first[1] + y) * ct[i].stride[1] + box.first[2] + x];
  };
  const std::vector<suture::grid> grids = s.grids;
  const auto& ids = s.ids;
  // [boxes]
  const auto plan = suture::plan(train, grids, {.seed = 42, .sample_ids = ids});  // the grids are enough
  std::vector<std::vector<std::int16_t>> boxes(grids.size());
  std::vector<suture::view<const std::int16_t>> in;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const suture::voxel_box box = suture::source_box(plan, i);
    boxes[i].resize(static_cast<std::size_t>(box.voxels()));
    read(i, box, boxes[i].data());
    in.push_back(suture::partial_view<const std::int16_t>(boxes[i].data(), grids[i], box));
  }
  suture::run(suture::cpu{}, plan, suture::image(in, suture::batch_views(memory.data(), plan.output_grids())));
  // [/boxes]
  EXPECT_EQ(memory, expected);
}

TEST(Execution, WorkspaceAndEvaluator) {
  const scans data;
  const auto& [grids, voxels, labels, ct, seg, ids] = data;
  std::vector<float> memory(2 * 512);
  const auto recipe = suture::random_affine{.rotate_deg = 10} | suture::random_crop{.size = {8, 8, 8}};
  const auto plan = suture::plan(recipe, ct, {.seed = 1, .sample_ids = ids});
  const auto patches = suture::batch_views(memory.data(), plan.output_grids());
  // [workspace]
  const auto pair = suture::image(ct, patches);
  const std::size_t bytes = suture::workspace_bytes(plan, pair);
  auto* const space = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
  suture::run(suture::cpu{.threads = 2, .workspace = {space, bytes}}, plan, pair);  // allocates no workspace
  // [/workspace]
  // [evaluator]
  const auto evaluate = suture::prepare(suture::cpu{.workspace = {space, bytes}}, plan, pair);
  const float value = evaluate(1, 4, 5, 6);  // sample 1 of the batch at z = 4, y = 5, x = 6 of its patch
  // [/evaluator]
  EXPECT_EQ(value, memory[512 + 4 * 64 + 5 * 8 + 6]);
  ::operator delete (space, std::align_val_t{256});
}

TEST(Execution, EvaluationMode) {
  const scans data;
  const auto& [grids, voxels, labels, ct, seg, ids] = data;
  const auto train = suture::window{.center = 40, .width = 400} | suture::resample{} |
                     suture::random_affine{.rotate_deg = 15} | suture::random_crop{.size = {8, 8, 8}} |
                     suture::gaussian_noise{};
  const auto plan = suture::plan(train, ct, {.evaluation = true});  // no ids needed: nothing is drawn
  const auto plain = suture::plan(
      suture::window{.center = 40, .width = 400} | suture::resample{} | suture::center_crop{.size = {8, 8, 8}}, ct);
  std::vector<float> a(2 * 512), b(2 * 512);
  suture::run(suture::cpu{}, plan, suture::image(ct, suture::batch_views(a.data(), plan.output_grids())));
  suture::run(suture::cpu{}, plain, suture::image(ct, suture::batch_views(b.data(), plain.output_grids())));
  EXPECT_EQ(a, b);
}

TEST(Execution, Errors) {
  const scans data;
  const auto& [grids, voxels, labels, ct, seg, ids] = data;
  std::string message;
  // [errors]
  try {
    const auto plan = suture::plan(suture::window{.center = 40, .width = -1}, ct);
  } catch (const suture::error& problem) {
    message = problem.what();  // suture: window: sample 0: width -1 must be positive
  }
  // [/errors]
  EXPECT_EQ(message, "suture: window: sample 0: width -1 must be positive");
}

TEST(Usage, BuildAdvice) {
  // [advice]
  if (const std::string advice = suture::build_advice(); !advice.empty()) std::cerr << advice << '\n';
  // [/advice]
}

TEST(Usage, Stages) {
  // clang-format off
  // [stages]
  const auto crop = suture::random_crop{.size = {16, 16, 16}};
  const suture::random_gaussian_blur blur;
  const suture::random_patch_contrast contrast;
  const suture::random_low_resolution coarse;
  const suture::random_patch_gamma gamma;
  // One line for each stage after the fused part:
  const auto one = crop | suture::gaussian_noise{}                // noise is fused
                   | blur | suture::brightness_factor{.factor = 2}  // a filter and what follows it
                   | contrast | coarse                              // its factor acts on the voxels the filter reads
                   | gamma | suture::cast<suture::half>{};          // two: the curve, and the moments restored
  // [/stages]
  // clang-format on
  const std::vector<suture::grid> grids{{.extents = {20, 30, 30}}};
  const std::vector<std::uint64_t> ids{3};
  EXPECT_EQ(suture::plan(one, grids, {.sample_ids = ids}).stages(), 5);
}

}  // namespace
