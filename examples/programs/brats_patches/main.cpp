// SPDX-License-Identifier: Apache-2.0
// Four MRI channels and a label map become training patches with three overlapping targets, by the MONAI recipe for
// brain tumors; a contact sheet shows them, and a report carries the digests that must be the same on every machine.
#include <cmath>
#include <iostream>
#include <sstream>

#include "brain.hpp"
#include "common/contact_sheet.hpp"
#include "common/nifti.hpp"
#include "common/output_folder.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/sample_data.hpp"
#include "job.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> channel_names{"T1", "T1C", "T2", "FLAIR"};

void read_patient(const std::vector<std::string>& images, const std::string& label, brats_job& j) {
  for (const std::string& path : images) {
    const image_volume read = read_image(path);
    if (!j.images.voxels.empty())
      require_same_place(j.images.grid, grid_of(read), images[0], path);
    else
      j.images.grid = grid_of(read);
    std::visit([&](const auto& v) { j.images.voxels.insert(j.images.voxels.end(), v.voxels.begin(), v.voxels.end()); },
               read);
  }
  j.labels = read_labels_of(j.images.grid, images[0], label);
}

// The volume that the recipe cuts patches from: turned to RAS and resampled to 1 mm.
grid brats_volume(const grid& scan) {
  const auto first_steps = orient{"RAS"} | resample{.spacing_mm = {1, 1, 1}, .map = coordinate_map::origin_preserving};
  return plan(first_steps, std::span(&scan, 1)).output_grid(0);
}

// What was asked for, or what networks take that fits: 96 voxels along each axis, or the largest multiple of 16 where
// the volume is smaller. Throws suture::error where more was asked for than there is.
extent3 patch_for(const brats_job& j, const std::vector<std::int64_t>& asked) {
  const std::vector<grid> grids{j.images.grid};
  const extent3 there = brats_volume(grids[0]).extents;
  std::ostringstream size;
  size << there[0] << " x " << there[1] << " x " << there[2] << " voxels (z, y, x) at 1 mm";
  extent3 patch = asked.empty() ? extent3{96, 96, 96} : triple<std::int64_t>(asked, "--patch");
  for (int k = 0; k < 3; ++k) {
    if (!asked.empty())
      require(patch[k] <= there[k], site{"--patch"}, patch, " is larger than the volume, which has ", size.str(),
              "; ask for no more along each axis");
    else if (there[k] < patch[k])
      patch[k] = there[k] >= 16 ? there[k] / 16 * 16 : there[k];
  }
  if (asked.empty() && patch != extent3{96, 96, 96})
    std::cerr << "the volume has " << size.str() << ": patches of " << patch[0] << " x " << patch[1] << " x "
              << patch[2] << " are made (--patch asks for others)\n";
  return patch;
}

// For a picture: whole tumor 1, core 2, enhancing 3, whichever is innermost.
label_volume shown_targets(const grid& g, const std::uint8_t* core_whole_enhancing) {
  const auto n = static_cast<std::size_t>(g.voxels());
  label_volume shown{g, std::vector<std::uint8_t>(n, 0)};
  const std::uint8_t *core = core_whole_enhancing, *whole = core + n, *enhancing = whole + n;
  for (std::size_t i = 0; i < n; ++i)
    shown.voxels[i] = static_cast<std::uint8_t>(enhancing[i] != 0 ? 3 : core[i] != 0 ? 2 : whole[i]);
  return shown;
}

// Standard deviations about the mean of the brain, in which the recipe leaves each channel.
const gray_window shown_deviations{-2.5, 3.5};

// The source, normalized as the patch is but where it lies, next to patch i of these.
sheet_row make_row(const brats_job& j, const brats_patches& made, std::size_t i) {
  const std::size_t n = j.voxels(), number = made.first + i, channel = number % 4;
  const grid &g = j.images.grid, &place = made.places[i];
  const auto voxels = static_cast<std::size_t>(g.voxels());
  sheet_row row;
  row.caption = "patch " + std::to_string(number) + ", " + channel_names[channel];
  row.scan = g;

  const float* const from = j.images.voxels.data() + channel * voxels;
  row.before.image = shown_on(volume<float>{g, {from, from + voxels}}, place, 0.0f);
  double sum = 0, squares = 0, count = 0;
  for (const float v : row.before.image.voxels)
    if (v != 0) sum += double{v}, squares += double{v} * double{v}, ++count;
  const double mean = count > 0 ? sum / count : 0;
  const double deviation = count > 0 ? std::sqrt(std::max(squares / count - mean * mean, 1e-12)) : 1;
  for (float& v : row.before.image.voxels) v = v != 0 ? static_cast<float>((double{v} - mean) / deviation) : 0;
  shown_deviations.apply(row.before.image);

  const label_volume seen = labels_on(j.labels, place);
  std::vector<std::uint8_t> sets(brats_targets * n);
  const auto as_regions = plan(identity{}, std::span(&place, 1));
  const view<const std::uint8_t> seg = contiguous(seen.voxels.data(), place);
  run(cpu{}, as_regions, labels(seg, contiguous(sets.data(), place, brats_targets), j.targets));
  row.before.labels = shown_targets(place, sets.data());

  row.after.image = {place, std::vector<float>(n)};
  const suture::half* const values = made.images.data() + (i * brats_channels + channel) * n;
  for (std::size_t v = 0; v < n; ++v) row.after.image.voxels[v] = storage<suture::half>::load(values[v]);
  shown_deviations.apply(row.after.image);
  row.after.labels = shown_targets(place, made.targets.data() + i * brats_targets * n);
  return row;
}

int run_program(int argc, char** argv) {
  std::vector<std::string> images;
  std::string sample, label, backend = "auto", out = "brats_patches.out", numbering = "1_2_3";
  std::vector<std::int64_t> patch;
  brats_job j;
  CLI::App app{"Makes training patches with tumor regions from four MRI channels."};
  app.option_defaults()->always_capture_default();
  app.add_option("--images", images, "T1, T1 with contrast, T2 and FLAIR, of the same voxels")
      ->type_name("T1 T1C T2 FLAIR")
      ->expected(4)
      ->default_str("");
  app.add_option(
         "--sample", sample,
         "data to try, without --images: MRI of a brain with multiple sclerosis, whose lesions stand in for the "
         "tumor (default), or a synthetic brain with one")
      ->check(CLI::IsMember({"brain", "phantom"}));
  app.add_option("--label", label, "their label map")->type_name("FILE")->default_str("");
  app.add_option("--numbering", numbering,
                 "how the labels are numbered: 1_2_3 in BraTS from 2023, 1_2_4 before, decathlon in Task01")
      ->check(CLI::IsMember({"1_2_3", "1_2_4", "decathlon"}));
  add_backend_option(app, backend);
  add_job_options(app, j, 100000);
  app.add_option("--patch", patch,
                 "size of a patch in voxels, one number or z y x; by default 96, or what fits into a smaller volume")
      ->expected(1, 3)
      ->check(CLI::Range(1, 2048))
      ->default_str("");
  app.add_flag("--eval", j.evaluation, "as for evaluation: nothing random, the middle of the volume");
  app.add_option("--out", out, "folder for contact_sheet.png and report.json");
  const auto done = parse_options(app, argc, argv, [&] {
    if (!images.empty() && !sample.empty()) throw CLI::ValidationError("--sample", "excludes --images");
    if (!patch.empty()) triple<std::int64_t>(patch, "--patch");
    if (images.empty() != label.empty()) throw CLI::ValidationError("--images", "and --label go together");
  });
  if (done) return *done;
  if (numbering == "1_2_4") j.targets = brats_regions_1_2_4;
  if (numbering == "decathlon") j.targets = decathlon_brain_tumor_regions;
  backend = chosen_backend(backend, why_no_cuda());
  const output_folder folder(out);

  std::vector<std::string> names = images;
  if (images.empty() && sample != "phantom") {
    names = {"brain MRI with multiple sclerosis (open_ms_data, patient 19)"};
    for (const char* modality : {"t1", "t1post", "t2", "flair"})
      images.push_back(sample_file("mri/ms19_" + std::string(modality) + ".nii.gz").string());
    label = sample_file("mri/ms19_lesions.nii.gz").string();
  } else if (images.empty()) {
    names = {"synthetic brain"};
  }
  if (images.empty()) {
    brain made = make_brain(j.seed);
    j.images = std::move(made.images);
    j.labels = std::move(made.labels);
  } else {
    read_patient(images, label, j);
  }
  j.patch = patch_for(j, patch);
  const auto count = static_cast<std::size_t>(j.count), n = j.voxels();
  contact_sheet sheet;
  const std::size_t shown = std::min<std::size_t>(count, 8);
  sheet.title = sheet_title("MRI, " + words_of(shown_deviations, "standard deviations about the mean"), shown, count,
                            "patches", j.evaluation ? "as for evaluation" : "augmented", backend);
  sheet.before = "the scan where the patch was cut";
  sheet.after = j.evaluation ? "patch" : "patch: mirrored, scaled and shifted in brightness";
  sheet.label_names = {"whole tumor", "core", "enhancing"};
  sheet.nested = true;
  std::uint64_t image_digest = 0, target_digest = 0;
  std::array<std::uint64_t, brats_targets> target_voxels{};
  progress bar("patches", j.count);
  const auto use = [&](const brats_patches& made) {
    for (std::size_t i = 0; i < made.grids.size(); ++i) {
      const auto* const patch_at = made.images.data() + i * brats_channels * n;
      const auto* const target_at = made.targets.data() + i * brats_targets * n;
      const grid& g = made.grids[i];
      image_digest = combine_digest(image_digest, made.first + i, digest(contiguous(patch_at, g, brats_channels)));
      target_digest = combine_digest(target_digest, made.first + i, digest(contiguous(target_at, g, brats_targets)));
      for (std::size_t v = 0; v < brats_targets * n; ++v) target_voxels[v / n] += target_at[v];
      if (sheet.rows.size() < shown) sheet.rows.push_back(make_row(j, made, i));
    }
    bar.advance(static_cast<std::int64_t>(made.grids.size()));
  };
  const brats_statistics spent = backend == "cuda" ? brats_on_cuda(j, use) : brats_on_cpu(j, use);
  bar.finish();
  write_contact_sheet(fs::path(out) / "contact_sheet.png", sheet);

  report result = begin_report("brats_patches", backend, spent.device);
  result["images"] = names;
  result["numbering"] = numbering;
  report_job(result, j);
  result["patch"] = {j.patch[0], j.patch[1], j.patch[2]};
  result["image_digest"] = hexadecimal(image_digest);
  result["target_digest"] = hexadecimal(target_digest);
  result["target_voxels"] = {{"core", target_voxels[0]}, {"whole", target_voxels[1]}, {"enhancing", target_voxels[2]}};
  result["stages"] = spent.stages;
  result["workspace_bytes"] = spent.workspace_bytes;
  result["seconds"] = spent.seconds;
  result["voxels_per_second"] = static_cast<double>(count * brats_channels * n) / spent.seconds;
  end_report(out, result);
  return 0;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  return suture::examples::run_example("brats_patches", [&] { return suture::examples::run_program(argc, argv); });
}
