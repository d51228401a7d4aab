// SPDX-License-Identifier: Apache-2.0
// A whole training recipe against the reference.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/training_recipe.hpp"

namespace {

using support::expectation;
using support::make_batch;
using support::make_sample;
using support::recipe;
using support::sample_data;
using support::training;

TEST(PipelineReference, DrawsAndComputesWhatTheDefinitionsSay) {
  const recipe r;
  const std::vector<sample_data> batch = make_batch();
  std::vector<suture::view<const std::int16_t>> images;
  std::vector<suture::view<const std::uint8_t>> labels;
  std::vector<std::uint64_t> ids;
  for (const sample_data& s : batch) {
    images.push_back(suture::contiguous(s.image.data(), s.grid(), 2));
    labels.push_back(suture::contiguous(s.labels.data(), s.grid()));
    ids.push_back(s.id);
  }
  const auto plan = suture::plan(training(r), images, {.seed = r.seed, .epoch = r.epoch, .sample_ids = ids});
  const auto voxels = static_cast<std::size_t>(r.patch[0] * r.patch[1] * r.patch[2]);
  std::vector<float> image_out(2 * voxels * batch.size());
  std::vector<std::uint8_t> label_out(voxels * batch.size());
  const std::vector<suture::grid> grids = plan.output_grids();
  const auto image_views = suture::batch_views(image_out.data(), grids, 2);
  const auto label_views = suture::batch_views(label_out.data(), grids);
  suture::run(suture::cpu{}, plan, suture::image(images, image_views), suture::labels(labels, label_views));

  int moved = 0;
  int bent = 0;
  int noisy = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    SCOPED_TRACE("sample " + std::to_string(i));
    const expectation e(r, batch[i]);
    moved += e.moved ? 1 : 0;
    bent += e.bent ? 1 : 0;
    noisy += e.sigma > 0 ? 1 : 0;
    // Output range 1: 1e-5 for the interpolation, steepened by at most 1.5 by the gamma curve; 2e-5 for that curve.
    for (int channel = 0; channel < 2; ++channel) {
      const auto first =
          image_out.begin() + static_cast<std::ptrdiff_t>((2 * i + static_cast<std::size_t>(channel)) * voxels);
      const std::vector<float> y(first, first + static_cast<std::ptrdiff_t>(voxels));
      support::expect_close(y, e.image(channel), 3.5e-5);
    }
    const auto first = label_out.begin() + static_cast<std::ptrdiff_t>(i * voxels);
    support::expect_close(std::vector<std::uint8_t>(first, first + static_cast<std::ptrdiff_t>(voxels)),
                          e.nearest_labels(), 0, e.away_from_ties());
  }
  // The batch has samples with and without each of them.
  for (const int count : {moved, bent, noisy}) {
    EXPECT_GT(count, 0);
    EXPECT_LT(count, static_cast<int>(batch.size()));
  }
}

TEST(PipelineReference, EvaluatesWithoutChance) {
  const recipe r;
  const sample_data s = make_sample({16, 24, 30}, {2.5, 1.1, 0.9}, 42);
  const std::vector<suture::grid> batch{s.grid()};
  const auto plan = suture::plan(training(r), batch, {.seed = r.seed, .evaluation = true});
  const auto voxels = static_cast<std::size_t>(r.patch[0] * r.patch[1] * r.patch[2]);
  std::vector<float> out(2 * voxels);
  const auto in_view = suture::contiguous(s.image.data(), s.grid(), 2);
  const auto out_view = suture::contiguous(out.data(), plan.output_grid(0), 2);
  suture::run(suture::cpu{}, plan, suture::image(in_view, out_view));

  expectation e(r, s);
  e.moved = e.bent = false;
  e.exponent = 1;
  e.sigma = 0;
  for (std::size_t k = 0; k < 3; ++k) e.start[k] = e.resampled_size[k] / 2 - r.patch[k] / 2;
  support::expect_close(std::vector<float>(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(voxels)), e.image(0),
                        1e-5);
}

}  // namespace
