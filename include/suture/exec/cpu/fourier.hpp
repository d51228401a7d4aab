// SPDX-License-Identifier: Apache-2.0
// Filters of k-space on the CPU: neighboring lines of a patch are transformed together, in place.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "../../evaluate/stage.hpp"
#include "cpu.hpp"

namespace suture::detail {

inline constexpr int line_lanes = 16;  // lines that are transformed together

inline std::vector<math::complex> roots_of_unity(std::int32_t n) {
  std::vector<math::complex> roots;
  for (std::int32_t j = 0; j < n; ++j) roots.push_back(math::root_of_unity(j, n));
  return roots;
}

// Holds 16 lines of n complex values, value i of line l at 16 i + l. The n roots of unity must outlive the block.
class line_block {
public:
  explicit line_block(const std::vector<math::complex>& roots)
      : n_(static_cast<std::int32_t>(roots.size())), roots_(roots.data()), memory_(4 * roots.size() * line_lanes) {
    for (std::size_t k = 0; k < 4; ++k) parts_[k] = memory_.data() + k * roots.size() * line_lanes;
  }

  std::int32_t size() const { return n_; }
  float* real(std::int32_t i = 0) { return parts_[0] + i * line_lanes; }
  float* imaginary(std::int32_t i = 0) { return parts_[1] + i * line_lanes; }
  // Computes the inverse transform but for the factor 1 / n: a transform with real and imaginary parts swapped.
  void inverse_transform() {
    std::swap(parts_[0], parts_[1]);
    transform();
    std::swap(parts_[0], parts_[1]);
  }

  void transform() {
    for (std::int32_t done = 1, rest = n_; rest > 1;) {
      const std::int32_t radix = math::next_radix(rest);
      math::with_radix(radix, [&](auto r) { pass(r, done); });
      std::swap(parts_[0], parts_[2]);
      std::swap(parts_[1], parts_[3]);
      done *= radix;
      rest /= radix;
    }
  }

private:
  // Calls work(i, to, factor) for the butterflies of a pass, in order of their index i. `to` and `factor` are
  // first_result() and factor() of math::butterfly, computed without divisions.
  template <class Work>
  void each_butterfly(std::int32_t radix, std::int32_t done, const Work& work) const {
    const std::int32_t root_step = n_ / (radix * done);
    for (std::int32_t i = 0, to = 0; i < n_ / radix; i += done, to += radix * done)
      for (std::int32_t j = 0; j < done; ++j) work(i + j, to + j, j * root_step);
  }

  template <int Radix>
  void pass(std::integral_constant<int, Radix>, std::int32_t done) {
    each_butterfly(Radix, done, [&](std::int32_t i, std::int32_t to, std::int32_t factor) {
      if (done == 1)
        lanes<Radix, false>(i, to, done, factor);
      else
        lanes<Radix, true>(i, to, done, factor);
    });
  }
  template <int Radix, bool HasRoots>
  void lanes(std::int32_t first, std::int32_t first_result, std::int32_t done, std::int32_t factor) {
    const std::int64_t from = std::int64_t{first} * line_lanes, step = std::int64_t{n_ / Radix} * line_lanes;
    const std::int64_t to = std::int64_t{first_result} * line_lanes, apart = std::int64_t{done} * line_lanes;
    const float* const real = parts_[0] + from;
    const float* const imaginary = parts_[1] + from;
    float* const new_real = parts_[2] + to;
    float* const new_imaginary = parts_[3] + to;
    math::complex root[Radix];
    for (int q = 0; q < Radix; ++q) root[q] = roots_[q * factor];
    SUTURE_INDEPENDENT
    for (int l = 0; l < line_lanes; ++l) {
      math::complex v[Radix];
      SUTURE_UNROLL
      for (int q = 0; q < Radix; ++q) {
        v[q] = {real[q * step + l], imaginary[q * step + l]};
        if (HasRoots && q > 0) v[q] = math::times(v[q], root[q]);
      }
      math::dft(v);
      SUTURE_UNROLL
      for (int q = 0; q < Radix; ++q) {
        new_real[q * apart + l] = v[q].real;
        new_imaginary[q * apart + l] = v[q].imaginary;
      }
    }
  }

  void pass(std::int32_t radix, std::int32_t done) {
    const std::int32_t stride = n_ / radix;
    each_butterfly(radix, done, [&](std::int32_t i, std::int32_t first_result, std::int32_t factor) {
      for (std::int32_t s = 0; s < radix; ++s) {
        const std::int32_t root_step = factor + s * stride;
        float sum[2][line_lanes];
        for (int l = 0; l < line_lanes; ++l) {
          sum[0][l] = real(i)[l];
          sum[1][l] = imaginary(i)[l];
        }
        std::int32_t at = 0;
        for (std::int32_t q = 1; q < radix; ++q) {
          at += root_step;
          if (at >= n_) at -= n_;
          const math::complex root = roots_[at];
          const float* const re = real(i + q * stride);
          const float* const im = imaginary(i + q * stride);
          for (int l = 0; l < line_lanes; ++l) {
            const math::complex next = math::multiply_add({re[l], im[l]}, root, {sum[0][l], sum[1][l]});
            sum[0][l] = next.real;
            sum[1][l] = next.imaginary;
          }
        }
        const std::int64_t to = std::int64_t{first_result + s * done} * line_lanes;
        for (int l = 0; l < line_lanes; ++l) {
          parts_[2][to + l] = sum[0][l];
          parts_[3][to + l] = sum[1][l];
        }
      }
    });
  }

  std::int32_t n_;
  const math::complex* roots_;
  std::vector<float> memory_;
  float* parts_[4];  // real and imaginary, and the results of the next pass
};

// A patch that is dense in memory: its extents along z, y and x, and the strides along each. Planes, rows and lanes run
// along `axes`.
struct dense_patch {
  std::int32_t n[3] = {};
  std::int64_t step[3] = {};
  std::uint8_t axes[3] = {};

  dense_patch(const std::int32_t (&extents)[3], const std::uint8_t (&loops)[3]) {
    std::int64_t apart = 1;
    for (int j = 2; j >= 0; --j) {
      axes[j] = loops[j];
      n[axes[j]] = extents[axes[j]];
      step[axes[j]] = apart;
      apart *= n[axes[j]];
    }
  }
  std::int64_t voxels() const { return std::int64_t{n[0]} * n[1] * n[2]; }
};

// The lines of a patch along an axis; consecutive lines are neighbors along `inner`.
struct patch_lines {
  int axis, inner, outer;
  std::int64_t per_outer;  // lines with the same index along `outer`
  std::int64_t in_one_go;  // lines of a run, which lie at constant distances
  std::int64_t runs;       // number of runs

  // `x_extent` is the number of positions along x in use.
  patch_lines(const dense_patch& patch, int along, std::int32_t x_extent) : axis(along) {
    inner = patch.axes[2] != axis ? patch.axes[2] : patch.axes[1];
    outer = 3 - axis - inner;
    const auto used = [&](int k) { return k == 2 ? x_extent : patch.n[k]; };
    per_outer = used(inner);
    const bool side_by_side = patch.step[outer] == per_outer * patch.step[inner];
    in_one_go = side_by_side ? per_outer * used(outer) : per_outer;
    runs = side_by_side ? 1 : used(outer);
  }
  std::int32_t along_inner(std::int64_t line) const { return static_cast<std::int32_t>(line % per_outer); }
  std::int32_t along_outer(std::int64_t line) const { return static_cast<std::int32_t>(line / per_outer); }
};

// The transform of a patch to k-space and its inverse, one axis after the other. Real and imaginary parts are in arrays
// of the size of the patch, which belong to the caller. Along x these hold only the first x_frequencies().
class patch_transform {
public:
  patch_transform(const cpu& exec, const dense_patch& patch, float* real, float* imaginary)
      : exec_(exec),
        patch_(patch),
        n_(patch.n),
        stored_x_(x_frequencies(patch.n[2])),
        real_(real),
        imaginary_(imaginary) {
    for (int axis = 0; axis < 3; ++axis) roots_[axis] = roots_of_unity(n_[axis]);
  }

  const std::vector<math::complex>& roots(int axis) const { return roots_[axis]; }
  // The axis that is transformed last.
  int last_axis() const { return n_[0] > 1 ? 0 : 1; }

  // Transforms along x the voxels that load(plane, row, lanes) writes row by row; a row has room for another 16 values.
  template <class Load>
  void rows_from(const Load& load) {
    const std::uint8_t(&axes)[3] = patch_.axes;
    const std::int32_t rows = n_[axes[1]], width = n_[axes[2]];
    const bool dense_along_x = axes[2] == 2;
    if (!dense_along_x)
      parallel_for(exec_.threads, n_[axes[0]], [&](std::int64_t plane) {
        std::vector<float> row(static_cast<std::size_t>(width + line_lanes));
        for (std::int32_t y = 0; y < rows; ++y) {
          load(static_cast<std::int32_t>(plane), y, row.data());
          std::copy_n(row.data(), width, real_ + (plane * rows + y) * width);
        }
      });
    each_block(2, n_[2], [&](line_block& b, const patch_lines& lines, std::int64_t first, int count) {
      if (dense_along_x) {
        std::vector<float> row(static_cast<std::size_t>(width + line_lanes));
        for (int l = 0; l < count; ++l) {
          load(static_cast<std::int32_t>((first + l) / rows), static_cast<std::int32_t>((first + l) % rows),
               row.data());
          for (std::int32_t i = 0; i < width; ++i) b.real(i)[l] = row[static_cast<std::size_t>(i)];
        }
      } else {
        read_lines(b, lines, n_[2], first, count, false);
      }
      std::fill_n(b.imaginary(), n_[2] * line_lanes, 0.0f);
      b.transform();
      write_lines(b, lines, stored_x_, first, count, true);
    });
  }
  // Computes the transform along y, or its inverse.
  void columns(bool inverse) {
    each_block(1, stored_x_, [&](line_block& b, const patch_lines& lines, std::int64_t first, int count) {
      read_lines(b, lines, n_[1], first, count, true);
      inverse ? b.inverse_transform() : b.transform();
      write_lines(b, lines, n_[1], first, count, true);
    });
  }
  // Transforms along the last axis and, if `invert`, inverts it; change(block, lines, first line, count) runs between
  // the two.
  template <class Change>
  void transform_last_axis(bool invert, const Change& change) {
    const int axis = last_axis();
    each_block(axis, stored_x_, [&](line_block& b, const patch_lines& lines, std::int64_t first, int count) {
      read_lines(b, lines, n_[axis], first, count, true);
      b.transform();
      change(b, lines, first, count);
      if (!invert) return;
      b.inverse_transform();
      write_lines(b, lines, n_[axis], first, count, true);
    });
  }
  // Inverts the transform along x, where lines are real.
  void inverse_rows() {
    each_block(2, n_[2], [&](line_block& b, const patch_lines& lines, std::int64_t first, int count) {
      read_lines(b, lines, stored_x_, first, count, true);
      for (std::int32_t i = stored_x_; i < n_[2]; ++i)
        for (int l = 0; l < count; ++l) {
          b.real(i)[l] = b.real(n_[2] - i)[l];
          b.imaginary(i)[l] = -b.imaginary(n_[2] - i)[l];
        }
      b.inverse_transform();
      write_lines(b, lines, n_[2], first, count, false);
    });
  }

  // Calls work(i, lane, z, y, x) for the frequencies of a block of lines along the last axis.
  template <class Work>
  void each_frequency(const line_block& b, const patch_lines& lines, std::int64_t first, int count,
                      const Work& work) const {
    std::int32_t at[3][line_lanes] = {};
    for (int l = 0; l < count; ++l) {
      at[lines.inner][l] = lines.along_inner(first + l);
      at[lines.outer][l] = lines.along_outer(first + l);
    }
    for (std::int32_t i = 0; i < b.size(); ++i) {
      for (int l = 0; l < line_lanes; ++l) at[lines.axis][l] = i;
      if (count == line_lanes)
        for (int l = 0; l < line_lanes; ++l) work(i, l, at[0][l], at[1][l], at[2][l]);
      else
        for (int l = 0; l < count; ++l) work(i, l, at[0][l], at[1][l], at[2][l]);
    }
  }
  // Returns how many frequencies along x a line represents: its own, and the opposite one unless it is the same.
  std::int64_t frequencies_of(const patch_lines& lines, std::int64_t line) const {
    const std::int32_t x = lines.inner == 2 ? lines.along_inner(line) : lines.along_outer(line);
    return x == opposite(x, n_[2]) ? 1 : 2;
  }
  // Returns index i and lane of frequency `at` in a block of lines along the last axis; the lane is -1 if another block
  // holds the frequency.
  std::pair<std::int32_t, int> place_of(const patch_lines& lines, const std::int32_t (&at)[3], std::int64_t first,
                                        int count) const {
    const std::int64_t lane = at[lines.outer] * lines.per_outer + at[lines.inner] - first;
    return {at[lines.axis], lane >= 0 && lane < count ? static_cast<int>(lane) : -1};
  }

private:
  // Calls work(block, lines, first line, count) for every block of lines along an axis. Lines of a block are neighbors.
  template <class Work>
  void each_block(int axis, std::int32_t x_extent, const Work& work) {
    const patch_lines lines(patch_, axis, x_extent);
    const std::int64_t blocks = (lines.in_one_go + line_lanes - 1) / line_lanes, all = lines.runs * blocks;
    constexpr std::int64_t together = 8;
    parallel_for(exec_.threads, (all + together - 1) / together, [&](std::int64_t part) {
      line_block b(roots_[axis]);
      for (std::int64_t k = part * together; k < std::min((part + 1) * together, all); ++k) {
        const std::int64_t begin = k % blocks * line_lanes;
        work(b, lines, k / blocks * lines.in_one_go + begin,
             static_cast<int>(std::min<std::int64_t>(line_lanes, lines.in_one_go - begin)));
      }
    });
  }

  std::int64_t begin_of(const patch_lines& lines, std::int64_t line) const {
    return lines.along_outer(line) * patch_.step[lines.outer] + lines.along_inner(line) * patch_.step[lines.inner];
  }

  // Loads the first `values` of each line.
  void read_lines(line_block& b, const patch_lines& lines, std::int32_t values, std::int64_t first, int count,
                  bool both) const {
    const std::int64_t begin = begin_of(lines, first), beside = patch_.step[lines.inner];
    for (std::int32_t i = 0; i < values; ++i) {
      const std::int64_t at = begin + i * patch_.step[lines.axis];
      copy_lanes(b.real(i), 1, real_ + at, beside, count);
      if (both) copy_lanes(b.imaginary(i), 1, imaginary_ + at, beside, count);
    }
  }
  static void copy_lanes(float* to, std::int64_t to_step, const float* from, std::int64_t from_step, int count) {
    if (to_step == 1 && from_step == 1 && count == line_lanes)
      simd::copy<line_lanes * sizeof(float)>(to, from);
    else
      for (int l = 0; l < count; ++l) to[l * to_step] = from[l * from_step];
  }
  void write_lines(line_block& b, const patch_lines& lines, std::int32_t values, std::int64_t first, int count,
                   bool both) {
    const std::int64_t begin = begin_of(lines, first), beside = patch_.step[lines.inner];
    for (std::int32_t i = 0; i < values; ++i) {
      const std::int64_t at = begin + i * patch_.step[lines.axis];
      copy_lanes(real_ + at, beside, b.real(i), 1, count);
      if (both) copy_lanes(imaginary_ + at, beside, b.imaginary(i), 1, count);
    }
  }

  const cpu& exec_;
  const dense_patch& patch_;
  const std::int32_t (&n_)[3];
  std::int32_t stored_x_;  // frequencies along x
  float *real_, *imaginary_;
  std::vector<math::complex> roots_[3];
};

// Multiplies the k-space of a patch by the mask of a filter. load(plane, row, lanes) reads the voxels; the result goes
// to `to`. `work` is scratch memory of the same size.
template <class Filter, class Load>
void filter_spectrum(const cpu& exec, const Filter& filter, const dense_patch& patch, std::int32_t channel,
                     const Load& load, float* to, float* work) {
  patch_transform t(exec, patch, to, work);
  const std::int32_t(&n)[3] = patch.n;
  const float by_voxel = math::detail::divide(0.5f, static_cast<float>(patch.voxels()));
  const int axis = t.last_axis();
  t.rows_from(load);
  if (axis == 0) t.columns(false);
  t.transform_last_axis(true, [&](line_block& b, const patch_lines& lines, std::int64_t first, int count) {
    t.each_frequency(b, lines, first, count,
                     [&](std::int32_t i, int l, std::int32_t z, std::int32_t y, std::int32_t x) {
                       const float weight = by_voxel * weight_of_both(filter, n, z, y, x, channel);
                       b.real(i)[l] = fma(b.real(i)[l], weight, 0.0f);
                       b.imaginary(i)[l] = fma(b.imaginary(i)[l], weight, 0.0f);
                     });
  });
  if (axis == 0) t.columns(true);
  t.inverse_rows();
}

// Adds a spike in k-space to a patch. Only the amplitude is computed in k-space; the wave is then added to the voxels,
// which are loaded again. Arguments are those of filter_spectrum.
template <class Filter, class Load>
void add_spike(const cpu& exec, const Filter& filter, const dense_patch& patch, std::int32_t channel, const Load& load,
               float* to, float* work) {
  patch_transform t(exec, patch, to, work);
  const std::int32_t(&n)[3] = patch.n;
  const spike_of_channel spike = filter.spike(channel);
  std::int32_t location[3];
  for (int k = 0; k < 3; ++k) location[k] = uncentered(spike.at[k], n[k]);
  const stored_frequency of_spike = stored_frequency::of(location, n);
  const int axis = t.last_axis();
  spectral_sums sums{};
  std::mutex mutex;
  t.rows_from(load);
  if (axis == 0) t.columns(false);
  t.transform_last_axis(false, [&](line_block& b, const patch_lines& lines, std::int64_t first, int count) {
    std::int64_t sum = 0;
    std::int64_t frequencies[line_lanes];
    for (int l = 0; l < line_lanes; ++l) frequencies[l] = l < count ? t.frequencies_of(lines, first + l) : 0;
    for (std::int32_t i = 0; i < b.size(); ++i) {
      std::int32_t own[line_lanes];
      for (int l = 0; l < line_lanes; ++l) own[l] = log_magnitude({b.real(i)[l], b.imaginary(i)[l]});
      for (int l = 0; l < line_lanes; ++l) sum += own[l] * frequencies[l];
    }
    const auto [i, lane] = t.place_of(lines, of_spike.at, first, count);
    if (lane >= 0) sums.at_location = of_spike.value({b.real(i)[lane], b.imaginary(i)[lane]});
    const std::lock_guard<std::mutex> lock(mutex);
    sums.logarithms += sum;
  });
  const math::complex added = spike_of(spike, sums, static_cast<double>(patch.voxels()));
  std::vector<math::complex> along[3];
  for (int k = 0; k < 3; ++k)
    for (std::int32_t i = 0; i < n[k]; ++i)
      along[k].push_back(t.roots(k)[static_cast<std::size_t>(std::int64_t{location[k]} * i % n[k])]);
  const std::uint8_t(&axes)[3] = patch.axes;
  const std::int32_t rows = n[axes[1]], width = n[axes[2]];
  parallel_for(exec.threads, n[axes[0]], [&](std::int64_t plane) {
    std::vector<float> row(static_cast<std::size_t>(width + line_lanes));
    std::vector<math::complex> across(static_cast<std::size_t>(width));  // products of the roots along z and along y
    for (std::int32_t y = 0; y < rows; ++y) {
      load(static_cast<std::int32_t>(plane), y, row.data());
      float* const out = to + (plane * rows + y) * width;
      const float* const voxels = row.data();
      // The roots along an axis for the lanes: one per lane, or one that all lanes share.
      const auto roots_of = [&](int k, std::size_t x) {
        const std::size_t at = k == axes[0]   ? static_cast<std::size_t>(plane)
                               : k == axes[1] ? static_cast<std::size_t>(y)
                                              : x;
        return along[k][at];
      };
      if (axes[2] == 2) {
        const math::complex zy = math::times(roots_of(0, 0), roots_of(1, 0));
        const math::complex* const roots = along[2].data();
        for (std::int32_t x = 0; x < width; ++x) out[x] = with_spike(voxels[x], added, zy, roots[x]);
      } else {
        const math::complex root_x = roots_of(2, 0);
        for (std::size_t x = 0; x < across.size(); ++x) across[x] = math::times(roots_of(0, x), roots_of(1, x));
        const math::complex* const roots = across.data();
        for (std::int32_t x = 0; x < width; ++x) out[x] = with_spike(voxels[x], added, roots[x], root_x);
      }
    }
  });
}

}  // namespace suture::detail
