// SPDX-License-Identifier: Apache-2.0
// Snippets of docs/recipes.md about a cohort: what is found once, ranks and resumption, slices, predictions.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <suture/suture.hpp>

namespace {

// A case in memory: four channels, labels 0, 1, 2 and 4, and what is found of them once.
struct patient {
  suture::grid grid;
  std::vector<float> voxels;         // (channel, z, y, x)
  std::vector<std::uint8_t> labels;  // (z, y, x)
  std::vector<suture::moments> fitted;
  std::vector<std::uint64_t> counts;

  auto image() const { return suture::contiguous(voxels.data(), grid, 4); }
  auto segmentation() const { return suture::contiguous(labels.data(), grid); }
  auto classes() const { return suture::label_classes(segmentation(), 5); }

  void look() {  // kept beside the case, on disk too
    fitted.resize(4);
    suture::fit(suture::cpu{}, suture::fit_moments{}, image(), suture::nonzero{}, std::span(fitted));
    counts.resize(suture::class_counts_bytes(classes()) / sizeof(std::uint64_t));
    suture::count_classes(suture::cpu{}, classes(), std::as_writable_bytes(std::span(counts)));
  }
};

patient made_up(const suture::extent3& extents, std::uint32_t salt) {
  patient p{.grid = {.extents = extents, .spacing = {3, .5, .5}, .origin = {-20, 4, 9}},
            .voxels = {},
            .labels = {},
            .fitted = {},
            .counts = {}};
  const auto n = static_cast<std::size_t>(p.grid.voxels());
  for (std::uint32_t i = 0; i < 4 * n; ++i) p.voxels.push_back(static_cast<float>((i * 37 + salt) % 801) - 200);
  for (std::size_t i = 0; i < n; ++i) p.labels.push_back(i % 50 > 40 ? 4 : i % 50 > 30 ? 2 : 0);
  p.look();
  return p;
}

using digests = std::map<std::uint64_t, std::uint64_t>;

TEST(Cohort, RanksAndResumptionChangeNoPatch) {
  std::vector<patient> cases;
  for (std::uint32_t i = 0; i < 3; ++i) cases.push_back(made_up({9 + i, 24, 22}, i));
  const std::uint64_t per_case = 4;
  std::vector<std::uint64_t> order(cases.size() * per_case);  // of the epoch
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i * 5 % order.size();
  const suture::extent3 size{8, 16, 16};
  const std::uint64_t seed = 42;
  const std::uint32_t epoch = 3;
  const std::size_t global_batch = 6;

  const auto step_of_rank = [&](std::size_t step, std::size_t rank, std::size_t ranks, digests& seen) {
    // The part of a rank in a step: every `ranks`th place of the global batch. id: a patch of a case, everywhere the
    // same.
    const float ratios[] = {1, 1, 1, 0, 1};  // there is no label 3
    std::vector<std::uint64_t> ids;
    std::vector<suture::view<const float>> mri;
    std::vector<suture::view<const std::uint8_t>> seg;
    std::vector<suture::moments> fitted;
    std::vector<suture::extent3> starts;
    for (std::size_t place = rank; place < global_batch; place += ranks) {
      const std::uint64_t id = order[step * global_batch + place];
      const patient& c = cases[id / per_case];
      suture::patch_choice chosen;
      suture::select_patches(suture::cpu{}, suture::class_balanced_patch{.size = size, .ratios = ratios}, c.classes(),
                             std::as_bytes(std::span(c.counts)), {.seed = seed, .epoch = epoch, .sample_ids = {&id, 1}},
                             {&chosen, 1});
      ids.push_back(id);
      mri.push_back(c.image());
      seg.push_back(c.segmentation());
      fitted.insert(fitted.end(), c.fitted.begin(), c.fitted.end());
      starts.push_back(chosen.start);
    }
    const auto train = suture::z_score{.fitted = fitted, .channels = 4, .nonzero = true} |
                       suture::random_affine{.rotate_deg = {15, 0, 0}, .probability = .5f} |
                       suture::crop_at{.starts = starts, .size = size} | suture::random_flip{} |
                       suture::gaussian_noise{.sigma = {0, .1f}};
    const auto plan = suture::plan(train, mri, {.seed = seed, .epoch = epoch, .sample_ids = ids});
    std::vector<float> images(ids.size() * 4 * 8 * 16 * 16);
    std::vector<std::uint8_t> targets(ids.size() * 3 * 8 * 16 * 16);
    const auto patches = suture::batch_views(images.data(), plan.output_grids(), 4);
    const auto regions = suture::batch_views(targets.data(), plan.output_grids(), 3);
    suture::run(suture::cpu{}, plan, suture::image(mri, patches),
                suture::labels(seg, regions, suture::brats_regions_1_2_4));
    for (std::size_t i = 0; i < ids.size(); ++i)
      seen[ids[i]] = suture::digest(patches[i]) ^ (suture::digest(regions[i]) * 31);
  };

  digests alone, split, resumed;
  for (std::size_t step = 0; step < 2; ++step) step_of_rank(step, 0, 1, alone);
  ASSERT_EQ(alone.size(), order.size());
  for (std::size_t step = 0; step < 2; ++step)
    for (std::size_t rank = 0; rank < 4; ++rank) step_of_rank(step, rank, 4, split);
  EXPECT_EQ(split, alone);
  for (std::size_t rank = 0; rank < 2; ++rank) step_of_rank(1, rank, 2, resumed);
  ASSERT_EQ(resumed.size(), global_batch);
  for (const auto& [id, digest] : resumed) EXPECT_EQ(digest, alone[id]) << id;
}

TEST(Cohort, NeighboringSlicesAreChannels) {
  const patient p = made_up({7, 12, 10}, 1);
  const auto mri = suture::contiguous(p.voxels.data(), p.grid);
  // Every slice with two neighbors on each side as five channels. The volume is padded once, then nothing is copied.
  const auto pad = suture::plan(
      suture::pad{.before = {2, 0, 0}, .after = {2, 0, 0}} | suture::sampling<suture::linear, suture::edge>{}, mri);
  std::vector<float> padded(static_cast<std::size_t>(pad.output_grid(0).voxels()));
  suture::run(suture::cpu{}, pad, suture::image(mri, suture::contiguous(padded.data(), pad.output_grid(0))));

  std::vector<suture::view<const float>> stacks;
  const std::int64_t rows = mri.grid.extents[1], columns = mri.grid.extents[2], plane = rows * columns;
  for (std::int64_t z = 0; z < mri.grid.extents[0]; ++z) {
    suture::grid slice = mri.grid;
    slice.extents[0] = 1;
    slice.origin = mri.grid.index_to_physical()({static_cast<double>(z), 0, 0});
    stacks.push_back({.data = padded.data() + z * plane,
                      .grid = slice,
                      .stride = {plane, columns, 1},
                      .channels = 5,
                      .channel_stride = plane});
  }
  const auto plan = suture::plan(suture::identity{}, stacks);
  std::vector<float> out(7 * 5 * 120);
  suture::run(suture::cpu{}, plan, suture::image(stacks, suture::batch_views(out.data(), plan.output_grids(), 5)));
  for (std::size_t z = 0; z < 7; ++z)
    for (std::size_t c = 0; c < 5; ++c) {
      const std::size_t from = z + c < 2 ? 0 : std::min<std::size_t>(z + c - 2, 6);
      for (std::size_t i = 0; i < 120; ++i) ASSERT_EQ(out[(z * 5 + c) * 120 + i], p.voxels[from * 120 + i]) << z << c;
    }
}

// The prediction here is the image: what comes back lies where it was.
TEST(Cohort, PredictionsComeBackToTheGridOfTheScan) {
  suture::grid g{.extents = {10, 40, 36}, .spacing = {3, .5, .5}, .origin = {-20, 4, 9}};
  g.direction = {{{.8, 0, .6}, {0, -1, 0}, {-.6, 0, .8}}};
  std::vector<float> coordinates(static_cast<std::size_t>(3 * g.voxels()));
  std::size_t at = 0;
  for (int k = 0; k < 3; ++k)
    for (std::int64_t z = 0; z < 10; ++z)
      for (std::int64_t y = 0; y < 40; ++y)
        for (std::int64_t x = 0; x < 36; ++x) coordinates[at++] = static_cast<float>(k == 0 ? z : k == 1 ? y : x);
  const auto mri = suture::contiguous<const float>(coordinates.data(), g, 3);
  const std::int64_t classes = 3;
  std::vector<float> probabilities;
  const auto predict = [&](const std::vector<float>& patches) {
    probabilities.insert(probabilities.end(), patches.begin(), patches.end());
  };

  // Windows of the prepared volume are cut out, predicted and reassembled.
  const suture::extent3 size{12, 16, 16};
  const auto preprocess = suture::orient{.to = "RAS"} | suture::resample{.spacing_mm = {1.5, 1, 1}} |
                          suture::pad_to{.size = size} | suture::sampling<suture::linear, suture::edge>{};
  const auto there = suture::plan(preprocess, mri);
  const suture::grid g1 = there.output_grid(0);
  std::vector<float> prepared(static_cast<std::size_t>(3 * g1.voxels()));
  suture::run(suture::cpu{}, there, suture::image(mri, suture::contiguous(prepared.data(), g1, 3)));

  const auto windows = suture::sliding_window_grid(g1.extents, size, .5);
  const auto starts = windows.all_starts();
  for (std::size_t first = 0; first < starts.size(); first += 4) {
    const std::size_t n = std::min<std::size_t>(4, starts.size() - first);
    const std::vector volume(n, suture::contiguous<const float>(prepared.data(), g1, 3));
    const auto cut = suture::plan(suture::crop_at{.starts = std::span(starts).subspan(first, n), .size = size}, volume);
    std::vector<float> patches(n * 3 * 12 * 16 * 16);
    suture::run(suture::cpu{}, cut, suture::image(volume, suture::batch_views(patches.data(), cut.output_grids(), 3)));
    predict(patches);  // appends to `probabilities`
  }
  std::vector<float> whole(static_cast<std::size_t>(classes * g1.voxels()));
  suture::reassemble(suture::cpu{}, windows, suture::gaussian_window(size),
                     suture::patch_tensor<float>{probabilities.data(), classes, 0, windows.count()},
                     suture::contiguous(whole.data(), g1, classes));

  const auto back = suture::plan(suture::inverse_of(there) | suture::sampling<suture::linear, suture::edge>{}, g1);
  std::vector<float> on_scan(
      static_cast<std::size_t>(classes * g.voxels()));  // back.output_grid(0) is that of the scan
  suture::run(suture::cpu{}, back,
              suture::image(suture::contiguous<const float>(whole.data(), g1, classes),
                            suture::contiguous(on_scan.data(), back.output_grid(0), classes)));
  const suture::point3 landmark = suture::to_source(there, 0, {5, 8, 6});  // found at (5, 8, 6) of the prepared volume

  EXPECT_EQ(back.output_grid(0).extents, g.extents);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(back.output_grid(0).origin[k], g.origin[k], 1e-9);
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t z = 1; z < 9; ++z)
      for (std::size_t y = 1; y < 39; ++y)
        for (std::size_t x = 1; x < 35; ++x) {
          const std::size_t i = ((k * 10 + z) * 40 + y) * 36 + x;
          ASSERT_NEAR(on_scan[i], coordinates[i], 1e-4) << k << ' ' << z << ' ' << y << ' ' << x;
        }
  const std::size_t read = static_cast<std::size_t>((5 * g1.extents[1] + 8) * g1.extents[2] + 6);
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR(landmark[k], prepared[static_cast<std::size_t>(k * g1.voxels()) + read], 1e-5) << k;
}

}  // namespace
