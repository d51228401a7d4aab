// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "backend.hpp"
#include "common/device.cuh"

namespace suture::examples {
namespace {

constexpr std::string_view here = "wsi_tiles";

class cuda_backend final : public backend {
public:
  explicit cuda_backend(const recipe& r) : recipe_(r) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), here);
  }
  ~cuda_backend() override { cudaStreamDestroy(stream_); }

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
    const fit_macenko how{.together = true};
    workspace_.reserve(workspace_bytes(how, views));
    stain_basis* const found = stains_.reserve(1);
    suture::fit(cuda{stream_, workspace_}, how, views, everything{}, std::span(found, 1));
    check_cuda(cudaStreamSynchronize(stream_), here);
    stain_basis result;
    check_cuda(cudaMemcpy(&result, found, sizeof result, cudaMemcpyDeviceToHost), here);
    return result;
  }

  batch run(const std::vector<read_tile>& tiles, const std::vector<stain_basis>& stains,
            const draw_options& draw) override {
    std::vector<std::uint8_t> pixels, label_pixels;
    std::vector<std::uint64_t> ids;
    for (const read_tile& t : tiles) {
      pixels.insert(pixels.end(), t.pixels.pixels.begin(), t.pixels.pixels.end());
      label_pixels.insert(label_pixels.end(), t.labels.begin(), t.labels.end());
      ids.push_back(t.id);
    }
    const std::uint8_t* image_at = pixels_in_.upload(pixels);
    const std::uint8_t* label_at = labels_in_.upload(label_pixels);
    const stain_basis* const fitted = stains_.upload(stains);
    check_cuda(cudaDeviceSynchronize(), here);
    std::vector<view<const std::uint8_t>> images, labels;
    for (const read_tile& t : tiles) {
      images.push_back(t.pixels.view_of(t.spacing_mm));
      images.back().data = image_at;
      labels.push_back(contiguous(label_at, images.back().grid));
      image_at += t.pixels.pixels.size();
      label_at += t.labels.size();
    }
    const auto plan =
        suture::plan(make_pipeline(recipe_, fitted), images,
                     {.seed = draw.seed, .epoch = draw.epoch, .sample_ids = ids, .evaluation = draw.evaluation});
    batch made;
    const std::size_t count = tiles.size() * static_cast<std::size_t>(recipe_.size * recipe_.size);
    made.images.resize(3 * count);
    made.labels.resize(count);
    half* const image_out = image_out_.reserve(made.images.size());
    std::uint8_t* const label_out = label_out_.reserve(made.labels.size());
    const auto grids = plan.output_grids();
    const auto image_tiles = batch_views(image_out, std::span<const grid>(grids), 3);
    const auto label_tiles = batch_views(label_out, std::span<const grid>(grids));
    const auto image_pair = suture::image(images, image_tiles);
    const auto label_pair = suture::labels(labels, label_tiles);

    spent_.workspace_bytes = std::max(spent_.workspace_bytes, workspace_bytes(plan, image_pair, label_pair));
    workspace_.reserve(spent_.workspace_bytes);
    const auto queue = [&] { suture::run(cuda{stream_, workspace_}, plan, image_pair, label_pair); };
    if (spent_.launches == 0) {
      spent_.launches = count_kernels(stream_, queue);
      queue();  // the first launch loads the kernels, which is no part of the speed
      check_cuda(cudaStreamSynchronize(stream_), here);
    }
    const auto start = std::chrono::steady_clock::now();
    queue();
    check_cuda(cudaStreamSynchronize(stream_), here);
    spent_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent_.stages = plan.stages();
    check_cuda(cudaMemcpy(made.images.data(), image_out, made.images.size() * sizeof(half), cudaMemcpyDeviceToHost),
               here);
    check_cuda(cudaMemcpy(made.labels.data(), label_out, made.labels.size(), cudaMemcpyDeviceToHost), here);
    return made;
  }

  std::string name() const override { return "cuda"; }

  std::string device() const override { return gpu_description(); }

private:
  recipe recipe_;
  cudaStream_t stream_ = nullptr;
  device_buffer<std::uint8_t> pixels_in_, labels_in_, label_out_;
  device_buffer<stain_basis> stains_;
  device_buffer<half> image_out_;
  cuda_workspace workspace_;
};

}  // namespace

std::unique_ptr<backend> make_cuda_backend(const recipe& r) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  return std::make_unique<cuda_backend>(r);
}

}  // namespace suture::examples
