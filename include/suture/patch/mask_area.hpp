// SPDX-License-Identifier: Apache-2.0
// The exact share of a rectangle of a slide that a mask covers. The mask was made on the thumbnail of the slide; its
// pixels that the rectangle cuts count by their area inside.
#pragma once

#include <vector>

#include "../image/view.hpp"
#include "../stats/exact_sums.hpp"
#include "slide.hpp"

namespace suture {

namespace detail {

inline void check_mask_shape(const slide_layout& slide, const extent3& mask, const site& where) {
  const slide_level& base = slide.levels[0];
  const std::int64_t h = mask[1], w = mask[2];
  require(mask[0] == 1, where, "mask of ", mask[0], " slices, one expected");
  require(h > 0 && w > 0 && h <= base.height && w <= base.width, where, "mask of ", h, " by ", w,
          " pixels is empty or larger than the slide, ", base.height, " by ", base.width);
  require(h * w < std::int64_t{1} << 31, where, "mask of ", h, " by ", w, " pixels; use a thumbnail");
  const std::int64_t difference = h * base.width - w * base.height;
  require((difference < 0 ? -difference : difference) <= base.height + base.width, where, "mask of ", h, " by ", w,
          " pixels does not have the shape of the slide, ", base.height, " by ", base.width);
}

}  // namespace detail

// A summed-area table (Crow 1984) of a mask of the whole slide. Of a slide with H x W level-0 pixels, pixel (i, j) of a
// mask of h x w spans rows [i H / h, (i + 1) H / h) and columns [j W / w, (j + 1) W / w). It counts if it is not 0. The
// table takes 4 bytes a pixel; the mask is not kept.
// Errors: a mask of several channels or slices, of 2^31 or more pixels, larger than the slide, or of another aspect
// ratio (by more than one of its pixels along an axis: |h W - w H| > H + W).
class mask_area {
public:
  mask_area(const slide_layout& slide, const view<const std::uint8_t>& mask) {
    const site where{"mask_area"};
    detail::check_slide(slide, where);
    check(mask, where);
    require(mask.channels == 1, where, "mask of ", mask.channels, " channels, one expected");
    slide_height_ = slide.levels[0].height;
    slide_width_ = slide.levels[0].width;
    height_ = mask.grid.extents[1];
    width_ = mask.grid.extents[2];
    detail::check_mask_shape(slide, mask.grid.extents, where);
    table_.resize(static_cast<std::size_t>((height_ + 1) * (width_ + 1)), 0);
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::uint8_t* row = mask.data + y * mask.stride[1];
      std::uint32_t sum = 0;
      for (std::int64_t x = 0; x < width_; ++x) {
        sum += row[x * mask.stride[2]] != 0 ? 1u : 0u;
        table_[index(y + 1, x + 1)] = table_[index(y, x + 1)] + sum;
      }
    }
  }

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  // Returns the number of nonzero pixels of the mask.
  std::int64_t pixels() const { return table_.back(); }

  // Returns the share, 0 to 1, of level-0 pixels [y, y + size_y) x [x, x + size_x) that the mask covers: the exact
  // ratio of areas, rounded to double. Nothing outside the slide is covered. Errors: a size that is not positive.
  double share(std::int64_t y, std::int64_t x, std::int64_t size_y, std::int64_t size_x) const {
    require(size_y > 0 && size_x > 0, {"mask_area"}, "rectangle of ", size_y, " by ", size_x, " pixels");
    const int128 area = summed_area(y + size_y, x + size_x) - summed_area(y, x + size_x) - summed_area(y + size_y, x) +
                        summed_area(y, x);
    // The area is counted in units of 1 / (h w) level-0 pixels.
    const int128 whole = static_cast<int128>(size_y) * size_x * (height_ * width_);
    return static_cast<double>(area) / static_cast<double>(whole);
  }

  // Returns the linear index of the nonzero pixel with number `rank`, 0 .. pixels() - 1, in row-major order.
  std::int64_t ranked(std::int64_t rank) const {
    std::int64_t low = 0, high = height_;  // rows below `low` hold at most `rank` pixels
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (table_[index(middle, width_)] <= rank ? low : high) = middle;
    }
    const std::int64_t row = low;
    rank -= table_[index(row, width_)];
    const auto in_row = [&](std::int64_t x) {
      return static_cast<std::int64_t>(table_[index(row + 1, x)]) - table_[index(row, x)];
    };
    low = 0;
    high = width_;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (in_row(middle) <= rank ? low : high) = middle;
    }
    return row * width_ + low;
  }

private:
  std::size_t index(std::int64_t y, std::int64_t x) const { return static_cast<std::size_t>(y * (width_ + 1) + x); }

  // Returns the area that the mask covers above and left of level-0 position (y, x), in units of 1 / (h w) level-0
  // pixels. Along y a level-0 pixel has h such parts and a mask pixel H of them.
  int128 summed_area(std::int64_t y, std::int64_t x) const {
    const std::int64_t v = std::min(std::max<std::int64_t>(y, 0), slide_height_) * height_;
    const std::int64_t u = std::min(std::max<std::int64_t>(x, 0), slide_width_) * width_;
    const std::int64_t i = std::min(v / slide_height_, height_ - 1), j = std::min(u / slide_width_, width_ - 1);
    const int128 a = v - i * slide_height_, b = u - j * slide_width_;
    const auto at = [&](std::int64_t p, std::int64_t q) { return static_cast<int128>(table_[index(p, q)]); };
    return (slide_height_ - a) * ((slide_width_ - b) * at(i, j) + b * at(i, j + 1)) +
           a * ((slide_width_ - b) * at(i + 1, j) + b * at(i + 1, j + 1));
  }

  std::int64_t slide_height_ = 0, slide_width_ = 0, height_ = 0, width_ = 0;
  std::vector<std::uint32_t> table_;
};

}  // namespace suture
