// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "common/device.cuh"
#include "make_batch.hpp"

namespace suture::examples {
namespace {

constexpr std::string_view here = "wsi_tiles";

class cuda_backend final : public backend {
public:
  explicit cuda_backend(const recipe& r) : recipe_(r) {}

  stain_basis fit(const std::vector<rgb_image>& tiles) override {
    std::vector<std::uint8_t> pixels;
    for (const rgb_image& t : tiles) pixels.insert(pixels.end(), t.pixels.begin(), t.pixels.end());
    const std::uint8_t* at = pixels_in_.upload(pixels);
    check_cuda(cudaDeviceSynchronize(), here);  // a copy from pageable memory may return before the device has it
    std::vector<view<const std::uint8_t>> views;
    for (const rgb_image& t : tiles) {
      views.push_back(t.view_of());
      views.back().data = at;
      at += t.pixels.size();
    }
    const fit_macenko& how = slide_fit;
    stain_basis* const found = stains_.reserve(1);
    suture::fit(runs_.executor(workspace_bytes(how, views)), how, views, everything{}, std::span(found, 1));
    runs_.wait();
    std::vector<stain_basis> result(1);
    stains_.download(result);
    return result[0];
  }

  batch run(const std::vector<read_tile>& tiles, const std::vector<stain_basis>& stains,
            const draw_options& draw) override {
    std::vector<std::uint8_t> pixels, labels;
    for (const read_tile& t : tiles) {
      pixels.insert(pixels.end(), t.pixels.pixels.begin(), t.pixels.pixels.end());
      labels.insert(labels.end(), t.labels.begin(), t.labels.end());
    }
    const std::uint8_t* pixels_at = pixels_in_.upload(pixels);
    const std::uint8_t* labels_at = labels_in_.upload(labels);
    const std::span<const stain_basis> fitted(stains_.upload(stains), stains.size());
    check_cuda(cudaDeviceSynchronize(), here);
    return make_batch(
        recipe_, tiles, fitted, draw,
        [&](const read_tile& t) { return std::exchange(pixels_at, pixels_at + t.pixels.pixels.size()); },
        [&](const read_tile& t) { return std::exchange(labels_at, labels_at + t.labels.size()); },
        [&](const auto& plan, const auto& images_in, const auto& labels_in, const auto& grids, batch& made) {
          const auto image_tiles = batch_views(image_out_.reserve(made.images.size()), grids, 3);
          const auto label_tiles = batch_views(label_out_.reserve(made.labels.size()), grids);
          runs_.run(spent_, plan, suture::image(images_in, image_tiles), suture::labels(labels_in, label_tiles));
          image_out_.download(made.images);
          label_out_.download(made.labels);
        });
  }

  std::string name() const override { return "cuda"; }

  std::string device() const override { return gpu_description(); }

private:
  recipe recipe_;
  device_buffer<std::uint8_t> pixels_in_, labels_in_, label_out_;
  device_buffer<stain_basis> stains_;
  device_buffer<half> image_out_;
  cuda_runs runs_;
};

}  // namespace

std::unique_ptr<backend> make_cuda_backend(const recipe& r) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  return std::make_unique<cuda_backend>(r);
}

}  // namespace suture::examples
