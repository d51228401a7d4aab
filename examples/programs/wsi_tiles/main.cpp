// SPDX-License-Identifier: Apache-2.0
// Whole-slide images become augmented training tiles of one stain; pictures show them, and a report carries the digests
// that must be the same on every machine.
#include <algorithm>
#include <array>
#include <iostream>
#include <new>
#include <set>
#include <sstream>

#include "common/histology_phantom.hpp"
#include "common/output_folder.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/sample_data.hpp"
#include "common/slide_process.hpp"
#include "common/stain_json.hpp"
#include "pictures.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

struct options {
  std::vector<std::string> slides, tiles;
  std::string sample, reference, stains, backend = "auto", out = "wsi_tiles.out";
  std::int64_t batch_size = 16, count = 48, tile = 256, stride = 0;
  int threads = 0;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  double mpp = 0.5, assumed_mpp = 0, least_tissue = 0.5;
  bool evaluation = false;
};

constexpr int some_left_out = 3;         // exit status
constexpr std::size_t most_fitted = 16;  // tiles of a slide that its stains are fitted to
constexpr std::size_t most_shown = 8;

struct skipped {
  std::string name, reason;
};

// What to open, in the order asked for.
struct source {
  std::string name;
  std::function<std::unique_ptr<slide>()> open;
};

std::vector<source> sources_of(const options& o) {
  std::vector<source> sources;
  for (const std::string& file : o.slides)
    sources.push_back({file, [file, &o] { return open_slide_apart(file, o.assumed_mpp); }});
  for (const std::string& file : o.tiles)
    sources.push_back({file, [file, &o] { return open_picture(file, o.assumed_mpp > 0 ? o.assumed_mpp : o.mpp); }});
#if defined(SUTURE_EXAMPLE_OPENSLIDE)
  const bool real = o.sample != "phantom";
#else
  const bool real = o.sample == "cmu1";
#endif
  if (sources.empty() && real) {
    const std::string file = sample_file("histology/CMU-1-Small-Region.svs").string();
    sources.push_back({file, [file] { return open_slide_apart(file, 0); }});
  }
  if (!sources.empty()) return sources;
  // Two laboratories: the second stains fainter, and bluer.
  sources.push_back({"phantom", [&o] { return make_histology_phantom({.seed = o.seed}); }});
  sources.push_back({"phantom", [&o] {
                       return make_histology_phantom({.seed = o.seed + 1,
                                                      .hematoxylin = {0.72f, 0.64f, 0.25f},
                                                      .eosin = {0.22f, 0.90f, 0.30f},
                                                      .hematoxylin_strength = 0.7f,
                                                      .eosin_strength = 0.65f,
                                                      .light = {236, 238, 233}});
                     }});
  return sources;
}

// A picture as a whole; of a slide some tiles, the good ones among the first in order.
std::vector<rgb_image> tiles_to_fit(const listed_slide& from) {
  std::vector<rgb_image> tiles;
  if (from.whole) {
    const slide_level& all = from.image->layout().levels[0];
    tiles.push_back(from.image->read(0, 0, 0, all.height, all.width));
    return tiles;
  }
  for (std::size_t i = 0; i < std::min(from.order.size(), 2 * most_fitted) && tiles.size() < most_fitted; ++i) {
    rgb_image tile = read_plain(from, from.order[i]);
    sharpness found;
    fit(cpu{}, fit_sharpness{}, tile.view_of(), everything{}, std::span(&found, 1));
    if (quality_of(found) == tile_quality::good) tiles.push_back(std::move(tile));
  }
  if (tiles.empty()) tiles.push_back(read_plain(from, from.order[0]));
  return tiles;
}

listing listing_of(const options& o, bool whole) {
  return {o.tile, o.stride, o.mpp, whole ? 0 : o.least_tissue, whole, o.seed};
}

// A slide where OpenSlide reads it, else a picture, whose stains the others are to have.
stain_reference reference_from(const options& o) {
  std::unique_ptr<slide> from;
  bool whole = false;
  try {
    from = open_slide_apart(o.reference, o.assumed_mpp);
  } catch (const error&) {
    from = open_picture(o.reference, o.assumed_mpp > 0 ? o.assumed_mpp : o.mpp);
    whole = true;
  }
  listing how = listing_of(o, whole);
  if (whole) how.size = std::min({how.size, from->layout().levels[0].height, from->layout().levels[0].width});
  const listed_slide listed = list_tiles(std::move(from), 0, how);
  return reference_of(make_cpu_backend({}, o.threads)->fit(tiles_to_fit(listed)));
}

// The stains of a slide: those kept under its name, or fitted now, and kept where they could be.
stain_basis stains_of(const options& o, const listed_slide& from, backend& executor) {
  if (o.stains.empty()) return executor.fit(tiles_to_fit(from));
  const fs::path file = fs::path(o.stains) / (fs::path(from.image->name()).filename().string() + ".json");
  if (fs::exists(file)) return basis_of(read_stains(file), slide_fit);
  const stain_basis found = executor.fit(tiles_to_fit(from));
  if (found.status == stain_status::ok) write_stains(file, reference_of(found));
  return found;
}

// Stains are kept by the name of the slide alone.
void require_distinct_names(const options& o) {
  std::set<std::string> names;
  for (const auto& files : {o.slides, o.tiles})
    for (const std::string& file : files)
      require(names.insert(fs::path(file).filename().string()).second, site{"stains"}, file,
              ": another slide has this name");
}

std::vector<listed_slide> open_slides(const options& o, backend& executor, std::vector<skipped>& left_out) {
  const std::vector<source> sources = sources_of(o);
  std::vector<listed_slide> slides;
  progress bar("slides", static_cast<std::int64_t>(sources.size()));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    try {
      listed_slide s = list_tiles(sources[i].open(), i, listing_of(o, !o.tiles.empty()));
      s.stains = stains_of(o, s, executor);
      slides.push_back(std::move(s));
    } catch (const std::bad_alloc&) {
      left_out.push_back({sources[i].name, sources[i].name + ": not enough memory"});
    } catch (const std::exception& problem) {
      left_out.push_back({sources[i].name, reason_of(problem)});
    }
    bar.advance();
  }
  bar.finish();
  for (const skipped& s : left_out) std::cerr << "skipped: " << s.reason << '\n';
  require(!slides.empty(), site{"--slide"}, "no slide could be used; the reasons stand above");
  return slides;
}

report describe(const listed_slide& s) {
  const slide_layout& layout = s.image->layout();
  report r;
  r["name"] = s.image->name();
  r["extents"] = {layout.levels[0].height, layout.levels[0].width};
  r["levels"] = layout.levels.size();
  r["mpp"] = layout.mpp;
  r["mpp_source"] = s.image->mpp_source();
  r["level_read"] = s.tiles[0].region.level;
  r["tissue_threshold"] = s.threshold;
  r["tiles"] = s.tiles.size();
  r["used"] = s.good.size();
  r["blank"] = s.blank.size();
  r["blurred"] = s.blurred.size();
  r["stain_status"] = std::string(status_name(s.stains.status));
  report stains = report::array();
  for (int k = 0; k < 2; ++k) stains.push_back({s.stains.stains[0][k], s.stains.stains[1][k], s.stains.stains[2][k]});
  r["stains"] = stains;
  r["max_concentrations"] = {s.stains.max_concentration[0], s.stains.max_concentration[1]};
  if (!s.problem.empty()) r["problem"] = s.problem;
  return r;
}

// What all tiles together come to.
struct made_tiles {
  std::size_t count = 0;
  std::uint64_t image_digest = 0, label_digest = 0;
  std::array<std::uint64_t, 256> label_pixels{};
  std::vector<sheet_entry> shown;
  double seconds_reading = 0, seconds_waiting = 0;
};

// The tile and where its upper left corner lies on the slide.
std::string caption_of(const listed_slide& from, std::size_t tile) {
  const tile_region& at = from.tiles[tile].region;
  const double mm = from.image->layout().mpp / 1000;
  std::ostringstream words;
  words.precision(3);
  words << from.image->name() << ", tile " << tile;
  if (!from.whole)
    words << " at x " << static_cast<double>(at.x) * mm << ", y " << static_cast<double>(at.y) * mm << " mm";
  return words.str();
}

// At most `count` tiles, in batches.
made_tiles make_tiles(const options& o, const recipe& r, backend& executor, std::vector<listed_slide>& slides,
                      std::size_t count) {
  std::vector<const listed_slide*> by_number;
  for (const listed_slide& s : slides) {
    by_number.resize(s.number + 1);
    by_number[s.number] = &s;
  }
  const auto pixels = static_cast<std::size_t>(r.size * r.size);
  const grid shape{.extents = {1, r.size, r.size}};
  made_tiles all;
  progress bar("tiles", static_cast<std::int64_t>(count));
  tile_reader reader(slides, r, count, static_cast<std::size_t>(o.batch_size));
  while (const auto tiles = reader.next()) {
    std::vector<stain_basis> stains;
    for (const read_tile& t : *tiles) stains.push_back(by_number[t.slide]->stains);
    const batch made = executor.run(*tiles, stains, {o.seed, o.epoch, o.evaluation});
    for (std::size_t i = 0; i < tiles->size(); ++i) {
      const read_tile& tile = (*tiles)[i];
      const half* image = made.images.data() + 3 * i * pixels;
      const std::uint8_t* labels = made.labels.data() + i * pixels;
      all.image_digest = combine_digest(all.image_digest, tile.id, digest(contiguous(image, shape, 3)));
      all.label_digest = combine_digest(all.label_digest, tile.id, digest(contiguous(labels, shape)));
      for (std::size_t p = 0; p < pixels; ++p) ++all.label_pixels[labels[p]];
      if (all.shown.size() == most_shown) continue;
      // Evaluation is the same pipeline with chance left out: the tile normalized alone.
      const batch calm = executor.run({tile}, {stains[i]}, {o.seed, o.epoch, true});
      all.shown.push_back({caption_of(*by_number[tile.slide], tile.id & 0xffffffffu),
                           plain(tile, r),
                           picture_of(calm, 0, r.size),
                           picture_of(made, i, r.size),
                           {labels, labels + pixels}});
    }
    all.count += tiles->size();
    bar.advance(static_cast<std::int64_t>(tiles->size()));
  }
  bar.finish();
  all.seconds_reading = reader.seconds_reading();
  all.seconds_waiting = reader.seconds_waiting();
  return all;
}

// What labels 1, 2, .. stand for: of the phantom what it is made of, of other slides where there is tissue.
std::vector<std::string> label_names(const slide& from) {
  if (from.labels(0, 0, 0, 1, 1).empty()) return {"tissue"};
  return {"stroma", "gland", "nucleus"};
}

void write_pictures(const options& o, const recipe& r, const std::string& backend_name,
                    const std::vector<listed_slide>& slides, const made_tiles& made) {
  for (const listed_slide& s : slides)
    write_overview(fs::path(o.out) / ("overview_" + std::to_string(s.number) + ".png"), s);
  const double width = static_cast<double>(r.size) * r.mpp;
  std::ostringstream scale;
  scale << "stained slides, tiles of " << width << " um at " << r.mpp << " um a pixel";
  write_sheet(fs::path(o.out) / "contact_sheet.png",
              sheet_title(scale.str(), made.shown.size(), made.count, "tiles",
                          o.evaluation ? "as for evaluation" : "augmented", backend_name),
              label_names(*slides.front().image), made.shown, width);
}

report make_report(const options& o, const recipe& r, const backend& executor, const std::vector<listed_slide>& slides,
                   const std::vector<skipped>& left_out, const made_tiles& made) {
  const run_statistics& spent = executor.spent();
  report result = begin_report("wsi_tiles", executor.name(), executor.device());
  result["slides"] = report::array();
  for (const listed_slide& s : slides) result["slides"].push_back(describe(s));
  result["skipped"] = report::array();
  for (const skipped& s : left_out) result["skipped"].push_back({{"name", s.name}, {"reason", s.reason}});
  result["seed"] = o.seed;
  result["epoch"] = o.epoch;
  result["evaluation"] = o.evaluation;
  result["count"] = made.count;
  result["batch_size"] = o.batch_size;
  result["tile"] = r.size;
  result["mpp"] = r.mpp;
  result["image_digest"] = hexadecimal(made.image_digest);
  result["label_digest"] = hexadecimal(made.label_digest);
  report pixels_of = report::object();
  for (std::size_t label = 0; label < 256; ++label)
    if (made.label_pixels[label] > 0) pixels_of[std::to_string(label)] = made.label_pixels[label];
  result["label_names"] = label_names(*slides.front().image);
  result["label_pixels"] = pixels_of;
  report_runs(result, spent);
  result["seconds_reading"] = made.seconds_reading;
  result["seconds_waiting"] = made.seconds_waiting;
  const auto pixels = static_cast<double>(r.size * r.size) * static_cast<double>(made.count);
  result["pixels_per_second"] = spent.seconds > 0 ? pixels / spent.seconds : 0.0;
  return result;
}

report process_slides(const options& o, const recipe& r) {
  const auto executor = o.backend == "cuda" ? make_cuda_backend(r) : make_cpu_backend(r, o.threads);
  std::vector<skipped> left_out;
  std::vector<listed_slide> slides = open_slides(o, *executor, left_out);
  std::size_t count = 0;
  for (const listed_slide& s : slides) count += s.tiles.size();
  if (o.count != 0) count = std::min(count, static_cast<std::size_t>(o.count));

  const made_tiles made = make_tiles(o, r, *executor, slides, count);
  for (const listed_slide& s : slides)
    if (!s.problem.empty()) {
      std::cerr << "given up: " << s.problem << '\n';
      left_out.push_back({s.image->name(), s.problem});
    }
  require(made.count > 0, site{"tiles"}, "every tile was blank or blurred, or its slide damaged");
  write_pictures(o, r, executor->name(), slides, made);
  return make_report(o, r, *executor, slides, left_out, made);
}

int run_program(int argc, char** argv) {
  options o;
  CLI::App app{"Makes augmented training tiles of one stain from whole-slide images."};
  app.option_defaults()->always_capture_default();
  app.footer(
      "Each slide is read by a process of its own. Damaged slides are left out and named, with the reason, on "
      "standard\n"
      "error and in report.json; the others are finished, and the exit status is 3. 0 is success, 2 a mistake in the\n"
      "command line, 1 everything else.");
  app.add_option("--slide", o.slides, "slides, as OpenSlide reads them")->type_name("FILE...")->default_str("");
  app.add_option("--sample", o.sample,
                 "data to try, without --slide and --tiles: a part of a real slide (default), or two synthetic ones")
      ->check(CLI::IsMember({"cmu1", "phantom"}));
  app.add_option("--tiles", o.tiles, "tiles cut out before, PNG or TIFF")->type_name("FILE...")->default_str("");
  app.add_option("--reference", o.reference, "slide or tile whose stains the others get; without, published ones")
      ->type_name("FILE")
      ->default_str("");
  app.add_option("--stains", o.stains,
                 "folder where the stains of slides are kept: used if there, else fitted and kept")
      ->type_name("FOLDER")
      ->default_str("");
  add_backend_option(app, o.backend);
  app.add_option("--batch-size", o.batch_size, "number of tiles made at once")->check(CLI::Range(1, 65535));
  app.add_option("--threads", o.threads, "threads of the CPU backend, 0: all there are")->check(CLI::Range(0, 4096));
  app.add_option("--seed", o.seed, "number that everything random follows from");
  app.add_option("--epoch", o.epoch, "pass over the data; each draws its own random numbers");
  app.add_option("--count", o.count, "number of tiles to read in all, spread over the slides; 0: all there are")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--tile", o.tile, "width and height of a tile in pixels")->check(CLI::Range(16, 4096));
  app.add_option("--stride", o.stride, "distance of tiles in pixels, 0: the size of a tile")
      ->check(CLI::Range(0, 65536));
  app.add_option("--mpp", o.mpp, "micrometers per pixel of the tiles")->check(CLI::Range(0.05, 32.0));
  app.add_option("--assume-mpp", o.assumed_mpp,
                 "micrometers per pixel of slides that do not state theirs, 0: skip them")
      ->check(CLI::Range(0.0, 32.0));
  app.add_option("--least-tissue", o.least_tissue, "share of a tile that must be tissue")->check(CLI::Range(0.0, 1.0));
  app.add_flag("--eval", o.evaluation, "as for evaluation: nothing random");
  app.add_option("--out", o.out, "folder for contact_sheet.png, overview_N.png and report.json");
  const auto done = parse_options(app, argc, argv, [&] {
    if (!o.sample.empty() && !(o.slides.empty() && o.tiles.empty()))
      throw CLI::ValidationError("--sample", "excludes --slide and --tiles");
    if (!o.slides.empty() && !o.tiles.empty()) throw CLI::ValidationError("--tiles", "excludes --slide");
  });
  if (done) return *done;
  o.backend = chosen_backend(o.backend, why_no_cuda());
  const output_folder folder(o.out);
  if (!o.stains.empty()) {
    require_writable_folder(o.stains);
    require_distinct_names(o);
  }
  recipe r{o.tile, o.mpp, {}};
  if (!o.reference.empty()) r.reference = reference_from(o);
  const report result = process_slides(o, r);
  end_report(o.out, result);
  return result["skipped"].empty() ? 0 : some_left_out;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  suture::examples::serve_slides(argc, argv);
  return suture::examples::run_example("wsi_tiles", [&] { return suture::examples::run_program(argc, argv); });
}
