// SPDX-License-Identifier: Apache-2.0
// Full-resolution CT volumes with labels become augmented training patches; a contact sheet shows them, and a report
// carries the digests that must be the same on every machine.
#include <algorithm>
#include <array>
#include <tuple>

#include "backend.hpp"
#include "common/contact_sheet.hpp"
#include "common/nifti.hpp"
#include "common/output_folder.hpp"
#include "common/phantom.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/sample_data.hpp"
#include "options.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

struct options {
  std::vector<std::string> images, labels;
  std::string sample, backend = "auto", out = "ct_patches.out";
  std::int64_t batch_size = 4, count = 16;
  int threads = 0;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  std::vector<std::int64_t> patch{96};
  std::vector<double> spacing{1};
  bool evaluation = false, save_nifti = false;
};

// Scans of one voxel type.
template <class T>
struct scans {
  std::vector<std::string> names, label_names;
  std::vector<volume<T>> images;
  std::vector<label_volume> labels;
};
using any_scans = std::variant<scans<std::int16_t>, scans<float>>;

any_scans read_scans(const options& o) {
  scans<std::int16_t> whole;
  if (o.images.empty() && o.sample != "phantom") {
    sample_volume sample = ct_sample(o.sample);
    whole.names = {sample.name};
    whole.label_names = sample.label_names;
    whole.images.push_back(std::move(sample.image));
    whole.labels.push_back(std::move(sample.labels));
    return whole;
  }
  if (o.images.empty()) {
    phantom made = make_phantom({.seed = o.seed});
    whole.names = {"abdominal CT phantom, seed " + std::to_string(o.seed)};
    whole.label_names = {"colon", "lesion"};
    whole.images.push_back(std::move(made.image));
    whole.labels.push_back(std::move(made.labels));
    return whole;
  }

  std::vector<image_volume> images;
  progress bar("reading scans", static_cast<std::int64_t>(o.images.size()));
  for (std::size_t i = 0; i < o.images.size(); ++i) {
    images.push_back(read_image(o.images[i]));
    const grid& g = grid_of(images.back());
    if (o.labels.empty()) {
      whole.labels.push_back({g, std::vector<std::uint8_t>(static_cast<std::size_t>(g.voxels()), 0)});
    } else {
      whole.labels.push_back(read_labels_of(g, o.images[i], o.labels[i]));
    }
    whole.names.push_back(fs::path(o.images[i]).filename().string());
    bar.advance();
  }
  bar.finish();
  // One voxel type per batch: as soon as one scan needs float, all are float.
  const bool all_whole =
      std::all_of(images.begin(), images.end(), [](const image_volume& v) { return v.index() == 0; });
  if (all_whole) {
    for (image_volume& v : images) whole.images.push_back(std::move(std::get<0>(v)));
    return whole;
  }
  scans<float> real{std::move(whole.names), std::move(whole.label_names), {}, std::move(whole.labels)};
  for (image_volume& v : images) {
    if (v.index() == 1) {
      real.images.push_back(std::move(std::get<1>(v)));
    } else {
      const auto& from = std::get<0>(v);
      real.images.push_back({from.grid, std::vector<float>(from.voxels.begin(), from.voxels.end())});
    }
  }
  return real;
}

volume<float> as_float(const half* values, const grid& g) {
  volume<float> result{g, std::vector<float>(static_cast<std::size_t>(g.voxels()))};
  for (std::size_t i = 0; i < result.voxels.size(); ++i) result.voxels[i] = storage<half>::load(values[i]);
  return result;
}

// The patches worth a look: those that show most labels, then most of them.
class selection {
public:
  struct entry {
    std::uint64_t id;
    std::size_t scan, labels, labeled;
    volume<float> image;
    label_volume label_map;
  };

  explicit selection(std::size_t rows) : rows_(rows) {}

  // `region` is where the patch comes from, on voxels like its own.
  void offer(std::uint64_t id, std::size_t scan, const half* image, const std::uint8_t* labels, const grid& region) {
    const auto voxels = static_cast<std::size_t>(region.voxels());
    std::array<std::size_t, 256> count{};
    for (std::size_t i = 0; i < voxels; ++i) ++count[labels[i]];
    entry e{id, scan, 0, voxels - count[0], {}, {}};
    // A label counts where there is enough of it to be seen.
    e.labels = static_cast<std::size_t>(std::count_if(count.begin() + 1, count.end(), [](auto n) { return n >= 200; }));
    const auto better = [](const entry& a, const entry& b) {
      return std::tie(a.labels, a.labeled) > std::tie(b.labels, b.labeled);
    };
    if (entries.size() == rows_) {
      if (!better(e, entries.back())) return;
      entries.pop_back();
    }
    e.image = as_float(image, region);
    e.label_map = {region, {labels, labels + voxels}};
    entries.insert(std::upper_bound(entries.begin(), entries.end(), e, better), std::move(e));
  }

  std::vector<entry> entries;

private:
  std::size_t rows_;
};

const gray_window soft_tissue{window_center - window_width / 2, window_center + window_width / 2};

// The source where the patch was taken, plainly resampled and windowed, next to the patch.
template <class T>
sheet_row make_row(const scans<T>& from, selection::entry e) {
  sheet_row row;
  row.caption = "patch " + std::to_string(e.id) + " of " + from.names[e.scan];
  row.scan = from.images[e.scan].grid;
  row.before.image = shown_on(from.images[e.scan], e.image.grid, -1024.0f);
  soft_tissue.apply(row.before.image);
  row.before.labels = labels_on(from.labels[e.scan], e.image.grid);
  row.after = {std::move(e.image), std::move(e.label_map)};
  return row;
}

std::unique_ptr<backend> choose_backend(const options& o, const recipe& r, const auto& from) {
  if (o.backend == "cuda") return make_cuda_backend(r, from.images, from.labels);
  return make_cpu_backend(r, from.images, from.labels, o.threads);
}

template <class T>
report make_patches(const options& o, const recipe& r, const scans<T>& from) {
  const auto executor = choose_backend(o, r, from);
  const auto count = static_cast<std::size_t>(o.count);
  const auto voxels = static_cast<std::size_t>(r.patch[0] * r.patch[1] * r.patch[2]);
  std::uint64_t image_digest = 0, label_digest = 0;
  std::array<std::uint64_t, 256> label_voxels{};
  selection shown(6);

  progress bar("patches", o.count);
  for (std::size_t first = 0; first < count; first += static_cast<std::size_t>(o.batch_size)) {
    request which{{}, {}, o.seed, o.epoch, o.evaluation};
    for (std::size_t id = first; id < std::min(count, first + static_cast<std::size_t>(o.batch_size)); ++id) {
      which.scans.push_back(id % from.images.size());
      which.ids.push_back(id);
    }
    const patches made = executor->run(which);
    for (std::size_t i = 0; i < which.ids.size(); ++i) {
      const half* image = made.images.data() + i * voxels;
      const std::uint8_t* labels = made.labels.data() + i * voxels;
      const std::uint64_t id = which.ids[i];
      image_digest = combine_digest(image_digest, id, digest(contiguous(image, made.grids[i])));
      label_digest = combine_digest(label_digest, id, digest(contiguous(labels, made.grids[i])));
      for (std::size_t v = 0; v < voxels; ++v) ++label_voxels[labels[v]];

      shown.offer(id, which.scans[i], image, labels, made.regions[i]);
      if (!o.save_nifti) continue;
      std::string number = std::to_string(id);
      number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
      write_nifti(fs::path(o.out) / ("patch_" + number + "_image.nii.gz"), as_float(image, made.grids[i]));
      write_nifti(fs::path(o.out) / ("patch_" + number + "_labels.nii.gz"),
                  label_volume{made.grids[i], {labels, labels + voxels}});
    }
    bar.advance(static_cast<std::int64_t>(which.ids.size()));
  }
  bar.finish();

  contact_sheet sheet;
  sheet.title = sheet_title("CT, soft-tissue " + words_of(soft_tissue, "HU"), shown.entries.size(), count, "patches",
                            o.evaluation ? "as for evaluation" : "augmented", executor->name());
  sheet.before = "the scan where the patch was cut";
  sheet.after = o.evaluation ? "patch" : "patch: turned, scaled, bent, gamma, noise";
  sheet.label_names = from.label_names;
  std::sort(shown.entries.begin(), shown.entries.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (auto& e : shown.entries) sheet.rows.push_back(make_row(from, std::move(e)));
  write_contact_sheet(fs::path(o.out) / "contact_sheet.png", sheet);

  const run_statistics& spent = executor->spent();
  report result = begin_report("ct_patches", executor->name(), executor->device());
  result["scans"] = from.names;
  result["voxel_type"] = storage<T>::name;
  report_job(result, o);
  result["patch"] = {r.patch[0], r.patch[1], r.patch[2]};
  result["spacing_mm"] = {r.spacing_mm[0], r.spacing_mm[1], r.spacing_mm[2]};
  result["image_digest"] = hexadecimal(image_digest);
  result["label_digest"] = hexadecimal(label_digest);
  report voxels_of = report::object();
  for (std::size_t label = 0; label < 256; ++label)
    if (label_voxels[label] > 0) voxels_of[std::to_string(label)] = label_voxels[label];
  result["label_voxels"] = voxels_of;
  report_runs(result, spent);
  result["voxels_per_second"] =
      spent.seconds > 0 ? static_cast<double>(voxels) * static_cast<double>(count) / spent.seconds : 0.0;
  return result;
}

int run_program(int argc, char** argv) {
  options o;
  CLI::App app{"Makes augmented training patches from CT volumes with labels."};
  app.option_defaults()->always_capture_default();
  add_scan_options(app, o, "CT volumes in HU, .nii or .nii.gz");
  add_patch_options(app, o);
  app.add_option("--out", o.out, "folder for contact_sheet.png and report.json");
  app.add_flag("--save-nifti", o.save_nifti, "also write every patch and its labels as .nii.gz");
  recipe r;
  const auto done = parse_options(app, argc, argv, [&] { r = recipe_of(o); });
  if (done) return *done;

  o.backend = chosen_backend(o.backend, why_no_cuda());
  const output_folder folder(o.out);
  const any_scans from = read_scans(o);
  const report result = std::visit([&](const auto& s) { return make_patches(o, r, s); }, from);
  end_report(o.out, result);
  return 0;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  return suture::examples::run_example("ct_patches", [&] { return suture::examples::run_program(argc, argv); });
}
