// SPDX-License-Identifier: Apache-2.0
// Test-time augmentation with sliding windows, which docs/operations.md points to, for either executor.
#pragma once

#include <suture/suture.hpp>

#include <vector>

namespace support {

// clang-format off
// What predict_windows works in, memory of the executor. V: the voxels of a window, C: the classes, n: the views of
// each window beside itself.
struct window_memory {
  float* seen;           // (n + 1) V: a window, then its views
  float* probabilities;  // n C V: of the views
  float* restored;       // (n + 1) C V: of the window, then of the views where the window lies
  float* ones;           // n V, all 1
  float* coverage;       // (n + 1) V, the first V of them 1: the window covers itself
  float* means;          // C V for each window
  float* covered;        // V for each window
};

// The probabilities of every voxel of a prepared scan. predict(images, count, out) makes C channels of each image.
template <class Executor, class Predict>
void predict_windows(const Executor& exec, const suture::view<const float>& scan, const suture::extent3& size,
                     std::int64_t classes, std::int64_t n, const window_memory& m, const Predict& predict,
                     const suture::view<float>& whole) {
  const auto windows = suture::sliding_window_grid(scan.grid.extents, size, .5);
  const std::int64_t V = size[0] * size[1] * size[2];
  for (std::int64_t w = 0; w < windows.count(); ++w) {
    // The window as it is, and n views of it, turned and mirrored.
    const std::vector<suture::extent3> starts(static_cast<std::size_t>(n), windows.start(w));
    const std::vector scans(starts.size(), scan);
    std::vector<std::uint64_t> ids;
    for (std::int64_t i = 0; i < n; ++i) ids.push_back(static_cast<std::uint64_t>(w * n + i));
    const auto as_it_is = suture::plan(suture::crop{.start = windows.start(w), .size = size}, scan);
    const auto out = suture::plan(suture::crop_at{.starts = starts, .size = size} |
                                      suture::random_affine{.rotate_deg = 10} | suture::random_flip{},
                                  scans, {.seed = 42, .sample_ids = ids});
    const std::vector<suture::grid> views = out.output_grids();
    suture::run(exec, as_it_is, suture::image(scan, suture::contiguous(m.seen, as_it_is.output_grid(0))));
    suture::run(exec, out, suture::image(scans, suture::batch_views(m.seen + V, views)));
    predict(m.seen, 1, m.restored);
    predict(m.seen + V, n, m.probabilities);

    // Each view back to where the window lies, beside how much of each voxel it covers.
    const auto back = suture::plan(suture::inverse_of(out) | suture::crop_at{.starts = starts, .size = size}, views);
    const std::vector<suture::grid> home = back.output_grids();
    suture::run(exec, back,
                suture::image(suture::batch_views<const float>(m.probabilities, views, classes),
                              suture::batch_views(m.restored + classes * V, home, classes)),
                suture::image(suture::batch_views<const float>(m.ones, views),
                              suture::batch_views(m.coverage + V, home)));
    suture::average(exec, suture::patch_tensor<float>{m.restored, classes, 0, n + 1},
                    suture::patch_tensor<float>{m.coverage, 1, 0, n + 1},
                    suture::contiguous(m.means + w * classes * V, home[0], classes), {},
                    suture::contiguous(m.covered + w * V, home[0]));
  }
  // A voxel counts in a window by the window's weight there, times by how many views it was seen.
  suture::reassemble(exec, windows, suture::gaussian_window(size),
                     suture::patch_tensor<float>{m.means, classes, 0, windows.count()},
                     suture::patch_tensor<float>{m.covered, 1, 0, windows.count()}, whole);
}
// clang-format on

}  // namespace support
