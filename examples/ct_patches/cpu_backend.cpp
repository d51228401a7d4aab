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

template <class T>
class cpu_backend final : public backend {
public:
  cpu_backend(const recipe& r, const std::vector<volume<T>>& images, const std::vector<label_volume>& labels,
              int threads)
      : recipe_(r), threads_(threads) {
    for (const auto& v : images) images_.push_back(contiguous(v.voxels.data(), v.grid));
    for (const auto& v : labels) labels_.push_back(contiguous(v.voxels.data(), v.grid));
  }

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
    const auto image_patches = batch_views(made.images.data(), made.grids);
    const auto label_patches = batch_views(made.labels.data(), made.grids);
    const auto image_pair = suture::image(images, image_patches);
    const auto label_pair = suture::labels(labels, label_patches);

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
  std::vector<view<const T>> images_;
  std::vector<view<const std::uint8_t>> labels_;
  std::unique_ptr<std::byte, aligned_delete> workspace_;
};

}  // namespace

template <class T>
std::unique_ptr<backend> make_cpu_backend(const recipe& r, const std::vector<volume<T>>& images,
                                          const std::vector<label_volume>& labels, int threads) {
  return std::make_unique<cpu_backend<T>>(r, images, labels, threads);
}

template std::unique_ptr<backend> make_cpu_backend(const recipe&, const std::vector<volume<std::int16_t>>&,
                                                   const std::vector<label_volume>&, int);
template std::unique_ptr<backend> make_cpu_backend(const recipe&, const std::vector<volume<float>>&,
                                                   const std::vector<label_volume>&, int);

#if !defined(SUTURE_EXAMPLE_CUDA)
template <class T>
std::unique_ptr<backend> make_cuda_backend(const recipe&, const std::vector<volume<T>>&,
                                           const std::vector<label_volume>&) {
  fail(site{"backend"}, why_no_cuda());
}
template std::unique_ptr<backend> make_cuda_backend(const recipe&, const std::vector<volume<std::int16_t>>&,
                                                    const std::vector<label_volume>&);
template std::unique_ptr<backend> make_cuda_backend(const recipe&, const std::vector<volume<float>>&,
                                                    const std::vector<label_volume>&);
#endif

}  // namespace suture::examples
