// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "make_batch.hpp"

namespace suture::examples {
namespace {

template <class T>
class cpu_backend final : public backend {
public:
  cpu_backend(const recipe& r, const std::vector<volume<T>>& images, const std::vector<label_volume>& labels,
              int threads)
      : recipe_(r), threads_(threads), runs_(threads) {
    for (const auto& v : images) images_.push_back(contiguous(v.voxels.data(), v.grid));
    for (const auto& v : labels) labels_.push_back(contiguous(v.voxels.data(), v.grid));
  }

  patches run(const request& which) override {
    return make_batch(recipe_, which, images_, labels_,
                      [&](const auto& plan, const auto& from, const auto& labels_from, patches& made) {
                        const auto images = batch_views(made.images.data(), made.grids);
                        const auto labels = batch_views(made.labels.data(), made.grids);
                        runs_.run(spent_, plan, suture::image(from, images), suture::labels(labels_from, labels));
                      });
  }

  std::string name() const override { return "cpu"; }

  std::string device() const override { return cpu_description(threads_); }

private:
  recipe recipe_;
  int threads_;
  std::vector<view<const T>> images_;
  std::vector<view<const std::uint8_t>> labels_;
  cpu_runs runs_;
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
