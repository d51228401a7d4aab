// SPDX-License-Identifier: Apache-2.0
// A cohort of CT volumes becomes what a network is trained on: oriented, cropped to the body, normalized by the
// statistics of the cohort, resampled to one spacing. In two passes: the fingerprint, then the volumes. A run that was
// stopped goes on where it was; a case that cannot be taken is named at the end while the others are finished.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <numeric>
#include <thread>

#include "cohort.hpp"
#include "common/fingerprint_json.hpp"
#include "common/gpu.hpp"
#include "common/nifti.hpp"
#include "common/output_folder.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/sample_data.hpp"
#include "preparation.hpp"
#include "resample.hpp"
#include "results.hpp"
#include "sheet.hpp"
#include "suture/fit/target_spacing.hpp"
#include "suture/ops/geometry/separate_axis.hpp"
#include "suture/suture.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

// Other than 0, 1 and 2: the run is complete, but cases had to be left out.
constexpr int some_left_out = 3;
// To be raised with every change of what is written for the same input and settings.
constexpr int format = 1;

struct options {
  std::string in, labels, sample, backend = "auto", out = "ct_preprocess.out";
  std::vector<std::string> spacing{"1"};
  preparation prepare;
  double anisotropy = 3;
  std::vector<double> window{40, 400};
  std::uint64_t seed = 7;
  int count = 3, workers = 1;
};

template <class T>
report triple_of(const vec3<T>& v) {
  return {v[0], v[1], v[2]};
}

// One run over a cohort.
class cohort_run {
public:
  cohort_run(const options& o, output_folder& folder, std::vector<case_files> cases)
      : o_(o), out_(o.out), results_(out_, folder), cases_(std::move(cases)) {
    for (case_files& c : cases_)
      if (!c.problem.empty()) leave_out(c, c.problem);
  }

  // Whether there is any case to go on with.
  bool fit() {
    std::vector<std::size_t> all(cases_.size()), missing;
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<report> keys(cases_.size());
    for_each("inputs", all, [&](std::size_t i) {
      try_case(cases_[i], [&](case_files& c) {
        keys[i] = {{"format", format},
                   {"version", {SUTURE_VERSION_MAJOR, SUTURE_VERSION_MINOR, SUTURE_VERSION_PATCH}},
                   {"case", c.name},
                   {"image", file_digest(c.image)},
                   {"labels", c.labels.empty() ? "" : file_digest(c.labels)},
                   {"orientation", o_.prepare.orientation},
                   {"body_threshold", o_.prepare.body_threshold},
                   {"opening", o_.prepare.opening_radius},
                   {"margin", o_.prepare.margin}};
        const auto found = results_.fingerprint(c.name, key_of(keys[i]));
        cohort_fingerprint one;
        if (found) one = fingerprint_from_json(found->at("fingerprint"));
        const std::lock_guard lock(shared_);
        if (found)
          cohort_.merge(one);
        else
          missing.push_back(i);
      });
    });

    std::sort(missing.begin(), missing.end());
    for_each("fingerprint", missing, [&](std::size_t i) {
      try_case(cases_[i], [&](case_files& c) {
        const cohort_fingerprint one = fingerprint_of(c.name, prepare_case(c, o_.prepare), o_.prepare.threads);
        report record = keys[i];
        record["key"] = key_of(keys[i]);
        record["fingerprint"] = fingerprint_to_json(one);
        results_.keep_fingerprint(c.name, record);
        const std::lock_guard lock(shared_);
        cohort_.merge(one);
      });
    });
    for (std::size_t i = 0; i < cases_.size(); ++i) keys_.push_back(key_of(keys[i]));
    if (cohort_.cases().empty()) return false;

    normalize_ = cohort_.normalization(0);
    spacing_ = o_.spacing[0] == "nnunet" ? target_spacing(cohort_, o_.anisotropy) : asked_spacing();
    write_fingerprint(out_ / "fingerprint.json", cohort_);
    return true;
  }

  void make() {
    std::vector<std::size_t> missing;
    std::vector<std::string> keys(cases_.size());
    for (std::size_t i = 0; i < cases_.size(); ++i)
      try_case(cases_[i], [&](case_files& c) {
        keys[i] = key_of({{"prepared", keys_[i]},
                          {"spacing_mm", triple_of(spacing_)},
                          {"anisotropy", o_.anisotropy},
                          {"normalize", normalization()},
                          {"window", o_.window}});
        if (const auto found = results_.finished(c.name, keys[i])) {
          ++kept_;
          take(*found);
        } else {
          missing.push_back(i);
        }
      });
    for_each("cases", missing,
             [&](std::size_t i) { try_case(cases_[i], [&](case_files& c) { make_case(c, keys[i]); }); });
  }

  // The report; the cases left out are named on standard error.
  report finish() {
    report result = begin_report("ct_preprocess", o_.backend,
                                 o_.backend == "cuda" ? gpu_description() : cpu_description(o_.prepare.threads));
    result["cases"] = cases_.size();
    std::sort(left_out_.begin(), left_out_.end(), [](const report& a, const report& b) {
      return a.at("case").get<std::string>() < b.at("case").get<std::string>();
    });
    result["made"] = made_;
    result["kept"] = kept_;
    result["left_out"] = left_out_;
    result["orientation"] = o_.prepare.orientation;
    if (made_ + kept_ > 0) {
      result["spacing_mm"] = triple_of(spacing_);
      result["normalize"] = normalization();
      result["image_digest"] = hexadecimal(image_digest_);
      report voxels = report::object();
      for (std::size_t label = 0; label < 256; ++label)
        if (label_voxels_[label] > 0) voxels[std::to_string(label)] = label_voxels_[label];
      if (!voxels.empty()) {  // empty: no case has labels
        result["label_digest"] = hexadecimal(label_digest_);
        result["label_voxels"] = voxels;
      }
    }
    result["seconds"] = seconds_;
    result["voxels_per_second"] = seconds_ > 0 ? static_cast<double>(voxels_) / seconds_ : 0.0;

    const std::vector<std::string> strangers = results_.others([&](const std::string& name) {
      return std::any_of(cases_.begin(), cases_.end(), [&](const case_files& c) { return c.name == name; });
    });
    if (!strangers.empty()) {
      result["not_of_this_cohort"] = strangers;
      std::cerr << "results of other cases lie in " << out_.string() << " and were not touched:";
      for (const std::string& name : strangers) std::cerr << ' ' << name;
      std::cerr << '\n';
    }
    for (const std::string& damaged : results_.damage()) std::cerr << damaged << '\n';
    if (!left_out_.empty()) std::cerr << "left out " << left_out_.size() << " of " << cases_.size() << " cases:\n";
    for (const auto& c : left_out_)
      std::cerr << "  " << c.at("case").get<std::string>() << ": " << c.at("reason").get<std::string>() << '\n';
    return result;
  }

  bool all_taken() const { return left_out_.empty(); }

private:
  report normalization() const {
    return {{"lower", normalize_.lower},
            {"upper", normalize_.upper},
            {"mean", normalize_.mean},
            {"standard_deviation", normalize_.standard_deviation}};
  }

  point3 asked_spacing() const {
    std::vector<double> mm;
    for (const std::string& word : o_.spacing) mm.push_back(std::stod(word));
    return triple<double>(mm, "--spacing");
  }

  gray_window shown() const { return {o_.window[0] - 0.5 * o_.window[1], o_.window[0] + 0.5 * o_.window[1]}; }

  // Results of an earlier run must not pass for those of a case that is left out.
  void leave_out(case_files& c, std::string reason) {
    if (!c.second) {
      try {
        results_.remove(c.name);
      } catch (const std::exception& problem) {
        reason += std::string("; and earlier results could not be removed: ") + problem.what();
      }
    }
    c.problem = reason;
    const std::lock_guard lock(shared_);
    left_out_.push_back({{"case", c.name}, {"reason", reason}});
  }

  // f(i) for the cases of these numbers, as many at once as there are workers, with a progress bar.
  template <class F>
  void for_each(const char* what, const std::vector<std::size_t>& which, const F& f) {
    if (which.empty()) return;
    progress bar(what, static_cast<std::int64_t>(which.size()));
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t k = next++; k < which.size(); k = next++) {
        f(which[k]);
        const std::lock_guard lock(shared_);
        bar.advance();
      }
    };
    std::vector<std::jthread> workers;
    for (std::size_t w = 1; w < std::min(static_cast<std::size_t>(o_.workers), which.size()); ++w)
      workers.emplace_back(work);
    work();
    workers.clear();  // waits for them
    bar.finish();
  }

  template <class F>
  void try_case(case_files& c, const F& step) {
    if (!c.problem.empty()) return;
    try {
      step(c);
    } catch (const std::bad_alloc&) {
      leave_out(c, "not enough memory");
    } catch (const std::exception& problem) {
      leave_out(c, reason_of(problem));
    }
  }

  void make_case(const case_files& c, const std::string& key) {
    const prepared_case prepared = prepare_case(c, o_.prepare);
    std::optional<view<const std::uint8_t>> labels;
    if (!c.labels.empty()) labels = region(prepared.labels, prepared.start, prepared.size);

    resampling how{normalize_, {}, -1};
    const auto start = std::chrono::steady_clock::now();
    const resampled made = std::visit(
        [&](const auto& v) {
          const auto image = region(v, prepared.start, prepared.size);
          how.extents = resample{.spacing_mm = spacing_}.step(image.grid, {"resample"}).output.extents;
          how.separate = separate_axis(image.grid.spacing, spacing_, o_.anisotropy);
          return o_.backend == "cuda" ? resample_on_cuda(image, labels, how, o_.prepare.threads)
                                      : resample_on_cpu(image, labels, how, o_.prepare.threads);
        },
        prepared.image);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    const grid &from = grid_of(prepared.image), &to = made.image.grid;
    report content = {{"key", key},
                      {"case", c.name},
                      {"orientation", o_.prepare.orientation},
                      {"source", {{"extents", triple_of(from.extents)}, {"spacing_mm", triple_of(from.spacing)}}},
                      {"crop", {{"start", triple_of(prepared.start)}, {"size", triple_of(prepared.size)}}},
                      {"result", {{"extents", triple_of(to.extents)}, {"spacing_mm", triple_of(to.spacing)}}},
                      {"separate_axis", how.separate},
                      {"image_digest", hexadecimal(digest(contiguous(made.image.voxels.data(), to)))}};
    constexpr std::string_view axes[] = {"z", "y", "x"};
    std::string title = c.name;
    if (how.separate >= 0) title += ", slices along " + std::string(axes[how.separate]) + " one by one";
    const auto [labels_name, image_name, sheet_name] = result_names(c.name);
    std::vector<result_file> files{{image_name, [&](const fs::path& path) { write_nifti(path, made.image); }},
                                   {sheet_name, [&](const fs::path& path) {
                                      write_case_sheet(path, title, prepared, made, normalize_, shown());
                                    }}};
    if (labels) {
      content["label_digest"] = hexadecimal(digest(contiguous(made.labels.voxels.data(), to)));
      std::array<std::uint64_t, 256> count{};
      for (const std::uint8_t label : made.labels.voxels) ++count[label];
      content["label_voxels"] = count;
      files.insert(files.begin(), {labels_name, [&](const fs::path& path) { write_nifti(path, made.labels); }});
    }
    results_.replace(c.name, files, content);
    const std::lock_guard lock(shared_);
    seconds_ += seconds;
    voxels_ += to.voxels();
    ++made_;
    take(content);
  }

  // What a record adds to the report.
  void take(const report& content) {
    const std::string name = content.at("case").get<std::string>();
    const auto id = std::stoull(key_of(name), nullptr, 16);
    const auto add = [&](std::uint64_t& sum, const char* field) {
      sum = combine_digest(sum, id, std::stoull(content.at(field).get<std::string>(), nullptr, 16));
    };
    add(image_digest_, "image_digest");
    if (!content.contains("label_digest")) return;
    add(label_digest_, "label_digest");
    const auto count = content.at("label_voxels").get<std::array<std::uint64_t, 256>>();
    for (std::size_t label = 0; label < 256; ++label) label_voxels_[label] += count[label];
  }

  options o_;
  fs::path out_;
  case_results results_;
  std::mutex shared_;  // of everything below, while workers are at work
  std::vector<case_files> cases_;
  std::vector<std::string> keys_;  // of the prepared cases
  cohort_fingerprint cohort_;
  ct_normalize normalize_{};
  point3 spacing_{};
  report left_out_ = report::array();
  std::size_t made_ = 0, kept_ = 0;
  std::uint64_t image_digest_ = 0, label_digest_ = 0;
  std::array<std::uint64_t, 256> label_voxels_{};
  double seconds_ = 0;
  std::int64_t voxels_ = 0;
};

void check_spacing(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "nnunet") return;
  if (words.size() != 1 && words.size() != 3)
    throw CLI::ValidationError("--spacing", "takes one number, three or nnunet");
  for (const std::string& word : words) {
    double mm = 0;
    if (!CLI::detail::lexical_cast(word, mm) || !(mm >= 0.01 && mm <= 100))
      throw CLI::ValidationError("--spacing", word + " is neither nnunet nor a number in 0.01 .. 100");
  }
}

// A fingerprint is written again by every run; another file of that name is not to be lost.
void require_own_fingerprint(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(fs::symlink_status(path, status))) return;
  try {
    read_fingerprint(path);
  } catch (const error& problem) {
    fail(site{"--out"}, path.string(),
         ": lies there and is no fingerprint of this program; it is not touched: ", problem.what());
  }
}

int run_program(int argc, char** argv) {
  options o;
  CLI::App app{"Preprocesses a cohort of CT volumes for training."};
  app.option_defaults()->always_capture_default();
  app.add_option("--in", o.in, "folder of CT volumes in HU, .nii or .nii.gz")->type_name("DIR")->default_str("");
  app.add_option("--sample", o.sample,
                 "data to try, without --in: CT of an abdomen and of a lung (default), or a few synthetic abdomens "
                 "with their labels")
      ->check(CLI::IsMember({"ct", "phantom"}));
  app.add_option("--labels", o.labels,
                 "their label maps: a folder of the same file names, or a rule such as {case}_seg.nii.gz")
      ->type_name("DIR|RULE")
      ->default_str("");
  app.add_option("--out", o.out, "folder for everything; a run that was stopped goes on in it");
  app.add_option("--orientation", o.prepare.orientation, "which way the axes of the results point")
      ->check(CLI::IsMember({"LPS", "RAS"}));
  app.add_option("--spacing", o.spacing,
                 "distance of voxels in mm, one number or z y x; nnunet: the target spacing of the cohort")
      ->expected(1, 3);
  app.add_option("--anisotropy", o.anisotropy, "ratio of spacings above which slices are resampled one by one")
      ->check(CLI::Range(1.0, 1e6));
  app.add_option("--body-threshold", o.prepare.body_threshold, "HU above which a voxel may be body")
      ->check(CLI::Range(-2000.0, 4000.0));
  app.add_option("--opening", o.prepare.opening_radius,
                 "radius in voxels that parts the patient from the table in the body mask")
      ->check(CLI::Range(0, 63));
  app.add_option("--margin", o.prepare.margin, "number of voxels kept around the body")->check(CLI::Range(0, 1000));
  app.add_option("--window", o.window, "center and width in HU of what the contact sheets show")->expected(2);
  add_backend_option(app, o.backend);
  app.add_option("--threads", o.prepare.threads, "threads of the CPU, 0: all there are")->check(CLI::Range(0, 4096));
  app.add_option("--workers", o.workers, "number of cases at once; each takes its own memory and its own --threads")
      ->check(CLI::Range(1, 256));
  app.add_option("--seed", o.seed, "number that the synthetic abdomens follow from");
  app.add_option("--count", o.count, "number of synthetic abdomens")->check(CLI::Range(1, 1000));
  const auto done = parse_options(app, argc, argv, [&] {
    check_spacing(o.spacing);
    if (!(o.window[1] > 0)) throw CLI::ValidationError("--window", "the width must be above 0");
    if (!o.in.empty() && !o.sample.empty()) throw CLI::ValidationError("--sample", "excludes --in");
    if (app.count("--count") > 0 && o.sample != "phantom")
      throw CLI::ValidationError("--count", "is for --sample phantom");
    if (o.in.empty() && !o.labels.empty()) throw CLI::ValidationError("--labels", "needs --in");
  });
  if (done) return *done;

  o.backend = chosen_backend(o.backend, why_no_cuda());
  output_folder folder(o.out);
  require_own_fingerprint(fs::path(o.out) / "fingerprint.json");
  std::vector<case_files> cases;
  if (o.in.empty() && o.sample != "phantom") {
    for (const char* name : {"abdomen_ct", "lung_ct"})
      cases.push_back({name, sample_file(std::string("ct/") + name + ".nii.gz"), {}, {}});
  } else if (o.in.empty()) {
    const fs::path phantoms = fs::path(o.out) / "phantoms";
    make_phantom_cohort(phantoms, o.seed, o.count);
    o.in = (phantoms / "images").string();
    o.labels = (phantoms / "labels").string();
  }
  if (cases.empty()) cases = find_cases(o.in, o.labels);
  cohort_run run(o, folder, std::move(cases));
  if (run.fit()) run.make();
  write_report(fs::path(o.out) / "report.json", run.finish());
  std::cerr << "results: " << fs::path(o.out).string() << '\n';
  return run.all_taken() ? 0 : some_left_out;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  return suture::examples::run_example("ct_preprocess", [&] { return suture::examples::run_program(argc, argv); });
}
