// SPDX-License-Identifier: Apache-2.0
// Trains nothing: a feed reads boxes of CT scans, makes patches of them and hands them to a step that only takes time.
// A timeline shows who waited for whom, and a report carries the digests, which are those of ct_patches.
#include <cstdio>
#include <iostream>

#include "common/nifti.hpp"
#include "common/output_folder.hpp"
#include "common/phantom.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/sample_data.hpp"
#include "ct_patches/options.hpp"
#include "job.hpp"
#include "sources.hpp"
#include "timeline.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

struct options {
  std::vector<std::string> images, labels;
  std::string sample, backend = "auto", out = "feed.out";
  double step_ms = 100;
  std::int64_t batch_size = 2, count = 24, memory_mb = 2048;
  int depth = 3, readers = 2, threads = 0;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  std::vector<std::int64_t> patch{96};
  std::vector<double> spacing{1};
  bool evaluation = false;
};

// The cases that the readers of a job read: memory that stays, or files.
struct cohort {
  std::vector<std::string> names;
  volume<std::int16_t> image;
  label_volume labels;
  std::vector<any_reader<std::int16_t>> image_readers;
  std::vector<any_reader<std::uint8_t>> label_readers;
};

cohort open_cohort(const options& o, std::uint64_t most_bytes) {
  cohort c;
  if (o.images.empty()) {
    if (o.sample == "phantom") {
      phantom made = make_phantom({.seed = o.seed});
      c.names = {"abdominal CT phantom, seed " + std::to_string(o.seed)};
      c.image = std::move(made.image);
      c.labels = std::move(made.labels);
    } else {
      sample_volume sample = ct_sample(o.sample);
      c.names = {sample.name};
      c.image = std::move(sample.image);
      c.labels = std::move(sample.labels);
    }
    c.image_readers = {memory_reader<std::int16_t>({{c.names[0], contiguous(c.image.voxels.data(), c.image.grid)}})};
    c.label_readers = {memory_reader<std::uint8_t>({{c.names[0], contiguous(c.labels.voxels.data(), c.labels.grid)}})};
    return c;
  }
  for (std::size_t i = 0; i < o.images.size(); ++i) {
    c.image_readers.push_back(open_case<std::int16_t>(o.images[i], most_bytes));
    const grid g = c.image_readers.back().grid_of(0);
    c.names.push_back(c.image_readers.back().name(0));
    c.label_readers.push_back(o.labels.empty() ? no_labels(g, c.names.back())
                                               : open_case<std::uint8_t>(o.labels[i], most_bytes));
    if (!o.labels.empty()) require_same_place(g, c.label_readers.back().grid_of(0), o.images[i], o.labels[i]);
  }
  return c;
}

report make_report(const options& o, const feed_job& j, const cohort& from, const feed_result& made) {
  const feed_statistics& s = made.statistics;
  report result = begin_report("feed", o.backend, made.device);
  result["scans"] = from.names;
  report_job(result, o);
  result["patch"] = {j.patches.patch[0], j.patches.patch[1], j.patches.patch[2]};
  result["spacing_mm"] = {j.patches.spacing_mm[0], j.patches.spacing_mm[1], j.patches.spacing_mm[2]};
  result["image_digest"] = hexadecimal(made.image_digest);
  result["label_digest"] = hexadecimal(made.label_digest);
  result["step_ms"] = o.step_ms;
  result["depth"] = o.depth;
  result["readers"] = o.readers;
  result["batches"] = s.batches;
  result["bytes_read"] = s.bytes;
  result["megabytes_per_second"] = s.bytes_per_second() / 1e6;
  result["reading_seconds"] = s.reading;
  result["copying_seconds"] = s.copying;
  result["running_seconds"] = s.running;
  result["seconds_to_first"] = s.to_first;
  result["seconds"] = s.elapsed;
  result["waited_seconds"] = s.waited;
  result["waited_share"] = s.waited_share();
  result["most_held_bytes"] = s.most_held;
  return result;
}

// Does something; where the limit of memory is in the way, an error names the option that sets it.
template <class F>
auto within_memory(const F& f) {
  try {
    return f();
  } catch (const error& problem) {
    const std::string reason = reason_of(problem);
    const bool is_limit = reason.find("most_bytes") != reason.npos || reason.find("most_inflated_bytes") != reason.npos;
    require(!is_limit, site{"--memory-mb"}, reason);
    throw;
  }
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

int run_program(int argc, char** argv) {
  options o;
  CLI::App app{"Feeds batches to a step that only takes time, and shows how long the step waited for them."};
  app.option_defaults()->always_capture_default();
  add_scan_options(app, o,
                   "CT volumes in HU: .nii, .nii.gz, cases of a store, or Zarr v3 arrays, whose voxels count as 1 mm");
  app.add_option("--step-ms", o.step_ms, "milliseconds that a step takes")->check(CLI::Range(0.0, 60000.0));
  app.add_option("--depth", o.depth, "batches that are held at once")->check(CLI::Range(1, 1024));
  app.add_option("--readers", o.readers, "threads that read and decode")->check(CLI::Range(1, 1024));
  app.add_option("--memory-mb", o.memory_mb,
                 "memory of all batches together, and of all files that have to be inflated")
      ->check(CLI::Range(1, 1 << 24));
  add_patch_options(app, o);
  app.add_option("--out", o.out, "folder for timeline.png and report.json");
  recipe r;
  const auto done = parse_options(app, argc, argv, [&] { r = recipe_of(o); });
  if (done) return *done;

  o.backend = chosen_backend(o.backend, why_no_cuda());
  const output_folder folder(o.out);
  const auto most_bytes = static_cast<std::uint64_t>(o.memory_mb) << 20;
  const cohort from = within_memory([&] { return open_cohort(o, most_bytes); });
  constexpr std::size_t drawn = 16;  // batches in the timeline
  const feed_job j{.images = case_list<std::int16_t>(from.image_readers),
                   .labels = case_list<std::uint8_t>(from.label_readers),
                   .patches = r,
                   .feed = {o.depth, o.readers, static_cast<std::size_t>(most_bytes), drawn},
                   .step_ms = o.step_ms,
                   .count = o.count,
                   .batch_size = o.batch_size,
                   .threads = o.threads,
                   .seed = o.seed,
                   .epoch = o.epoch,
                   .evaluation = o.evaluation};
  progress bar("patches", o.count);
  const auto advance = [&](std::int64_t patches) { bar.advance(patches); };
  const feed_result made =
      within_memory([&] { return o.backend == "cuda" ? feed_on_cuda(j, advance) : feed_on_cpu(j, advance); });
  bar.finish();

  const report result = make_report(o, j, from, made);
  const fs::path picture = fs::path(o.out) / "timeline.png";
  const std::string title = "feed on the " + std::string(o.backend == "cuda" ? "GPU" : "CPU") + ": the step waited " +
                            percent(made.statistics.waited_share()) + " of the time";
  write_timeline(picture, title, made.times);
  std::cerr << title << "\ntimeline: " << picture.string() << '\n';
  write_report(fs::path(o.out) / "report.json", result);
  return 0;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  return suture::examples::run_example("feed", [&] { return suture::examples::run_program(argc, argv); });
}
