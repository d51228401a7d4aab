// SPDX-License-Identifier: Apache-2.0
// B-spline coefficients of the images of a batch on CUDA. Each image takes four kernels: one fills the volume, three
// filter it along an axis each.
#pragma once

#include "../../sample/prefilter.hpp"
#include "../common/coefficients.hpp"
#include "../common/records.hpp"
#include "check_cuda.cuh"

namespace suture::detail {

// Fills the coefficient volume of an image before filtering: the padded source, after the operations before the
// geometry. A thread computes whole columns along z; any number of blocks is correct.
template <class Evaluator, std::size_t B>
__global__ void __launch_bounds__(256)
    coefficient_fill_kernel(const __grid_constant__ Evaluator e, std::int32_t sample_index) {
  using P = typename Evaluator::pipeline_type;
  constexpr std::int32_t pad = P::padding;
  const auto& r = e.records[sample_index];
  if (r.mark != e.mark) return;
  const source_tensor& c = r.in[B];
  const std::uint32_t across = (static_cast<std::uint32_t>(c.extents[2]) + 31) / 32;
  const std::uint32_t tiles = across * ((static_cast<std::uint32_t>(c.extents[1]) + 7) / 8);
  for (std::uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const auto x = static_cast<std::int32_t>(tile % across * 32 + threadIdx.x);
    const auto y = static_cast<std::int32_t>(tile / across * 8 + threadIdx.y);
    if (x >= c.extents[2] || y >= c.extents[1]) continue;
    auto* p = static_cast<float*>(const_cast<void*>(c.data)) + y * c.stride[1] + x;
    for (std::int32_t z = 0; z < c.extents[0]; ++z, p += c.stride[0])
      each_padded_source_value<P, typename Evaluator::template binding_type<B>>(
          r.sample, r.raw[B], e.rule.border, sample_index, z - pad, y - pad, x - pad,
          [&](std::int32_t channel, float v) { p[channel * c.channel_stride] = v; });
  }
}

// Applies the recursive filter along one axis; one thread per line.
template <class Evaluator, std::size_t B>
__global__ void __launch_bounds__(128)
    coefficient_filter_kernel(const __grid_constant__ Evaluator e, std::int32_t sample_index, int axis) {
  using Border = typename Evaluator::pipeline_type::border_type;
  if (e.records[sample_index].mark != e.mark) return;
  const source_tensor& c = e.records[sample_index].in[B];
  const int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;  // the other two axes
  const std::int64_t lines = static_cast<std::int64_t>(c.extents[u]) * c.extents[v] * c.channels;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; line < lines;
       line += threads) {
    const std::int64_t iv = line % c.extents[v], rest = line / c.extents[v];
    const std::int64_t iu = rest % c.extents[u], channel = rest / c.extents[u];
    auto* p = static_cast<float*>(const_cast<void*>(c.data)) + channel * c.channel_stride + iu * c.stride[u] +
              iv * c.stride[v];
    prefilter_line<Border>(p, c.stride[axis], c.extents[axis]);
  }
}

// Queues the kernels for the B-spline coefficients of all images, if the interpolation needs them.
template <class Exec, class Evaluator, class Plan, class... Bindings>
void prefilter(const Exec& exec, const Evaluator& e, const Plan& plan, const Bindings&... bindings) {
  const auto one = [&]<std::size_t B, class Binding>(const Binding& bound) {
    if constexpr (Evaluator::pipeline_type::prefiltered && !Binding::is_label) {
      for (std::size_t i = 0; i < plan.size(); ++i) {
        const source_tensor raw = raw_source(bound, i);
        const auto sample_index = static_cast<std::int32_t>(i);
        std::int64_t n[3];
        for (int k = 0; k < 3; ++k) n[k] = raw.extents[k] + 2 * Evaluator::pipeline_type::padding;
        const std::int64_t tiles = (n[2] + 31) / 32 * ((n[1] + 7) / 8);
        coefficient_fill_kernel<Evaluator, B>
            <<<static_cast<unsigned>(tiles), dim3(32, 8), 0, exec.stream>>>(e, sample_index);
        check_cuda(cudaGetLastError(), "prefilter", exec.at);
        for (int axis = 0; axis < 3; ++axis) {
          const std::int64_t lines = n[0] * n[1] * n[2] / n[axis] * raw.channels;
          coefficient_filter_kernel<Evaluator, B>
              <<<static_cast<unsigned>((lines + 127) / 128), 128, 0, exec.stream>>>(e, sample_index, axis);
          check_cuda(cudaGetLastError(), "prefilter", exec.at);
        }
      }
    }
  };
  each_binding(one, bindings...);
}

}  // namespace suture::detail
