// SPDX-License-Identifier: Apache-2.0
#include "common/device.cuh"
#include "make_batch.hpp"

namespace suture::examples {
namespace {

template <class T>
class cuda_backend final : public backend {
public:
  cuda_backend(const recipe& r, const std::vector<volume<T>>& images, const std::vector<label_volume>& labels)
      : recipe_(r) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      image_memory_.emplace_back(contiguous(images[i].voxels.data(), images[i].grid));
      label_memory_.emplace_back(contiguous(labels[i].voxels.data(), labels[i].grid));
      images_.push_back(image_memory_.back().view());
      labels_.push_back(label_memory_.back().view());
    }
    // A copy from pageable memory may return before the device has it.
    check_cuda(cudaDeviceSynchronize(), "ct_patches");
  }

  patches run(const request& which) override {
    return make_batch(recipe_, which, images_, labels_,
                      [&](const auto& plan, const auto& from, const auto& labels_from, patches& made) {
                        const auto images = batch_views(image_out_.reserve(made.images.size()), made.grids);
                        const auto labels = batch_views(label_out_.reserve(made.labels.size()), made.grids);
                        runs_.run(spent_, plan, suture::image(from, images), suture::labels(labels_from, labels));
                        image_out_.download(made.images);
                        label_out_.download(made.labels);
                      });
  }

  std::string name() const override { return "cuda"; }

  std::string device() const override { return gpu_description(); }

private:
  recipe recipe_;
  std::vector<resident_volume<T>> image_memory_;
  std::vector<resident_volume<std::uint8_t>> label_memory_;
  std::vector<view<const T>> images_;
  std::vector<view<const std::uint8_t>> labels_;
  device_buffer<half> image_out_;
  device_buffer<std::uint8_t> label_out_;
  cuda_runs runs_;
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
