// SPDX-License-Identifier: Apache-2.0
// The mask of tissue on the thumbnail of a stained slide.
#pragma once

#include "../color/gray_level.hpp"
#include "../math/exponential.hpp"
#include "components.hpp"
#include "morphology.hpp"

namespace suture {

// The rule by which a pixel is tissue. Otsu's threshold t of an image of 256 levels is the first that maximizes n1 n2
// (m1 - m2)^2, where n and m are numbers and means of the classes {<= t} and {> t}.
enum class tissue_rule : std::int32_t {
  gray,        // gray level at most Otsu's threshold; gray = (9798 R + 19235 G + 3735 B + 2^14) / 2^15 (OpenCV)
  saturation,  // saturation above Otsu's threshold; saturation = 255 (max - min) / max (OpenCV, 8 bits)
  luminosity,  // L* of CIE Lab (sRGB, D65) below `luminosity`
};

// Options of a tissue mask. Of the pixels that the rule selects, 8-connected components of fewer than `least_size`
// pixels are removed, and the rest is dilated by a disk of `dilation_radius`.
//   luminosity       above 0, at most 100; for tissue_rule::luminosity
//   least_size       pixels, not negative
//   dilation_radius  pixels, 0..63
// Source: skimage.filters.threshold_otsu; TIAToolbox OtsuTissueMasker and MorphologicalMasker (where tissue is < t, and
// dilation by an ellipse), CLAM (saturation), StainTools (luminosity).
struct tissue_mask_options {
  tissue_rule rule = tissue_rule::gray;
  float luminosity = 80;
  std::int64_t least_size = 0;
  std::int64_t dilation_radius = 0;
};

// The outcome of a tissue mask for one sample.
//   status     `empty` if the mask is all 0, as for an image of one gray level (or saturation), in which tissue cannot
//              be told from glass
//   threshold  Otsu's threshold; -1 for the rule `luminosity`
//   pixels     the number of pixels of the mask
struct tissue_mask_result {
  mask_status status;
  std::int32_t threshold;
  std::uint32_t pixels;
};

namespace detail::masks {

struct rgb_level {
  std::int64_t channel_stride;
  bool saturation;
  SUTURE_FN std::int32_t operator()(const std::uint8_t* p) const {
    const std::int32_t r = p[0], g = p[channel_stride], b = p[2 * channel_stride];
    return saturation ? saturation_level(r, g, b) : gray_level(r, g, b);
  }
};

// The levels low .. high of tissue, by Otsu's method.
struct tissue_levels {
  std::int32_t low, high, threshold;
  std::uint32_t pixels;
};

struct clear_histogram {
  std::uint32_t* counts;
  tissue_levels* levels;
  SUTURE_FN void operator()(std::int64_t i) const {
    counts[i] = 0;
    if (i == 0) *levels = {0, 255, -1, 0};
  }
};
// Counts the levels of 64 pixels of a row. Equal neighbors are added together, so that threads whose pixels all show glass
// do not wait for the same counter.
struct count_levels {
  strided<const std::uint8_t> in;
  rgb_level level;
  std::int32_t width;
  std::uint32_t* counts;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    const std::int32_t end = w * 64 + 64 < width ? w * 64 + 64 : width;
    std::int32_t last = -1;
    std::uint32_t run = 0;
    for (std::int32_t x = w * 64; x < end; ++x) {
      const std::int32_t here = level(in.at(z, y, x));
      if (here != last && run > 0) {
        add_relaxed(counts + last, run);
        run = 0;
      }
      last = here;
      ++run;
    }
    add_relaxed(counts + last, run);
  }
};
// Chooses Otsu's threshold, by n1 n2 (m1 - m2)^2 = (s1 N - S n1)^2 / (n1 n2) with s1 the sum of class 1 and S that of
// all N pixels. With at most 2^27 pixels the difference is an exact 64-bit integer.
struct choose_threshold {
  const std::uint32_t* counts;
  bool saturation;
  tissue_levels* levels;
  SUTURE_FN void operator()(std::int64_t) const {
    std::int64_t pixels = 0, sum = 0;
    std::int32_t used = 0, only = 0;
    for (std::int32_t i = 0; i < 256; ++i) {
      pixels += counts[i];
      sum += static_cast<std::int64_t>(counts[i]) * i;
      if (counts[i] == 0) continue;
      ++used;
      only = i;
    }
    if (used == 1) {
      *levels = {1, 0, only, 0};
      return;
    }
    std::int64_t below = 0, sum_below = 0;
    std::int32_t best = 0;
    double best_score = -1;
    for (std::int32_t i = 0; i < 255; ++i) {
      below += counts[i];
      sum_below += static_cast<std::int64_t>(counts[i]) * i;
      if (below == 0 || below == pixels) continue;
      const auto difference = static_cast<double>(sum_below * pixels - sum * below);
      const double score = difference * difference / (static_cast<double>(below) * static_cast<double>(pixels - below));
      if (score > best_score) {
        best_score = score;
        best = i;
      }
    }
    if (saturation)
      *levels = {best + 1, 255, best, 0};
    else
      *levels = {0, best, best, 0};
  }
};
struct is_between_levels {
  rgb_level level;
  const tissue_levels* levels;
  SUTURE_FN bool operator()(const std::uint8_t* p) const {
    const std::int32_t here = level(p);
    return here >= levels->low && here <= levels->high;
  }
};

// Tests whether the luminance Y of CIE XYZ is below a limit, in integers: weights of R, G and B in millionths, linear
// light in units of 2^-31.
struct is_darker {
  std::uint32_t linear[256];
  std::int64_t channel_stride, limit;
  SUTURE_FN bool operator()(const std::uint8_t* p) const {
    const auto y = std::uint64_t{212671} * linear[p[0]] + std::uint64_t{715160} * linear[p[channel_stride]] +
                   std::uint64_t{72169} * linear[p[2 * channel_stride]];
    return static_cast<std::int64_t>(y) < limit;
  }
};
inline is_darker darker_than(float luminosity, std::int64_t channel_stride) {
  constexpr double unit = 2147483648.0;
  is_darker d{{}, channel_stride, 0};
  for (int v = 0; v < 256; ++v) {
    const double gamma = math::exp(2.4 * math::log(fma(static_cast<double>(v), 1 / (255 * 1.055), 0.055 / 1.055)));
    const double light = v > 10 ? gamma : static_cast<double>(v) * (1 / (255 * 12.92));  // 10 < 255 * 0.04045 < 11
    d.linear[v] = static_cast<std::uint32_t>(fma(light, unit, 0.5));
  }
  const double f = fma(static_cast<double>(luminosity), 1.0 / 116, 16.0 / 116);
  const double y = luminosity > 8 ? f * f * f : static_cast<double>(luminosity) * (1 / (116 * 7.787));
  d.limit = static_cast<std::int64_t>(std::ceil(y * (1e6 * unit)));
  return d;
}

struct count_pixels {
  bit_volume bits;
  std::uint32_t* count;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    std::uint32_t n = 0;
    for (std::uint64_t word = bits.row(z, y)[w]; word != 0; word &= word - 1) ++n;
    if (n > 0) add_relaxed(count, n);
  }
};
struct report_tissue {
  const tissue_levels* levels;
  tissue_mask_result* result;
  SUTURE_FN void operator()(std::int64_t) const {
    *result = {levels->pixels > 0 ? mask_status::ok : mask_status::empty, levels->threshold, levels->pixels};
  }
};

struct tissue_layout {
  component_layout components;
  std::uint32_t* counts;
  tissue_levels* levels;
  tissue_layout(arena& memory, const extent3& n)
      : components(memory, n), counts(memory.allocate<std::uint32_t>(256)), levels(memory.allocate<tissue_levels>(1)) {}
};

}  // namespace detail::masks

namespace mask_work {
// The workspace has about 4.3 bytes a pixel, if rows have a multiple of 64 pixels.
using tissue_mask = needs<detail::masks::tissue_layout>;
}  // namespace mask_work

// Writes the tissue masks of thumbnails.
//   in       uint8 RGB views of one slice, 3 channels, any strides
//   out      uint8 masks of 0 and 1, one channel
//   results  one per sample, in memory that the executor writes (device memory for cuda)
// Errors: options outside their ranges, other channels or more slices, more than 2^27 pixels, views that do not match
// or overlap, a workspace too small.
template <class Executor, class In, class Out>
void tissue_mask(const Executor& exec, const In& inputs, const Out& outputs, std::span<tissue_mask_result> results,
                 const tissue_mask_options& options = {}) {
  using namespace detail::masks;
  constexpr std::string_view name = "tissue_mask";
  static_assert(std::is_same_v<std::remove_const_t<view_element_t<In>>, std::uint8_t> &&
                    std::is_same_v<view_element_t<Out>, std::uint8_t>,
                "suture: a tissue mask is made from and written as std::uint8_t");
  const auto in = as_views(inputs);
  const auto out = as_views(outputs);
  require(options.luminosity > 0 && options.luminosity <= 100, {name}, "luminosity ", options.luminosity,
          " must be above 0 and at most 100");
  require(options.least_size >= 0 && options.least_size <= 0xffffffff, {name}, "least size ", options.least_size,
          " must be in 0..2^32 - 1");
  const std::int64_t r = options.dilation_radius;
  const structuring_element disk{element_shape::ball, {0, r, r}};
  detail::masks::check(disk, {name});
  check_mask_views(in, out, name, false, false);
  mask_loops<Executor>::check_memory_of(exec, out, {name}, "output: ");
  check_mask_results(exec, results, in, name);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    require(in[i].channels == 3, where, in[i].channels, " channels, three expected");
    require(in[i].grid.extents[0] == 1, where, in[i].grid.extents[0], " slices, one expected");
    require(in[i].grid.voxels() <= std::int64_t{1} << 27, where, "extents ", in[i].grid.extents,
            " exceed 2^27 pixels; use a thumbnail");
  }
  for_masks<tissue_layout>(exec, in, name, [&](auto& loops, const tissue_layout& l, std::size_t i) {
    bit_volume a = l.components.a, b = l.components.b;
    const strided<const std::uint8_t> from = strided_of<const std::uint8_t>(in[i]);
    loops.each(256, clear_histogram{l.counts, l.levels});
    if (options.rule == tissue_rule::luminosity) {
      loops.pack(from, darker_than(options.luminosity, from.channel_stride), a);
    } else {
      const bool saturation = options.rule == tissue_rule::saturation;
      const rgb_level level{from.channel_stride, saturation};
      loops.words(a, count_levels{from, level, a.extents[2], l.counts});
      loops.each(1, choose_threshold{l.counts, saturation, l.levels});
      loops.pack(from, is_between_levels{level, l.levels}, a);
    }
    if (options.least_size > 1) {
      large_of(loops, l.components, a, b, connectivity::corners, static_cast<std::uint32_t>(options.least_size));
      std::swap(a, b);
    }
    if (r > 0) {
      dilate_of(loops, a, b, disk, false, false);
      std::swap(a, b);
    }
    loops.words(a, count_pixels{a, &l.levels->pixels});
    loops.each(1, report_tissue{l.levels, results.data() + i});
    loops.unpack(a, strided_of(out[i]));
  });
}

}  // namespace suture
