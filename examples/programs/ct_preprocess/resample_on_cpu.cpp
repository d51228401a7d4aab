// SPDX-License-Identifier: Apache-2.0
#include "common/gpu.hpp"
#include "resample_with.hpp"

namespace suture::examples {
namespace {

struct cpu_machine {
  cpu exec;

  template <class T>
  const T* upload(const std::vector<T>& values) const {
    return values.data();
  }
  template <class T>
  T* result(std::vector<T>& values) const {
    return values.data();
  }
  template <class Plan, class... Pairs>
  void run(const Plan& plan, const Pairs&... pairs) const {
    suture::run(exec, plan, pairs...);
  }
  void download() const {}
};

}  // namespace

template <class T>
resampled resample_on_cpu(const view<const T>& image, const std::optional<view<const std::uint8_t>>& labels,
                          const resampling& how, int threads) {
  const cpu_machine machine{{.threads = threads}};
  return resample_with(machine, machine.exec, image, labels, how);
}

template resampled resample_on_cpu(const view<const std::int16_t>&, const std::optional<view<const std::uint8_t>>&,
                                   const resampling&, int);
template resampled resample_on_cpu(const view<const float>&, const std::optional<view<const std::uint8_t>>&,
                                   const resampling&, int);

#if !defined(SUTURE_EXAMPLE_CUDA)
template <class T>
resampled resample_on_cuda(const view<const T>&, const std::optional<view<const std::uint8_t>>&, const resampling&,
                           int) {
  fail(site{"backend"}, why_no_cuda());
}
template resampled resample_on_cuda(const view<const std::int16_t>&, const std::optional<view<const std::uint8_t>>&,
                                    const resampling&, int);
template resampled resample_on_cuda(const view<const float>&, const std::optional<view<const std::uint8_t>>&,
                                    const resampling&, int);
#endif

}  // namespace suture::examples
