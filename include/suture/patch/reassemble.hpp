// SPDX-License-Identifier: Apache-2.0
// The reassembly of a volume from overlapping patches. Every voxel is the weighted mean of the patches that cover it,
// summed in the order of the grid, so the result does not depend on the order in which patches were computed.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "../base/simd.hpp"
#include "../exec/cpu/run.hpp"
#include "../math/root.hpp"
#include "patch_grid.hpp"

namespace suture {

// Patches first .. first + count - 1 of a grid, a dense (patch, channel, z, y, x) tensor.
template <class T>
struct patch_tensor {
  const T* data = nullptr;
  std::int64_t channels = 1;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

namespace detail {

// The patches along one axis.
struct reassembly_axis {
  const float* weight;         // of a patch
  const std::int32_t* starts;  // of the patches
  std::int32_t patches;
  std::int32_t size;

  // Returns how many patches begin before `past`.
  SUTURE_FN std::int32_t bound(std::int32_t past) const {
    std::int32_t low = 0, high = patches;
    while (low < high) {
      const std::int32_t middle = (low + high) / 2;
      if (starts[middle] < past)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  // Voxel i is covered by patches first(i) .. last(i) - 1.
  SUTURE_FN std::int32_t first(std::int32_t i) const { return bound(i - size + 1); }
  SUTURE_FN std::int32_t last(std::int32_t i) const { return bound(i + 1); }
};

// Returns a * b, as fma(a, b, 0), which no compiler merges with a sum.
SUTURE_FN float product(float a, float b) { return fma(a, b, 0.0f); }

SUTURE_FN float window_weight(float plane, float x, float least) {
  const float w = product(plane, x);
  return w < least ? least : w;
}

// Checks a dense tensor of volumes of n voxels, which may not overlap the memory that is written.
template <class T>
void check_tensor(const patch_tensor<T>& t, const extent3& n, std::initializer_list<byte_range> written,
                  const site& where, std::string_view what) {
  require(t.data != nullptr, where, what, ": null pointer");
  std::int64_t size = sizeof(T);
  bool fits =
      t.count > 0 && !__builtin_mul_overflow(size, t.channels, &size) && !__builtin_mul_overflow(size, t.count, &size);
  for (int k = 0; k < 3; ++k) fits = fits && !__builtin_mul_overflow(size, n[k], &size);
  require(fits && size < (std::int64_t{1} << 60), where, what, ": ", t.count, " of ", n,
          " voxels overflow 64 bits, or are none");
  const auto from = reinterpret_cast<std::uintptr_t>(t.data);
  require(from % alignof(T) == 0, where, what, " are not aligned to ", alignof(T), " bytes");
  for (const byte_range& to : written)
    require(from + static_cast<std::uintptr_t>(size) <= to.first || from >= to.last, where, "output overlaps the ",
            what, " in memory");
}

template <class T, class Out>
void check_reassembly(const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                      const view<Out>& out, std::int64_t first_plane) {
  static_assert(is_image_storage_v<T> && is_image_storage_v<Out> && !std::is_const_v<Out>,
                "suture: unsupported element type");
  const site where{"reassemble"};
  check_patch_grid(g.image, g.size, where);
  check_writable(out, where);
  float smallest = 1;
  for (int k = 0; k < 3; ++k) {
    const auto& s = g.starts[k];
    require(!s.empty() && s.front() == 0 && s.back() == g.image[k] - g.size[k], where, "the patches along axis ", k,
            " do not cover the volume");
    for (std::size_t i = 1; i < s.size(); ++i)
      require(s[i] >= s[i - 1] && s[i] - s[i - 1] <= g.size[k], where, "the patches along axis ", k,
              " do not cover the volume");
    require(window.weight[k].size() == static_cast<std::size_t>(g.size[k]), where, "a window of ",
            window.weight[k].size(), " voxels along axis ", k, " for patches of ", g.size);
    float least = 1;
    for (const float w : window.weight[k]) {
      require(w >= 0 && w <= 1, where, "weight ", w, " along axis ", k, " is not in [0, 1]");
      least = std::min(least, w);
    }
    smallest = product(smallest, least);
  }
  require(window.least >= 0 && window.least <= 1, where, "least weight ", window.least, " is not in [0, 1]");
  // A voxel may be covered by only one patch.
  require(std::max(smallest, window.least) >= 1e-30f, where, "the window weighs nothing at a corner");
  const extent3& n = out.grid.extents;
  require(n[1] == g.image[1] && n[2] == g.image[2] && first_plane >= 0 && first_plane <= g.image[0] - n[0], where,
          "planes ", first_plane, " .. ", first_plane + n[0] - 1, " of extents ", n, " are not of the volume ",
          g.image);
  require(out.channels == patches.channels, where, "output has ", out.channels, " channels, patches ",
          patches.channels);
  check_tensor(patches, g.size, {bytes(out)}, where, "patches");
  // The patches that cover the planes.
  const std::int64_t plane = g.along(1) * g.along(2);
  const auto covering = [&](std::int64_t z) {
    return std::upper_bound(g.starts[0].begin(), g.starts[0].end(), z) - g.starts[0].begin();
  };
  const std::int64_t needed_first = covering(first_plane - g.size[0]) * plane;
  const std::int64_t needed_last = covering(first_plane + n[0] - 1) * plane;
  require(patches.first <= needed_first && patches.first + patches.count >= needed_last, where, "patches ",
          patches.first, " .. ", patches.first + patches.count - 1, " are given; the planes need ", needed_first,
          " .. ", needed_last - 1);
}

// Checks the coverage of patches: one channel, which applies to all channels of the patches.
template <class T, class Out>
void check_coverage(const patch_grid& g, const patch_tensor<T>& patches, const patch_tensor<float>& coverage,
                    const view<Out>& out, float outside) {
  const site where{"reassemble"};
  require(std::isfinite(outside), where, "outside ", outside, " must be finite");
  require(coverage.channels == 1, where, "coverage has ", coverage.channels, " channels; one is needed");
  require(coverage.first == patches.first && coverage.count == patches.count, where, "coverage of patches ",
          coverage.first, " .. ", coverage.first + coverage.count - 1, " for patches ", patches.first, " .. ",
          patches.first + patches.count - 1);
  check_tensor(coverage, g.size, {bytes(out)}, where, "coverage");
}

// Returns the weight of a voxel of a patch with a coverage, or 0 unless the coverage is above 0 (NaN is not). Both
// branches are computed, here and below, so that compilers can vectorize rows.
SUTURE_FN float covered_weight(float window, float coverage) {
  const float weight = product(window, coverage);
  return coverage > 0 ? weight : 0.0f;
}

// Adds a row of a patch to the sums and the weights of a row of the volume.
template <class T>
SUTURE_INLINE void add_patch_row(const T* row, float plane, const float* window, float least, std::int32_t n,
                                 float* sum, float* weights) {
  for (std::int32_t x = 0; x < n; ++x) {
    const float weight = window_weight(plane, window[x], least);
    sum[x] = fma(weight, storage<T>::load(row[x]), sum[x]);
    weights[x] += weight;
  }
}
// Adds a row of a patch with a coverage. A value with weight 0 may be NaN and does not count.
template <class T>
SUTURE_INLINE void add_covered_row(const T* row, const float* coverage, float plane, const float* window, float least,
                                   std::int32_t n, float* sum, float* weights) {
  for (std::int32_t x = 0; x < n; ++x) {
    const float weight = covered_weight(window_weight(plane, window[x], least), coverage[x]);
    const float with = fma(weight, storage<T>::load(row[x]), sum[x]);
    sum[x] = weight > 0 ? with : sum[x];
    weights[x] += weight;
  }
}

// Prefetches adjacent elements to be read, or written.
template <int Write = 0, class T>
SUTURE_INLINE void prefetch_row(const T* row, std::int64_t n) {
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t x = 0; x < n; x += line) __builtin_prefetch(row + x, Write);
}

// Reassembles after all checks. `coverage` is null unless Covered.
template <bool Covered, class T, class Out>
void put_together(const cpu& exec, const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                  const float* coverage, const view<Out>& out, std::int64_t first_plane, float outside) {
  std::vector<std::int32_t> starts[3];
  reassembly_axis axis[3];
  for (int k = 0; k < 3; ++k) {
    starts[k].assign(g.starts[k].begin(), g.starts[k].end());
    axis[k] = {window.weight[k].data(), starts[k].data(), static_cast<std::int32_t>(g.along(k)),
               static_cast<std::int32_t>(g.size[k])};
  }
  const extent3& n = out.grid.extents;
  const std::int64_t size = g.size[0] * g.size[1] * g.size[2];
  // Rows along x that are transposed together if z or y has stride 1 in the output: 64 rows along y, or 16 rows of each
  // of 32 planes.
  const int dense = loop_axes[loops_in_memory({out.stride[0], out.stride[1], out.stride[2]}, {n[0], n[1], n[2]})][2];
  const bool across = dense != 2 && out.stride[dense] == 1;
  const std::int64_t planes = across && dense == 0 ? 32 : 1, rows = !across ? 1 : dense == 0 ? 16 : 64;
  const std::int64_t slabs = (n[0] + planes - 1) / planes;
  parallel_for(exec.threads, patches.channels * slabs, [&](std::int64_t task) {
    const std::int64_t channel = task / slabs, first_z = task % slabs * planes;
    const std::int64_t last_z = std::min(n[0], first_z + planes);
    std::vector<float> sum(static_cast<std::size_t>(n[2])), weights(sum.size());
    std::vector<Out> finished(static_cast<std::size_t>(across ? planes * rows * n[2] : 0));
    for (std::int64_t first_y = 0; first_y < n[1]; first_y += rows) {
      const std::int64_t last_y = std::min(n[1], first_y + rows);
      Out* const target = out.data + channel * out.channel_stride + first_z * out.stride[0] + first_y * out.stride[1];
      Out* to = across ? finished.data() : target;
      const std::int64_t step = across ? 1 : out.stride[2];
      for (std::int64_t plane = first_z; plane < last_z; ++plane)
        for (std::int64_t row_y = first_y; row_y < last_y; ++row_y, to += n[2]) {
          const auto z = static_cast<std::int32_t>(first_plane + plane), y = static_cast<std::int32_t>(row_y);
          std::fill(sum.begin(), sum.end(), 0.0f);
          std::fill(weights.begin(), weights.end(), 0.0f);
          for (std::int32_t iz = axis[0].first(z); iz < axis[0].last(z); ++iz)
            for (std::int32_t iy = axis[1].first(y); iy < axis[1].last(y); ++iy) {
              const std::int32_t pz = z - axis[0].starts[iz], py = y - axis[1].starts[iy];
              const float wzy = product(axis[0].weight[pz], axis[1].weight[py]);
              const std::int64_t first_of_row =
                  (static_cast<std::int64_t>(iz) * axis[1].patches + iy) * axis[2].patches;
              for (std::int32_t ix = 0; ix < axis[2].patches; ++ix) {
                const std::int64_t patch = first_of_row + ix - patches.first, row = (pz * g.size[1] + py) * g.size[2];
                const T* values = patches.data + (patch * patches.channels + channel) * size + row;
                prefetch_row(values + g.size[2], g.size[2]);
                float* s = sum.data() + axis[2].starts[ix];
                float* w = weights.data() + axis[2].starts[ix];
                if constexpr (Covered)
                  add_covered_row(values, coverage + patch * size + row, wzy, axis[2].weight, window.least,
                                  axis[2].size, s, w);
                else
                  add_patch_row(values, wzy, axis[2].weight, window.least, axis[2].size, s, w);
              }
            }
          if constexpr (Covered)
            for (std::size_t x = 0; x < sum.size(); ++x)
              if (!(weights[x] > 0)) {
                sum[x] = outside;
                weights[x] = 1;
              }
          for (std::int64_t x = 0; x < n[2]; ++x)
            to[x * step] = storage<Out>::store(
                math::detail::divide(sum[static_cast<std::size_t>(x)], weights[static_cast<std::size_t>(x)]));
        }
      if (!across) continue;
      // The next columns are prefetched while these are transposed.
      constexpr std::int64_t columns = 16;
      const std::int64_t count[2] = {last_z - first_z, last_y - first_y}, row[2] = {count[1] * n[2], n[2]};
      for (std::int64_t first_x = 0; first_x < n[2]; first_x += columns)
        for (std::int64_t i = 0; i < count[1 - dense]; ++i) {
          Out* const first = target + i * out.stride[1 - dense] + first_x * out.stride[2];
          for (std::int64_t x = columns; x < std::min(2 * columns, n[2] - first_x); ++x)
            prefetch_row<1>(first + x * out.stride[2], count[dense]);
          simd::transpose(finished.data() + i * row[1 - dense] + first_x, row[dense], static_cast<int>(count[dense]),
                          static_cast<int>(std::min(columns, n[2] - first_x)), first, out.stride[2]);
        }
    }
  });
}

// Calls visit(pointer, where, role) for the inputs and outputs of a reassembly.
template <class Visit, class T, class Out>
void each_reassembly_pointer(const Visit& visit, const patch_tensor<T>& patches, const float* coverage,
                             const view<Out>& out) {
  visit(patches.data, {"reassemble"}, "patches: ");
  visit(coverage, {"reassemble"}, "coverage: ");
  visit(out.data, {"reassemble"}, "output: ");
}

}  // namespace detail

// reassemble: out(c, v) = sum w(v - s_p) patch_p(c, v - s_p) / sum w(v - s_p) over the patches p that cover v, where
// s_p is the start of p. Sums are computed in float32 by fma in the order of the grid, so every executor gives the same
// bits. A NaN in a patch makes the voxels that it covers NaN.
//   window       constant_window, gaussian_window or sliding_window_gaussian of the size of the patches
//   patches      float32, float16, bfloat16 or an integer type; all of the grid, or at least those that cover `out`
//   out          planes first_plane .. first_plane + out.extents[0] - 1 of the volume, so that a large volume can be
//                computed in slabs
// Source: MONAI sliding_window_inference, nnU-Net's predictor. Errors: extents, channels or windows that do not fit the
// grid, a patch that is needed and not given, overlapping memory.
template <class T, class Out>
void reassemble(const cpu& exec, const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                const view<Out>& out, std::int64_t first_plane = 0) {
  detail::check_reassembly(g, window, patches, out, first_plane);
  detail::each_reassembly_pointer(detail::memory_check(exec), patches, nullptr, out);
  detail::put_together<false>(exec, g, window, patches, nullptr, out, first_plane, 0);
}

// Reassembles patches that do not cover all of their voxels, as after test-time augmentation. A voxel of patch p has
// the weight w(v - s_p) k_p(v - s_p), where k_p is the coverage; one that no patch covers is `outside`.
//   patches    the means that average writes. Do not pass what a plan with inverse_of returns: that is already
//              multiplied by its coverage, also for a single view
//   coverage   k, dense (patch, z, y, x), of the same patches: the weights that average writes to `covered`. A voxel of
//              a patch does not count if its value is not above 0. If all are 1, the result has the bits of the
//              function without a coverage
// Errors: as above, and coverage of other patches or of more than one channel.
template <class T, class Out>
void reassemble(const cpu& exec, const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                const patch_tensor<float>& coverage, const view<Out>& out, std::int64_t first_plane = 0,
                float outside = 0) {
  detail::check_reassembly(g, window, patches, out, first_plane);
  detail::check_coverage(g, patches, coverage, out, outside);
  detail::each_reassembly_pointer(detail::memory_check(exec), patches, coverage.data, out);
  detail::put_together<true>(exec, g, window, patches, coverage.data, out, first_plane, outside);
}

}  // namespace suture
