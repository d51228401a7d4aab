// SPDX-License-Identifier: Apache-2.0
// The bytes are a slide, or a picture.
#include <cmath>

#include "common/slide.hpp"
#include "fuzz.hpp"

namespace {

using namespace suture::examples;
using fuzz::must_hold;

void look_at(const slide& s) {
  const auto& levels = s.layout().levels;
  must_hold(!levels.empty(), "a slide that was opened has a level");
  must_hold(std::isfinite(s.layout().mpp) && s.layout().mpp > 0, "a slide that was opened has a resolution");
  for (const auto& level : levels)
    must_hold(level.height > 0 && level.width > 0 && level.downsample >= 1, "the levels of a slide have pixels");
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    for (const std::int64_t from : {std::int64_t{-3}, levels[0].height / 2, levels[0].height - 1}) {
      const rgb_image part = s.read(from, from, number, 16, 24);
      must_hold(part.pixels.size() == 16 * 24 * 3, "a region has as many pixels as were asked for");
    }
  }
  if (levels.back().height <= 4096 && levels.back().width <= 4096) thumbnail_of(s, 32);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file file(data, size);
  fuzz::accepted([&] { look_at(*open_slide(file.path(), 0.5)); });
  fuzz::accepted([&] { look_at(*open_picture(file.path(), 0.5)); });
  return 0;
}
