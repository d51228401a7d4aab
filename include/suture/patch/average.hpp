// SPDX-License-Identifier: Apache-2.0
// The weighted mean of several predictions of one volume, the last step of test-time augmentation. A prediction counts
// only where it covers the volume.
#pragma once

#include <algorithm>
#include <vector>

#include "reassemble.hpp"

namespace suture {

// Rule for voxels that are hardly covered: where the weights add up to less than `least`, the mean is `outside`.
struct covered_mean {
  float least = 1e-3f;
  float outside = 0;
};

namespace detail {

SUTURE_FN float mean_of(float sum, float coverage, const covered_mean& rule) {
  return coverage >= rule.least ? math::detail::divide(sum, coverage) : rule.outside;
}

// Returns the weight of a mean, with which it enters another mean (reassemble).
SUTURE_FN float weight_of_mean(float coverage, const covered_mean& rule) {
  return coverage >= rule.least ? coverage : 0.0f;
}

template <class T, class Out>
void check_average(const patch_tensor<T>& restored, const patch_tensor<float>& coverage, const view<Out>& out,
                   const covered_mean& rule, const view<float>& covered) {
  static_assert(is_image_storage_v<T> && is_image_storage_v<Out> && !std::is_const_v<Out>,
                "suture: unsupported element type");
  const site where{"average"};
  check_writable(out, where);
  const extent3& n = out.grid.extents;
  require(std::isfinite(rule.least) && rule.least > 0, where, "least coverage ", rule.least, " must be positive");
  require(std::isfinite(rule.outside), where, "outside ", rule.outside, " must be finite");
  require(restored.count > 0 && restored.count <= 65535, where, restored.count, " volumes are not in 1 .. 65535");
  require(coverage.count == restored.count && coverage.channels == 1, where, coverage.count, " coverages of ",
          coverage.channels, " channels for ", restored.count, " volumes; one of one channel for each is needed");
  require(restored.first == 0 && coverage.first == 0, where, "volumes begin at ", restored.first, ", coverages at ",
          coverage.first, "; all are needed");
  require(out.channels == restored.channels, where, "output has ", out.channels, " channels, the volumes ",
          restored.channels);
  const byte_range to = bytes(out);
  byte_range beside = to;
  if (covered.data != nullptr) {
    check_writable(covered, where, "covered: ");
    require(covered.channels == 1 && covered.grid.extents == n, where, "covered: extents ", covered.grid.extents,
            " of ", covered.channels, " channels, the mean has ", n, "; one channel is needed");
    beside = bytes(covered);
    require(beside.last <= to.first || beside.first >= to.last, where, "covered overlaps the output in memory");
  }
  check_tensor(restored, n, {to, beside}, where, "volumes");
  check_tensor(coverage, n, {to, beside}, where, "coverage");
}

// Calls visit(pointer, where, role) for the inputs and outputs of a mean.
template <class Visit, class T, class Out>
void each_average_pointer(const Visit& visit, const patch_tensor<T>& restored, const patch_tensor<float>& coverage,
                          const view<Out>& out, const view<float>& covered) {
  visit(restored.data, {"average"}, "patches: ");
  visit(coverage.data, {"average"}, "coverage: ");
  visit(out.data, {"average"}, "output: ");
  visit(covered.data, {"average"}, "covered: ");
}

}  // namespace detail

// average: out(c, v) = sum r_i(c, v) / sum w_i(v) over the volumes i. Sums are computed in float32 in the order of the
// volumes, so every executor gives the same bits. r_i is a prediction that a plan with inverse_of has mapped back to
// the volume, with border value 0; w_i is a volume of ones mapped back likewise. If predictions were multiplied by
// weights, w_i are those weights mapped back. Where the mean is not `outside`, a NaN in a volume makes it NaN.
//   restored   the r_i, dense (volume, channel, z, y, x): float32, float16, bfloat16 or an integer type
//   coverage   the w_i, dense (volume, z, y, x)
//   covered    optional output: the weight of the mean, sum w_i(v), or 0 where the mean is `outside`. reassemble needs
//              it if the means are windows of a larger volume
// Errors: counts or channels that do not fit, a least coverage that is not positive, overlapping memory.
template <class T, class Out>
void average(const cpu& exec, const patch_tensor<T>& restored, const patch_tensor<float>& coverage,
             const view<Out>& out, const covered_mean& rule, const view<float>& covered = {}) {
  detail::check_average(restored, coverage, out, rule, covered);
  detail::each_average_pointer(detail::memory_check(exec), restored, coverage, out, covered);
  const extent3& n = out.grid.extents;
  const std::int64_t voxels = n[0] * n[1] * n[2];
  detail::parallel_for(exec.threads, n[0] * n[1], [&](std::int64_t row) {
    std::vector<float> sum(static_cast<std::size_t>(n[2])), weight(sum.size(), 0.0f);
    for (std::int64_t i = 0; i < coverage.count; ++i) {
      const float* w = coverage.data + i * voxels + row * n[2];
      for (std::size_t x = 0; x < weight.size(); ++x) weight[x] += w[x];
    }
    if (covered.data != nullptr) {
      float* to = covered.data + row / n[1] * covered.stride[0] + row % n[1] * covered.stride[1];
      for (std::size_t x = 0; x < weight.size(); ++x)
        to[static_cast<std::int64_t>(x) * covered.stride[2]] = detail::weight_of_mean(weight[x], rule);
    }
    for (std::int64_t c = 0; c < restored.channels; ++c) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (std::int64_t i = 0; i < restored.count; ++i) {
        const T* r = restored.data + (i * restored.channels + c) * voxels + row * n[2];
        for (std::size_t x = 0; x < sum.size(); ++x) sum[x] += storage<T>::load(r[x]);
      }
      Out* to = out.data + c * out.channel_stride + row / n[1] * out.stride[0] + row % n[1] * out.stride[1];
      for (std::size_t x = 0; x < sum.size(); ++x)
        to[static_cast<std::int64_t>(x) * out.stride[2]] =
            storage<Out>::store(detail::mean_of(sum[x], weight[x], rule));
    }
  });
}

// This overload refuses a call without a rule for voxels that no volume covers: a default value could not be told from
// a mean.
template <class Executor, class T, class Out>
void average(const Executor&, const patch_tensor<T>&, const patch_tensor<float>&, const view<Out>&) {
  static_assert(sizeof(T) == 0,
                "suture: average wants to know what a voxel is that no volume covers: give {.outside = 0}, say, for "
                "whole scans, and a view `covered` behind it where windows are put together (reassemble)");
}

}  // namespace suture
