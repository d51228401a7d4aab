// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "backend.hpp"
#include "common/device.cuh"
#include "common/gpu.hpp"

namespace suture::examples {
namespace {

constexpr std::string_view here = "ct_patches";

template <class T>
class cuda_backend final : public backend {
public:
  cuda_backend(const recipe& r, const std::vector<volume<T>>& images, const std::vector<label_volume>& labels)
      : recipe_(r), image_memory_(images.size()), label_memory_(labels.size()) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), here);
    for (std::size_t i = 0; i < images.size(); ++i) {
      images_.push_back(contiguous<const T>(image_memory_[i].upload(images[i].voxels), images[i].grid));
      labels_.push_back(contiguous<const std::uint8_t>(label_memory_[i].upload(labels[i].voxels), labels[i].grid));
    }
    // A copy from pageable memory may return before the device has it.
    check_cuda(cudaDeviceSynchronize(), here);
  }
  ~cuda_backend() override { cudaStreamDestroy(stream_); }

  patches run(const request& which) override {
    std::vector<view<const T>> images;
    std::vector<view<const std::uint8_t>> labels;
    for (const std::size_t scan : which.scans) {
      images.push_back(images_[scan]);
      labels.push_back(labels_[scan]);
    }
    const auto plan = suture::plan(
        make_pipeline(recipe_), images,
        {.seed = which.seed, .epoch = which.epoch, .sample_ids = which.ids, .evaluation = which.evaluation});

    patches made;
    made.grids = plan.output_grids();
    made.regions = source_regions(plan);
    const auto voxels = static_cast<std::size_t>(recipe_.patch[0] * recipe_.patch[1] * recipe_.patch[2]);
    made.images.resize(plan.size() * voxels);
    made.labels.resize(plan.size() * voxels);
    half* const image_out = image_out_.reserve(made.images.size());
    std::uint8_t* const label_out = label_out_.reserve(made.labels.size());
    const auto image_patches = batch_views(image_out, made.grids);
    const auto label_patches = batch_views(label_out, made.grids);
    const auto image_pair = suture::image(images, image_patches);
    const auto label_pair = suture::labels(labels, label_patches);

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
  std::vector<device_buffer<T>> image_memory_;
  std::vector<device_buffer<std::uint8_t>> label_memory_;
  std::vector<view<const T>> images_;
  std::vector<view<const std::uint8_t>> labels_;
  device_buffer<half> image_out_;
  device_buffer<std::uint8_t> label_out_;
  cuda_workspace workspace_;
};

}  // namespace

template <class T>
std::unique_ptr<backend> make_cuda_backend(const recipe& r, const std::vector<volume<T>>& images,
                                           const std::vector<label_volume>& labels) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  return std::make_unique<cuda_backend<T>>(r, images, labels);
}

template std::unique_ptr<backend> make_cuda_backend(const recipe&, const std::vector<volume<std::int16_t>>&,
                                                    const std::vector<label_volume>&);
template std::unique_ptr<backend> make_cuda_backend(const recipe&, const std::vector<volume<float>>&,
                                                    const std::vector<label_volume>&);

}  // namespace suture::examples
