// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <new>

#include "backend.hpp"
#include "common/program.hpp"

namespace suture::examples {
namespace {

struct aligned_delete {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{256}); }
};

class cpu_backend final : public backend {
public:
  cpu_backend(const recipe& r, int threads) : recipe_(r), threads_(threads) {}

  stain_basis fit(const std::vector<rgb_image>& tiles) override {
    std::vector<view<const std::uint8_t>> views;
    for (const rgb_image& tile : tiles) views.push_back(tile.view_of());
    stain_basis found;
    suture::fit(cpu{threads_}, fit_macenko{.together = true}, views, everything{}, std::span(&found, 1));
    return found;
  }

  batch run(const std::vector<read_tile>& tiles, const std::vector<stain_basis>& stains,
            const draw_options& draw) override {
    std::vector<view<const std::uint8_t>> images, labels;
    std::vector<std::uint64_t> ids;
    for (const read_tile& t : tiles) {
      images.push_back(t.pixels.view_of(t.spacing_mm));
      labels.push_back(contiguous(t.labels.data(), images.back().grid));
      ids.push_back(t.id);
    }
    const auto plan =
        suture::plan(make_pipeline(recipe_, stains.data()), images,
                     {.seed = draw.seed, .epoch = draw.epoch, .sample_ids = ids, .evaluation = draw.evaluation});
    batch made;
    const std::size_t pixels = tiles.size() * static_cast<std::size_t>(recipe_.size * recipe_.size);
    made.images.resize(3 * pixels);
    made.labels.resize(pixels);
    const auto grids = plan.output_grids();
    const auto image_tiles = batch_views(made.images.data(), std::span<const grid>(grids), 3);
    const auto label_tiles = batch_views(made.labels.data(), std::span<const grid>(grids));
    const auto image_pair = suture::image(images, image_tiles);
    const auto label_pair = suture::labels(labels, label_tiles);
    const std::size_t bytes = workspace_bytes(plan, image_pair, label_pair);
    if (bytes > spent_.workspace_bytes) {
      workspace_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256})));
      spent_.workspace_bytes = bytes;
    }
    const auto start = std::chrono::steady_clock::now();
    suture::run(cpu{threads_, {workspace_.get(), spent_.workspace_bytes}}, plan, image_pair, label_pair);
    spent_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent_.stages = plan.stages();
    return made;
  }

  std::string name() const override { return "cpu"; }

  std::string device() const override { return cpu_description(threads_); }

private:
  recipe recipe_;
  int threads_;
  std::unique_ptr<std::byte, aligned_delete> workspace_;
};

}  // namespace

std::unique_ptr<backend> make_cpu_backend(const recipe& r, int threads) {
  return std::make_unique<cpu_backend>(r, threads);
}

#if !defined(SUTURE_EXAMPLE_CUDA)
std::unique_ptr<backend> make_cuda_backend(const recipe&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
