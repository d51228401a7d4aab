// SPDX-License-Identifier: Apache-2.0
// Whole-slide images, whatever they come from: a file that OpenSlide reads (SVS, pyramidal TIFF, ...), one picture, or
// something made up. Positions are pixels of level 0; pixels come as RGB on the slide's background color.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "rgb_image.hpp"
#include "suture/patch/slide.hpp"

namespace suture::examples {

class slide {
public:
  virtual ~slide() = default;

  const std::string& name() const { return name_; }
  // Levels and micrometers per pixel; valid for every slide that could be opened.
  const slide_layout& layout() const { return layout_; }
  // What the micrometers per pixel were taken from, for the report.
  const std::string& mpp_source() const { return mpp_source_; }
  // What scanners leave empty is shown in this color.
  const std::array<std::uint8_t, 3>& background() const { return background_; }

  // height x width pixels of a level, from level-0 pixel (y, x) on; background outside the slide. May be called by
  // several threads. Throws suture::error naming the slide where it is damaged.
  rgb_image read(std::int64_t y, std::int64_t x, std::int32_t level, std::int64_t height, std::int64_t width) const;
  rgb_image read(const tile_region& r) const { return read(r.y, r.x, r.level, r.size, r.size); }

  // What is known about the same pixels: a label for each, none for slides without ground truth.
  virtual std::vector<std::uint8_t> labels(std::int64_t y, std::int64_t x, std::int32_t level, std::int64_t height,
                                           std::int64_t width) const;

protected:
  // y and x not negative; what lies beyond the far edges is background.
  virtual void read_inside(std::int64_t y, std::int64_t x, std::int32_t level, rgb_image& into) const = 0;
  // Throws suture::error if the levels are no pyramid.
  void check_levels() const;

  std::string name_;
  slide_layout layout_;
  std::string mpp_source_;
  std::array<std::uint8_t, 3> background_{255, 255, 255};
};

// A slide file. The micrometers per pixel are the mean of what it states along x and y (openslide.mpp-x and -y, else
// the resolution of the TIFF); where it states none, `assumed_mpp` if that is above 0.
// Throws suture::error with the reason: no slide file, damaged, truncated, a TIFF whose sizes its file cannot hold (see
// check_tiff), levels that are no pyramid, no resolution; or a program built without OpenSlide. A file that was made to
// can still stop the process: what comes from elsewhere is for open_slide_apart.
std::unique_ptr<slide> open_slide(const std::filesystem::path& path, double assumed_mpp = 0);

// A PNG or TIFF picture as a slide of one level, for tiles cut out before. Throws as read_image_file and for a picture
// that states no resolution where none is assumed.
std::unique_ptr<slide> open_picture(const std::filesystem::path& path, double assumed_mpp = 0);

// The whole slide, made smaller by averaging areas, exactly: the longer side has `longest` pixels, or as many as level
// 0 where that is smaller. Read in strips from the smallest level that is large enough.
rgb_image thumbnail_of(const slide& from, std::int64_t longest);

}  // namespace suture::examples
