// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <functional>

#include "common/device.cuh"
#include "resample_with.hpp"

namespace suture::examples {
namespace {

constexpr std::string_view here = "ct_preprocess";

class cuda_machine {
public:
  template <class T>
  const T* upload(const std::vector<T>& values) {
    T* const to = reserve<T>(values.size());
    check_cuda(cudaMemcpy(to, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), here);
    return to;
  }
  template <class T>
  T* result(std::vector<T>& values) {
    T* const from = reserve<T>(values.size());
    downloads_.push_back([from, &values] {
      check_cuda(cudaMemcpy(values.data(), from, values.size() * sizeof(T), cudaMemcpyDeviceToHost), here);
    });
    return from;
  }
  template <class Plan, class... Pairs>
  void run(const Plan& plan, const Pairs&... pairs) {
    check_cuda(cudaDeviceSynchronize(), here);  // a copy from pageable memory may return before the device has it
    const cuda_workspace workspace(workspace_bytes(plan, pairs...));
    suture::run(cuda{stream_, workspace}, plan, pairs...);
    stream_.wait();
  }
  void download() {
    for (const auto& copy : downloads_) copy();
  }

private:
  template <class T>
  T* reserve(std::size_t count) {
    return reinterpret_cast<T*>(memory_.emplace_back(count * sizeof(T)).span().data());
  }

  owned_stream stream_;
  std::deque<cuda_workspace> memory_;
  std::vector<std::function<void()>> downloads_;
};

}  // namespace

template <class T>
resampled resample_on_cuda(const view<const T>& image, const std::optional<view<const std::uint8_t>>& labels,
                           const resampling& how, int threads) {
  cuda_machine machine;
  return resample_with(machine, cpu{.threads = threads}, image, labels, how);
}

template resampled resample_on_cuda(const view<const std::int16_t>&, const std::optional<view<const std::uint8_t>>&,
                                    const resampling&, int);
template resampled resample_on_cuda(const view<const float>&, const std::optional<view<const std::uint8_t>>&,
                                    const resampling&, int);

}  // namespace suture::examples
