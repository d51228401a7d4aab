// SPDX-License-Identifier: Apache-2.0
// Measures the sharpness of a tile of a slide, to leave out tiles that are blank or out of focus.
#pragma once

#include <atomic>

#include "../color/gray_level.hpp"
#include "moments.hpp"

namespace suture {

// Sharpness of one tile, in gray levels of 0 .. 255.
//   laplacian_variance  variance of the Laplacian: low where the tile is out of focus or blank
//   mean, standard_deviation  of the gray level: glass is bright and even
//   status  constant: one gray level alone, all variances 0; otherwise ok (empty: nothing was fitted yet)
struct sharpness {
  double laplacian_variance = 0;
  double mean = 0, standard_deviation = 0;
  std::uint64_t pixels = 0;
  fit_status status = fit_status::empty;
  bool operator==(const sharpness&) const = default;
};

namespace detail {

// Sums over at most 2^40 pixels of at most 1020^2 each: a sum of squares stays below 2^60.
struct gray_sums {
  std::int64_t laplacian, laplacian_squares, gray, gray_squares;
  std::uint64_t pixels;

  SUTURE_HD void propagate_carries() {}
};

// Returns the variance of n integers. n^2 times it is exact, and is rounded once before the division.
SUTURE_HD inline double variance_of_sums(std::int64_t sum, std::int64_t squares, std::uint64_t n) {
  const uint128 d = static_cast<uint128>(n) * static_cast<uint128>(squares) -
                    static_cast<uint128>(static_cast<int128>(sum) * static_cast<int128>(sum));
  const auto count = static_cast<double>(n);
  return math::detail::divide(math::detail::divide(to_double(d), count), count);
}

}  // namespace detail

// The Laplacian is g(y-1, x) + g(y+1, x) + g(y, x-1) + g(y, x+1) - 4 g(y, x) with the border mirrored about the
// outermost pixels (one pixel along an axis: itself), g = (9798 R + 19235 G + 3735 B + 2^14) / 2^15, or the value of a
// one-channel tile; variances divide by the number of pixels. Sums are integers, so the result is exact but for the
// last divisions, whatever the executor.
// Source: cv::Laplacian with ksize 1 and cv::meanStdDev on cv::cvtColor(RGB2GRAY); Pech-Pacheco et al. 2000.
// Errors: tiles that are not uint8, of one or three channels and one slice; more than 2^40 pixels.
struct fit_sharpness {
  static constexpr std::string_view name = "fit_sharpness";
  static constexpr auto parameters = named();
  using result = sharpness;

  SUTURE_HD sharpness finish(const detail::gray_sums& s) const {
    sharpness r;
    r.pixels = s.pixels;
    r.laplacian_variance = detail::variance_of_sums(s.laplacian, s.laplacian_squares, s.pixels);
    r.mean = math::detail::divide(static_cast<double>(s.gray), static_cast<double>(s.pixels));
    const double variance = detail::variance_of_sums(s.gray, s.gray_squares, s.pixels);
    r.standard_deviation = math::sqrt(variance);
    r.status = variance > 0 ? fit_status::ok : fit_status::constant;
    return r;
  }
};

// Whether a tile is worth keeping. The defaults suit 20x H&E of 8-bit scanners; what sharp means depends on the
// scanner and on JPEG, so look at the tiles of your own that are rejected.
//   least_laplacian_variance  below: blurred
//   least_deviation           gray standard deviation below: blank
enum class tile_quality : std::int32_t { good, blank, blurred };
struct tile_quality_limits {
  double least_laplacian_variance = 30;
  double least_deviation = 5;
};
inline tile_quality quality_of(const sharpness& s, const tile_quality_limits& limits = {}) {
  const site where{"quality_of"};
  require(limits.least_laplacian_variance >= 0, where, "least_laplacian_variance ", limits.least_laplacian_variance,
          " must not be negative");
  require(limits.least_deviation >= 0, where, "least_deviation ", limits.least_deviation, " must not be negative");
  require(s.status != fit_status::empty, where, "the tile has not been fitted");
  if (s.status == fit_status::constant || s.standard_deviation < limits.least_deviation) return tile_quality::blank;
  return s.laplacian_variance < limits.least_laplacian_variance ? tile_quality::blurred : tile_quality::good;
}

namespace detail {

// Returns the row or column that is read for index i, mirrored about the outermost pixels.
SUTURE_FN std::int32_t mirrored(std::int32_t i, std::int32_t n) {
  if (n == 1) return 0;
  return i < 0 ? 1 : i >= n ? n - 2 : i;
}

struct gray_reader {
  std::int64_t stride, channel_stride;
  bool color;
  SUTURE_FN std::int32_t operator()(const std::uint8_t* row, std::int32_t x) const {
    const std::uint8_t* p = row + x * stride;
    return color ? masks::gray_level(p[0], p[channel_stride], p[2 * channel_stride]) : std::int32_t{p[0]};
  }
};

inline void check_sharpness(std::span<const view<const std::uint8_t>> tiles, std::size_t results) {
  constexpr std::string_view name = fit_sharpness::name;
  require(tiles.size() == results, {name}, results, " results for ", tiles.size(), " tiles");
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    check(tiles[i], where);
    require(tiles[i].channels == 1 || tiles[i].channels == 3, where, tiles[i].channels,
            " channels, one or three expected");
    require(tiles[i].grid.extents[0] == 1, where, tiles[i].grid.extents[0], " slices, one expected");
    require(tiles[i].grid.voxels() <= std::int64_t{1} << 40, where, "extents ", tiles[i].grid.extents,
            " exceed 2^40 pixels");
  }
}

// Sums the rows first .. last - 1 of a tile. Gray levels of three rows are kept, with a mirrored pixel at either end.
inline gray_sums sum_rows(const view<const std::uint8_t>& tile, std::int32_t first, std::int32_t last) {
  const auto height = static_cast<std::int32_t>(tile.grid.extents[1]);
  const auto width = static_cast<std::int32_t>(tile.grid.extents[2]);
  const gray_reader gray{tile.stride[2], tile.channel_stride, tile.channels == 3};
  const auto row_length = static_cast<std::size_t>(width) + 2;
  std::vector<std::int32_t> memory(3 * row_length);
  std::int32_t* rows[3] = {memory.data(), memory.data() + row_length, memory.data() + 2 * row_length};
  const auto load = [&](std::int32_t y, std::int32_t* to) {
    const std::uint8_t* from = tile.data + mirrored(y, height) * tile.stride[1];
    for (std::int32_t x = 0; x < width; ++x) to[1 + x] = gray(from, x);
    to[0] = to[1 + mirrored(-1, width)];
    to[1 + width] = to[1 + mirrored(width, width)];
  };
  load(first - 1, rows[0]);
  load(first, rows[1]);
  gray_sums total{};
  for (std::int32_t y = first; y < last; ++y) {
    load(y + 1, rows[2]);
    const std::int32_t *up = rows[0] + 1, *at = rows[1] + 1, *down = rows[2] + 1;
    constexpr std::int32_t together = 1024;  // squares of this many fit 32 bits
    for (std::int32_t begin = 0; begin < width; begin += together) {
      const std::int32_t end = std::min(width, begin + together);
      std::int32_t sum = 0, squares = 0, grays = 0, gray_squares = 0;
      for (std::int32_t x = begin; x < end; ++x) {
        const std::int32_t l = up[x] + down[x] + at[x - 1] + at[x + 1] - 4 * at[x];
        sum += l;
        squares += l * l;
        grays += at[x];
        gray_squares += at[x] * at[x];
      }
      total.laplacian += sum;
      total.laplacian_squares += squares;
      total.gray += grays;
      total.gray_squares += gray_squares;
    }
    std::swap(rows[0], rows[1]);
    std::swap(rows[1], rows[2]);
  }
  return total;
}

}  // namespace detail

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit: fit(exec, fit_sharpness{}, tiles,
// everything{}, results), one result per tile.
inline void fit_on_cpu(const cpu& exec, const fit_sharpness& settings, std::span<const view<const std::uint8_t>> tiles,
                       const everything&, std::span<sharpness> results) {
  detail::check_sharpness(tiles, results.size());
  constexpr std::int64_t strip = 64;  // rows
  struct piece {
    std::size_t tile;
    std::int32_t first, last;
  };
  std::vector<piece> pieces;
  for (std::size_t i = 0; i < tiles.size(); ++i)
    for (std::int64_t y = 0, n = tiles[i].grid.extents[1]; y < n; y += strip)
      pieces.push_back({i, static_cast<std::int32_t>(y), static_cast<std::int32_t>(std::min(n, y + strip))});
  std::vector<detail::gray_sums> sums(tiles.size(), detail::gray_sums{});
  detail::parallel_for(exec.threads, static_cast<std::int64_t>(pieces.size()), [&](std::int64_t p) {
    const piece& here = pieces[static_cast<std::size_t>(p)];
    const detail::gray_sums part = detail::sum_rows(tiles[here.tile], here.first, here.last);
    detail::gray_sums& total = sums[here.tile];
    for (const auto member : {&detail::gray_sums::laplacian, &detail::gray_sums::laplacian_squares,
                              &detail::gray_sums::gray, &detail::gray_sums::gray_squares})
      std::atomic_ref(total.*member).fetch_add(part.*member, std::memory_order_relaxed);
  });
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    sums[i].pixels = static_cast<std::uint64_t>(tiles[i].grid.voxels());
    results[i] = settings.finish(sums[i]);
  }
}

}  // namespace suture
