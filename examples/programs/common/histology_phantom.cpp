// SPDX-License-Identifier: Apache-2.0
// Tissue is painted object by object as concentrations of hematoxylin and eosin, then turned into light. Objects lie
// on jittered lattices: what a lattice cell holds is drawn from a stream of its own, so a region needs to look at its
// own cells and their neighbors alone. The library's own elementary functions, and no contraction of products and sums
// (see examples/CMakeLists.txt), make it the same slide everywhere.
// Lengths are micrometers, positions (y, x) from the corner of the slide.
#include "histology_phantom.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "histology/artifacts.hpp"
#include "histology/jpeg_loss.hpp"
#include "histology/tissue.hpp"
#include "suture/math/elementary.hpp"

namespace suture::examples {
namespace {

using histology::canvas;

constexpr site here{"histology phantom"};

class histology_phantom final : public slide {
public:
  explicit histology_phantom(const histology_options& o) : options_(o) {
    require(
        o.height >= 16 && o.width >= 16 && o.height <= (std::int64_t{1} << 20) && o.width <= (std::int64_t{1} << 20),
        here, "extents ", o.height, " by ", o.width, " must be in 16..2^20");
    require(std::isfinite(o.mpp) && o.mpp > 0.05 && o.mpp < 20, here, "mpp ", o.mpp, " must be in 0.05..20");
    require(o.hematoxylin_strength >= 0 && o.eosin_strength >= 0 && o.noise >= 0, here,
            "strengths and noise must not be negative");
    require(o.jpeg_quality >= 0 && o.jpeg_quality <= 100, here, "quality ", o.jpeg_quality, " must be in 0..100");
    name_ = "synthetic H&E slide, seed " + std::to_string(o.seed);
    for (const std::int64_t d : {1, 4, 16})
      layout_.levels.push_back({(o.height + d - 1) / d, (o.width + d - 1) / d, static_cast<double>(d)});
    layout_.mpp = o.mpp;
    mpp_source_ = "phantom";
    for (std::size_t k = 0; k < 3; ++k) background_[k] = static_cast<std::uint8_t>(o.light[k]);
    height_um_ = static_cast<float>(static_cast<double>(o.height) * o.mpp);
    width_um_ = static_cast<float>(static_cast<double>(o.width) * o.mpp);
    artifacts_ = histology::artifacts::of(o.seed, height_um_, width_um_);
  }

  std::vector<std::uint8_t> labels(std::int64_t y, std::int64_t x, std::int32_t level, std::int64_t height,
                                   std::int64_t width) const override {
    const std::int64_t d = downsample(level);
    std::vector<std::uint8_t> result(static_cast<std::size_t>(height * width));
    const auto copy_from = [&](const painted& from) {
      const std::int64_t top = floor_div(y, d) - from.top, left = floor_div(x, d) - from.left;
      if (from.level != level || top < 0 || left < 0 || top + height > from.height || left + width > from.width)
        return false;
      for (std::int64_t j = 0; j < height; ++j)
        std::copy_n(from.labels.begin() + (top + j) * from.width + left, width, result.begin() + j * width);
      return true;
    };
    bool found = false;
    {
      const std::lock_guard lock(last_mutex_);
      found = copy_from(last_);
    }
    if (!found) {
      canvas c(floor_div(y, d), floor_div(x, d), height, width, pixel(level));
      paint(c);
      result = std::move(c.label);
    }
    const slide_level& l = layout_.levels[static_cast<std::size_t>(level)];
    for (std::int64_t j = 0; j < height; ++j)
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t row = floor_div(y, d) + j, column = floor_div(x, d) + i;
        if (row < 0 || column < 0 || row >= l.height || column >= l.width)
          result[static_cast<std::size_t>(j * width + i)] = 0;
      }
    return result;
  }

private:
  static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
  std::int64_t downsample(std::int32_t level) const {
    return static_cast<std::int64_t>(layout_.levels[static_cast<std::size_t>(level)].downsample);
  }
  float pixel(std::int32_t level) const {
    return static_cast<float>(layout_.mpp * layout_.levels[static_cast<std::size_t>(level)].downsample);
  }

  // Everything but focus, pen and light.
  void paint(canvas& c) const {
    histology::paint_tissue(c, options_.seed, height_um_, width_um_);
    artifacts_.fold(c, options_.seed);
  }

  void read_inside(std::int64_t y, std::int64_t x, std::int32_t level, rgb_image& into) const override {
    const slide_level& l = layout_.levels[static_cast<std::size_t>(level)];
    const std::int64_t top = y / downsample(level), left = x / downsample(level);
    const std::int64_t bottom = std::min(top + into.height, l.height), right = std::min(left + into.width, l.width);
    if (bottom <= top || right <= left) return;
    // Whole blocks of 8 x 8, as they are compressed, and a margin for what is out of focus.
    constexpr std::int64_t block = 8;
    const std::int64_t y0 = top / block * block, x0 = left / block * block;
    const std::int64_t rows = (bottom - y0 + block - 1) / block * block,
                       columns = (right - x0 + block - 1) / block * block;
    const std::int64_t margin = 2 * block;
    canvas c(y0 - margin, x0 - margin, rows + 2 * margin, columns + 2 * margin, pixel(level));
    paint(c);
    artifacts_.defocus(c, margin);
    {
      const std::lock_guard lock(last_mutex_);
      last_ = {level, y0 - margin, x0 - margin, c.height(), c.width(), std::move(c.label)};
    }

    std::vector<float> light(static_cast<std::size_t>(rows * columns * 3));
    constexpr std::array<float, 3> ink_od{1.75f, 0.42f, 0.95f};
    for (std::int64_t j = 0; j < rows; ++j) {
      const stream row(
          {options_.seed, 0, static_cast<std::uint64_t>(y0 + j), histology::sensor, static_cast<std::uint16_t>(level)});
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto from = static_cast<std::size_t>((j + margin) * c.width() + i + margin);
        const float h = c.h[from] * options_.hematoxylin_strength, e = c.e[from] * options_.eosin_strength;
        const float pen = artifacts_.ink(c.at(j + margin, i + margin));
        const philox_block words = row.block(static_cast<std::uint64_t>(x0 + i));
        for (std::size_t k = 0; k < 3; ++k) {
          const float od = h * options_.hematoxylin[k] + e * options_.eosin[k] + pen * ink_od[k];
          // The sum of four bytes is normal enough.
          const std::uint32_t w = words.word[k];
          const auto sum = static_cast<float>((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24));
          light[static_cast<std::size_t>((j * columns + i) * 3) + k] =
              options_.light[k] * math::exp(-od) + options_.noise * (sum - 510) * (1 / 147.8f);
        }
      }
    }
    if (options_.jpeg_quality > 0) histology::lose_as_jpeg(light, rows, columns, options_.jpeg_quality);
    for (std::int64_t j = top; j < bottom; ++j)
      for (std::int64_t i = left; i < right; ++i)
        for (std::int64_t k = 0; k < 3; ++k)
          into.at(j - top, i - left)[k] = static_cast<std::uint8_t>(
              std::clamp(light[static_cast<std::size_t>(((j - y0) * columns + i - x0) * 3 + k)] + 0.5f, 0.0f, 255.0f));
  }

  histology_options options_;
  float height_um_ = 0, width_um_ = 0;
  histology::artifacts artifacts_{};

  // Who reads a region often asks for its labels next.
  struct painted {
    std::int32_t level = -1;
    std::int64_t top = 0, left = 0, height = 0, width = 0;
    std::vector<std::uint8_t> labels;
  };
  mutable std::mutex last_mutex_;
  mutable painted last_;
};

}  // namespace

std::unique_ptr<slide> make_histology_phantom(const histology_options& options) {
  return std::make_unique<histology_phantom>(options);
}

}  // namespace suture::examples
