// SPDX-License-Identifier: Apache-2.0
// A CT or MRI case with labels becomes training batches as nnU-Net makes them, with the targets of deep supervision; a
// contact sheet shows them, and a report carries the digests that must be the same on every machine.

#include "common/contact_sheet.hpp"
#include "common/nifti.hpp"
#include "common/output_folder.hpp"
#include "common/phantom.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/sample_data.hpp"
#include "job.hpp"
#include "prepare.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

label_volume targets_on(const grid& shown, const std::int8_t* targets, const grid& level) {
  const auto n = static_cast<std::size_t>(level.voxels());
  const label_volume there{level, {targets, targets + n}};
  return labels_on(there, shown);
}

// What of a preprocessed case is shown black and white, and its name: a CT by a window in HU, others by how their
// voxels are distributed.
struct shown_case {
  std::string modality;
  gray_window window;
};
shown_case shown_of(const volume<float>& image, const std::optional<ct_normalize>& normalize) {
  if (!normalize) return {"MRI, window from the 1st to the 99.5th percentile", percentiles_of(image.voxels)};
  const gray_window hu;
  const auto normalized = [&](double value) {
    return (value - static_cast<double>(normalize->mean)) / static_cast<double>(normalize->standard_deviation);
  };
  return {"CT, soft-tissue " + words_of(hu, "HU"), {normalized(hu.black), normalized(hu.white)}};
}

// No finer than it is used, which would only take time.
phantom_options phantom_for(std::uint64_t seed, const point3& spacing) {
  phantom_options o{.seed = seed};
  for (int k = 0; k < 3; ++k) {
    const double wide = static_cast<double>(o.extents[k]) * o.spacing[k];
    if (spacing[k] <= o.spacing[k]) continue;
    o.extents[k] = std::max<std::int64_t>(1, static_cast<std::int64_t>(wide / spacing[k]));
    o.spacing[k] = spacing[k];
  }
  return o;
}

class sheet_maker {
public:
  sheet_maker(const nnunet_job& j, const nnunet_patches& made, const gray_window& shown)
      : j_(j), made_(made), sizes_(j.target_extents()), window_(shown) {
    seen_.grid = j.image.grid;
    seen_.voxels.assign(j.labels.voxels.begin(), j.labels.voxels.end());
  }

  // The case where the patch was taken, next to the patch.
  sheet_row of_patch(std::size_t i) const {
    sheet_row row;
    row.caption = "patch " + std::to_string(i);
    if (made_.choices[i].of_class > 0) row.caption += ", about label " + std::to_string(made_.choices[i].of_class);
    row.scan = j_.image.grid;
    row.before.image = shown_on(j_.image, made_.places[i], 0.0f);  // beyond the scan as the recipe pads
    window_.apply(row.before.image);
    row.before.labels = labels_on(seen_, made_.places[i]);
    row.after = panel_of(i, 0);
    return row;
  }
  // Two of its smaller targets.
  sheet_row of_targets(std::size_t i, std::size_t first, std::size_t second) const {
    return {"patch " + std::to_string(i) + ", its targets of deep supervision: " + name(first) + " and " + name(second),
            panel_of(i, first), panel_of(i, second), j_.image.grid};
  }

private:
  std::string name(std::size_t level) const {
    const extent3& n = sizes_[level];
    return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
  }
  panel panel_of(std::size_t i, std::size_t level) const {
    const std::size_t n = voxels_of(sizes_[0]), m = voxels_of(sizes_[level]);
    const grid& g = made_.places[i];  // where it comes from, so that planes of both pictures agree
    panel p{{g, std::vector<float>(n)},
            targets_on(g, made_.targets[level].data() + i * m, level_grid(g, sizes_[level]))};
    for (std::size_t v = 0; v < n; ++v) p.image.voxels[v] = storage<half>::load(made_.images[i * n + v]);
    window_.apply(p.image);
    return p;
  }

  const nnunet_job& j_;
  const nnunet_patches& made_;
  std::vector<extent3> sizes_;
  gray_window window_;
  label_volume seen_;
};

struct options {
  std::string image, label, sample, backend = "auto", out = "nnunet_batch.out", normalization = "ct";
  std::vector<std::int64_t> patch{128};
  std::vector<double> spacing{1.5};
};

// What was asked for, or the exit status where there is nothing more to do.
std::optional<int> parse(options& o, nnunet_job& j, int argc, char** argv) {
  CLI::App app{"Makes training batches of the nnU-Net recipe, with the targets of deep supervision."};
  app.option_defaults()->always_capture_default();
  app.add_option("--image", o.image, "a case, .nii or .nii.gz")->type_name("FILE")->default_str("");
  app.add_option("--label", o.label, "its label map")->type_name("FILE")->default_str("");
  add_ct_sample_option(app, o.sample);
  app.add_option("--normalization", o.normalization,
                 "ct: by the labeled voxels of the case; zscore, for MRI: by the whole image")
      ->check(CLI::IsMember({"ct", "zscore"}));
  app.add_option("--spacing", o.spacing,
                 "distance of voxels to train at in mm, one number or z y x; 0 keeps that of the case")
      ->expected(1, 3)
      ->check(CLI::Range(0.0, 100.0));
  add_backend_option(app, o.backend);
  add_job_options(app, j, 100000);
  app.add_option("--patch", o.patch,
                 "size of a patch in voxels, one number or z y x; where it is more than 3 times as wide as deep, "
                 "slices turn in "
                 "their plane alone")
      ->expected(1, 3)
      ->check(CLI::Range(1, 2048));
  app.add_flag("--eval", j.evaluation, "as for evaluation: nothing random");
  app.add_option("--out", o.out, "folder for contact_sheet.png and report.json");
  const auto done = parse_options(app, argc, argv, [&] {
    j.shape.patch = triple<std::int64_t>(o.patch, "--patch");
    triple<double>(o.spacing, "--spacing");
    if (o.image.empty() != o.label.empty()) throw CLI::ValidationError("--image", "and --label go together");
    if (!o.image.empty() && !o.sample.empty()) throw CLI::ValidationError("--sample", "excludes --image");
  });
  return done;
}

// A case as it is before any preprocessing.
struct raw_case {
  std::string name;
  std::vector<std::string> label_names;
  image_volume image;
  label_volume labels;
};

raw_case read_case(const options& o, std::uint64_t seed, const point3& spacing) {
  if (!o.image.empty()) {
    raw_case read{o.image, {}, read_image(o.image), {}};
    read.labels = read_labels_of(grid_of(read.image), o.image, o.label);
    return read;
  }
  if (o.sample != "phantom") {
    sample_volume sample = ct_sample(o.sample);
    return {sample.name, sample.label_names, std::move(sample.image), std::move(sample.labels)};
  }
  phantom made = make_phantom(phantom_for(seed, spacing));
  return {"abdominal CT phantom, seed " + std::to_string(seed),
          {"colon", "lesion"},
          std::move(made.image),
          std::move(made.labels)};
}

// What all patches together come to, and the first of them, for the sheet.
struct made_patches {
  std::uint64_t image_digest = 0, target_digest = 0;
  nnunet_patches shown;
};

constexpr std::size_t most_shown = 6;

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from, std::size_t count) {
  to.insert(to.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
}

void add(made_patches& all, const nnunet_patches& made, const std::vector<extent3>& sizes) {
  for (std::size_t level = 0; level < sizes.size(); ++level) {
    const std::size_t n = voxels_of(sizes[level]);
    for (std::size_t i = 0; i < made.grids.size(); ++i) {
      const grid g = level_grid(made.grids[i], sizes[level]);
      const std::uint64_t id = made.first + i;
      all.target_digest =
          combine_digest(all.target_digest, id, digest(contiguous(made.targets[level].data() + i * n, g)));
      if (level == 0)
        all.image_digest = combine_digest(all.image_digest, id, digest(contiguous(made.images.data() + i * n, g)));
    }
  }
  const std::size_t more = std::min(most_shown - all.shown.grids.size(), made.grids.size());
  append(all.shown.grids, made.grids, more);
  append(all.shown.places, made.places, more);
  append(all.shown.choices, made.choices, more);
  append(all.shown.images, made.images, more * voxels_of(sizes[0]));
  all.shown.targets.resize(sizes.size());
  for (std::size_t level = 0; level < sizes.size(); ++level)
    append(all.shown.targets[level], made.targets[level], more * voxels_of(sizes[level]));
}

contact_sheet make_sheet(const nnunet_job& j, const nnunet_patches& made, const std::vector<std::string>& label_names,
                         const shown_case& shown_as, const std::string& backend) {
  const std::vector<extent3> sizes = j.target_extents();
  const sheet_maker rows(j, made, shown_as.window);
  contact_sheet sheet;
  const std::size_t count = static_cast<std::size_t>(j.count), shown = made.grids.size();
  sheet.title = sheet_title(shown_as.modality, shown, count, "patches",
                            j.evaluation ? "as for evaluation" : "augmented as by nnU-Net", backend);
  sheet.before = "preprocessed scan where the patch was cut";
  sheet.after = j.evaluation ? "patch" : "patch: turned, scaled, mirrored, noise, blur, contrast; gray beyond the scan";
  sheet.label_names = label_names;
  std::size_t most = 0;  // the patch with most of its labels, whose smaller targets are worth a look
  for (std::size_t i = 0, best = 0; i < shown; ++i) {
    const auto n = static_cast<std::ptrdiff_t>(voxels_of(sizes[0]));
    const auto* const at = made.targets[0].data() + static_cast<std::ptrdiff_t>(i) * n;
    const auto labeled = static_cast<std::size_t>(std::count_if(at, at + n, [](std::int8_t l) { return l > 0; }));
    if (labeled > best) most = i, best = labeled;
  }
  for (std::size_t i = 0; i < shown; ++i) sheet.rows.push_back(rows.of_patch(i));
  if (sizes.size() > 2) sheet.rows.push_back(rows.of_targets(most, 1, 2));
  return sheet;
}

report make_report(const options& o, const nnunet_job& j, const made_patches& made, const nnunet_statistics& spent,
                   const std::string& case_name) {
  report target_sizes = report::array();
  for (const extent3& n : j.target_extents()) target_sizes.push_back({n[0], n[1], n[2]});
  report result = begin_report("nnunet_batch", o.backend, spent.device);
  result["case"] = case_name;
  result["normalization"] = o.normalization;
  report_job(result, j);
  result["spacing_mm"] = {j.image.grid.spacing[0], j.image.grid.spacing[1], j.image.grid.spacing[2]};
  result["target_sizes"] = target_sizes;
  result["image_digest"] = hexadecimal(made.image_digest);
  result["target_digest"] = hexadecimal(made.target_digest);
  result["stages"] = spent.stages;
  if (o.backend == "cuda") {
    result["launches"] = spent.launches;
    result["captures"] = spent.captures;
  }
  result["workspace_bytes"] = spent.workspace_bytes;
  result["seconds"] = spent.seconds;
  result["voxels_per_second"] =
      static_cast<double>(voxels_of(j.shape.patch)) * static_cast<double>(j.count) / spent.seconds;
  return result;
}

int run_program(int argc, char** argv) {
  options o;
  nnunet_job j;
  if (const auto done = parse(o, j, argc, argv)) return *done;
  o.backend = chosen_backend(o.backend, why_no_cuda());
  const output_folder folder(o.out);

  const auto spacing = triple<double>(o.spacing, "--spacing");
  const raw_case read = read_case(o, j.seed, spacing);
  prepared ready = prepare(read.image, read.labels, o.normalization == "ct", spacing, j.threads);
  j.image = std::move(ready.image);
  j.labels = std::move(ready.labels);
  j.scales = nnunet_deep_supervision_scales(j.shape.patch, j.image.grid.spacing);

  made_patches made;
  progress bar("patches", j.count);
  const auto use = [&, sizes = j.target_extents()](const nnunet_patches& batch) {
    add(made, batch, sizes);
    bar.advance(static_cast<std::int64_t>(batch.grids.size()));
  };
  const nnunet_statistics spent = o.backend == "cuda" ? nnunet_on_cuda(j, use) : nnunet_on_cpu(j, use);
  bar.finish();

  write_contact_sheet(fs::path(o.out) / "contact_sheet.png",
                      make_sheet(j, made.shown, read.label_names, shown_of(j.image, ready.normalize), o.backend));
  end_report(o.out, make_report(o, j, made, spent, read.name));
  return 0;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  return suture::examples::run_example("nnunet_batch", [&] { return suture::examples::run_program(argc, argv); });
}
