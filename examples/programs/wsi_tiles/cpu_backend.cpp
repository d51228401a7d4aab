// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "make_batch.hpp"

namespace suture::examples {
namespace {

class cpu_backend final : public backend {
public:
  cpu_backend(const recipe& r, int threads) : recipe_(r), threads_(threads), runs_(threads) {}

  stain_basis fit(const std::vector<rgb_image>& tiles) override {
    std::vector<view<const std::uint8_t>> views;
    for (const rgb_image& tile : tiles) views.push_back(tile.view_of());
    stain_basis found;
    suture::fit(cpu{threads_}, slide_fit, views, everything{}, std::span(&found, 1));
    return found;
  }

  batch run(const std::vector<read_tile>& tiles, const std::vector<stain_basis>& stains,
            const draw_options& draw) override {
    return make_batch(
        recipe_, tiles, stains, draw, [](const read_tile& t) { return t.pixels.pixels.data(); },
        [](const read_tile& t) { return t.labels.data(); },
        [&](const auto& plan, const auto& images, const auto& labels, const auto& grids, batch& made) {
          const auto image_tiles = batch_views(made.images.data(), grids, 3);
          const auto label_tiles = batch_views(made.labels.data(), grids);
          runs_.run(spent_, plan, suture::image(images, image_tiles), suture::labels(labels, label_tiles));
        });
  }

  std::string name() const override { return "cpu"; }

  std::string device() const override { return cpu_description(threads_); }

private:
  recipe recipe_;
  int threads_;
  cpu_runs runs_;
};

}  // namespace

std::unique_ptr<backend> make_cpu_backend(const recipe& r, int threads) {
  return std::make_unique<cpu_backend>(r, threads);
}

#if !defined(SUTURE_EXAMPLE_CUDA)
std::unique_ptr<backend> make_cuda_backend(const recipe&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
