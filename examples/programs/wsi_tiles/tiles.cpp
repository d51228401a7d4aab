// SPDX-License-Identifier: Apache-2.0
#include "tiles.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace suture::examples {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Both stains absorb green most, so what lets through more green than red is ink.
bool is_ink(const std::uint8_t* rgb) { return rgb[1] > rgb[0] + 8; }

tile_region padded(const slide_layout& layout, const tile_region& tile, const recipe& r) {
  const double field = static_cast<double>(r.size) * r.mpp / layout.mpp;
  return region_about(layout, static_cast<double>(tile.y) + 0.5 * field, static_cast<double>(tile.x) + 0.5 * field,
                      read_size(r), r.mpp);
}

double spacing_of(const slide_layout& layout, const tile_region& region) {
  return layout.mpp * layout.levels[static_cast<std::size_t>(region.level)].downsample / 1000;
}

// A region of a picture, of one level, that goes on beyond its edges as its mirror image.
rgb_image mirrored(const slide& from, const tile_region& r) {
  const slide_level& all = from.layout().levels[0];
  const auto fold = [](std::int64_t i, std::int64_t n) {
    const std::int64_t period = 2 * n, at = ((i % period) + period) % period;
    return at < n ? at : period - 1 - at;
  };
  const rgb_image picture = from.read(0, 0, 0, all.height, all.width);
  rgb_image result{r.size, r.size, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * r.size * r.size))};
  for (std::int64_t y = 0; y < r.size; ++y)
    for (std::int64_t x = 0; x < r.size; ++x)
      std::copy_n(picture.at(fold(r.y + y, all.height), fold(r.x + x, all.width)), 3, result.at(y, x));
  return result;
}

// Ground truth where there is some, else the tissue of the thumbnail.
std::vector<std::uint8_t> labels_of(const listed_slide& from, const tile_region& r) {
  std::vector<std::uint8_t> labels = from.image->labels(r.y, r.x, r.level, r.size, r.size);
  if (!labels.empty()) return labels;
  if (from.whole) return std::vector<std::uint8_t>(static_cast<std::size_t>(r.size * r.size), 1);
  const slide_layout& layout = from.image->layout();
  const slide_level& base = layout.levels[0];
  const double downsample = layout.levels[static_cast<std::size_t>(r.level)].downsample;
  const auto pixel = [&](std::int64_t start, std::int64_t i, std::int64_t pixels, std::int64_t length) {
    const double place = (static_cast<double>(start) + (static_cast<double>(i) + 0.5) * downsample) *
                         static_cast<double>(pixels) / static_cast<double>(length);
    return place < 0 || place >= static_cast<double>(pixels) ? std::int64_t{-1} : static_cast<std::int64_t>(place);
  };
  labels.resize(static_cast<std::size_t>(r.size * r.size), 0);
  for (std::int64_t j = 0; j < r.size; ++j) {
    const std::int64_t y = pixel(r.y, j, from.thumbnail.height, base.height);
    for (std::int64_t i = 0; i < r.size && y >= 0; ++i) {
      const std::int64_t x = pixel(r.x, i, from.thumbnail.width, base.width);
      if (x >= 0)
        labels[static_cast<std::size_t>(j * r.size + i)] =
            from.mask[static_cast<std::size_t>(y * from.thumbnail.width + x)];
    }
  }
  return labels;
}

}  // namespace

listed_slide list_tiles(std::unique_ptr<slide> image, std::size_t number, const listing& how) {
  listed_slide result;
  result.number = number;
  result.whole = how.whole;
  result.thumbnail = thumbnail_of(*image, 1024);
  const view<const std::uint8_t> picture = result.thumbnail.view_of();
  result.mask.assign(static_cast<std::size_t>(picture.grid.voxels()), 1);
  if (!how.whole) {
    // Gaps of up to 24 micrometers between fibers belong to the tissue: the mask is dilated, then eroded.
    const slide_level& base = image->layout().levels[0];
    const double mpp =
        image->layout().mpp * static_cast<double>(base.width) / static_cast<double>(picture.grid.extents[2]);
    const std::int64_t radius = std::clamp<std::int64_t>(static_cast<std::int64_t>(12 / mpp + 0.5), 1, 16);
    const auto mask = contiguous(result.mask.data(), picture.grid);
    tissue_mask_result found{};
    tissue_mask(cpu{}, picture, mask, std::span(&found, 1), {.least_size = 64, .dilation_radius = radius});
    binary_erosion(cpu{}, mask, mask, {element_shape::ball, {0, radius, radius}}, true);
    result.threshold = found.threshold;
    for (std::size_t i = 0; i < result.mask.size(); ++i)
      if (is_ink(result.thumbnail.pixels.data() + 3 * i)) result.mask[i] = 0;
  }
  const mask_area tissue(image->layout(), contiguous<const std::uint8_t>(result.mask.data(), picture.grid));
  const slide_level& all = image->layout().levels[0];
  const double span = static_cast<double>(how.size) * how.mpp / image->layout().mpp;
  require(span < static_cast<double>(std::min(all.height, all.width)) + 1, {"--tile"}, image->name(), ": a tile of ",
          how.size, " pixels at ", how.mpp, " um is ", span,
          " pixels of this slide wide, which does not fit the slide of ", all.height, " x ", all.width,
          "; ask for a smaller --tile or --mpp");
  result.tiles = grid_tiles(image->layout(), tissue,
                            {.size = how.size, .stride = how.stride, .mpp = how.mpp, .least_tissue = how.least_tissue});
  require(!result.tiles.empty(), {"--least-tissue"}, image->name(),
          ": no tile has enough tissue; ask for less, or for a smaller --tile");
  // A random order that does not change when more tiles are taken.
  std::vector<std::uint32_t> key;
  const stream random({how.seed, 0, number, 0, 0});
  for (std::size_t i = 0; i < result.tiles.size(); ++i) key.push_back(random.block(i).word[0]);
  result.order.resize(result.tiles.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  std::stable_sort(result.order.begin(), result.order.end(), [&](auto a, auto b) { return key[a] < key[b]; });
  result.image = std::move(image);
  return result;
}

rgb_image read_plain(const listed_slide& from, std::size_t tile) { return from.image->read(from.tiles[tile].region); }

read_tile read_with_margin(const listed_slide& from, std::size_t tile, const recipe& r) {
  const slide_layout& layout = from.image->layout();
  const tile_region region = padded(layout, from.tiles[tile].region, r);
  read_tile t;
  t.slide = from.number;
  t.id = (static_cast<std::uint64_t>(from.number) << 32) + tile;
  t.pixels = from.whole ? mirrored(*from.image, region) : from.image->read(region);
  t.labels = labels_of(from, region);
  t.spacing_mm = spacing_of(layout, region);
  return t;
}

tile_quality quality_of_tile(const read_tile& t, const recipe& r) {
  const std::int64_t n = t.pixels.width, inner = std::max<std::int64_t>(1, n * r.size / read_size(r));
  const std::int64_t margin = (n - inner) / 2;
  view<const std::uint8_t> middle = t.pixels.view_of();
  middle.data = t.pixels.at(margin, margin);
  middle.grid.extents = {1, inner, inner};
  sharpness found;
  fit(cpu{1}, fit_sharpness{}, middle, everything{}, std::span(&found, 1));
  return quality_of(found);
}

tile_reader::tile_reader(std::vector<listed_slide>& slides, const recipe& r, std::size_t count,
                         std::size_t batch_size) {
  thread_ = std::thread([this, &slides, r, count, batch_size] {
    try {
      read(slides, r, count, batch_size);
    } catch (...) {
      problem_ = std::current_exception();
    }
    queue_.close();
  });
}

tile_reader::~tile_reader() {
  queue_.close();
  thread_.join();
}

std::optional<std::vector<read_tile>> tile_reader::next() {
  const double start = now();
  auto tiles = queue_.pop();
  waiting_ += now() - start;
  if (!tiles && problem_ != nullptr) std::rethrow_exception(problem_);
  return tiles;
}

void tile_reader::read(std::vector<listed_slide>& slides, const recipe& r, std::size_t count, std::size_t batch_size) {
  std::vector<read_tile> batch;
  std::size_t taken = 0;
  bool more = true;
  for (std::size_t turn = 0; more && taken < count; ++turn) {
    more = false;
    for (listed_slide& s : slides) {
      if (!s.problem.empty() || turn >= s.order.size() || taken == count) continue;
      more = true;
      const std::size_t tile = s.order[turn];
      ++taken;
      const double start = now();
      try {
        read_tile t = read_with_margin(s, tile, r);
        const tile_quality quality = quality_of_tile(t, r);
        reading_ += now() - start;
        (quality == tile_quality::good ? s.good : quality == tile_quality::blank ? s.blank : s.blurred).push_back(tile);
        if (quality != tile_quality::good) continue;
        batch.push_back(std::move(t));
      } catch (const error& problem) {
        s.problem = problem.what();
        continue;
      }
      if (batch.size() == batch_size && !queue_.push(std::exchange(batch, {}))) return;
    }
  }
  if (!batch.empty()) queue_.push(std::move(batch));
}

}  // namespace suture::examples
