// SPDX-License-Identifier: Apache-2.0
#include "cohort.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "common/nifti.hpp"
#include "common/phantom.hpp"
#include "common/progress.hpp"
#include "common/report.hpp"
#include "common/whole_file.hpp"
#include "orient_volume.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;
constexpr site here{"--in"};
constexpr std::string_view placeholder = "{case}";

// The name without the ending of a NIfTI file; empty if it has none.
std::string stem_of(const std::string& name) {
  for (const std::string_view ending : {".nii.gz", ".nii"})
    if (name.size() > ending.size() && name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  return {};
}

std::string case_of(const std::string& file_name) {
  const std::string stem = stem_of(file_name);
  constexpr std::string_view channel = "_0000";
  return stem.size() > channel.size() && stem.ends_with(channel) ? stem.substr(0, stem.size() - channel.size()) : stem;
}

fs::path by_rule(const fs::path& folder, std::string rule, const std::string& name) {
  for (auto at = rule.find(placeholder); at != rule.npos; at = rule.find(placeholder, at + name.size()))
    rule.replace(at, placeholder.size(), name);
  return folder / rule;  // an absolute rule stays itself
}

}  // namespace

std::vector<case_files> find_cases(const fs::path& folder, const std::string& labels) {
  std::error_code status;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    std::error_code unknown;  // a loop of links is no folder; reading its case says what it is
    if (!stem_of(entry.path().filename().string()).empty() && !entry.is_directory(unknown))
      files.push_back(entry.path());
  }
  require(!status, here, folder.string(), ": cannot be read: ", status.message());
  std::sort(files.begin(), files.end());

  const bool rule = labels.find(placeholder) != labels.npos;
  if (!labels.empty() && !rule)
    require(fs::is_directory(labels, status), site{"--labels"}, labels, ": is neither a folder nor a rule with ",
            placeholder);
  std::set<fs::path> label_files;
  if (rule)
    for (const fs::path& file : files) {
      const fs::path label = by_rule(folder, labels, case_of(file.filename().string())).lexically_normal();
      if (label != file.lexically_normal() && fs::exists(label, status)) label_files.insert(label);
    }

  std::vector<case_files> cases;
  std::map<std::string, fs::path> first_of;
  for (const fs::path& file : files) {
    if (label_files.contains(file.lexically_normal())) continue;
    const std::string file_name = file.filename().string();
    case_files c{case_of(file_name), file, {}, {}};
    if (const auto [other, fresh] = first_of.try_emplace(c.name, file); !fresh) {
      c.problem = file_name + ": another file of this case is " + other->second.filename().string();
      c.name = file_name;
      c.second = true;
    } else if (rule) {
      c.labels = by_rule(folder, labels, c.name);
    } else if (!labels.empty()) {
      c.labels = fs::path(labels) / file_name;
      for (const char* ending : {".nii.gz", ".nii"})
        if (const fs::path named = fs::path(labels) / (c.name + ending);
            !fs::exists(c.labels, status) && fs::exists(named, status))
          c.labels = named;
    }
    if (c.problem.empty() && as_utf8(c.name) != c.name) c.problem = "its name is not UTF-8";
    for (const fs::path& read : {c.image, c.labels})
      if (const std::string other = other_than_file(read); c.problem.empty() && !other.empty())
        c.problem = read.string() + " is " + other + ", not a file";
    if (c.problem.empty() && !c.labels.empty() && !fs::exists(c.labels, status))
      c.problem = "it has no label map " + c.labels.string();
    cases.push_back(std::move(c));
  }
  require(!cases.empty(), here, folder.string(), ": holds no .nii or .nii.gz file");
  return cases;
}

void make_phantom_cohort(const fs::path& folder, std::uint64_t seed, int count) {
  struct kind {
    const char* name;
    extent3 extents;
    point3 spacing;
    std::string_view orientation;
  };
  static const kind kinds[] = {{"thin", {96, 176, 176}, {2.5, 2.2, 2.2}, "LPS"},
                               {"thick", {34, 220, 220}, {7, 1.7, 1.7}, "LPS"},
                               {"turned", {80, 160, 160}, {3, 2.4, 2.4}, "RAS"}};
  progress bar("phantoms", count);
  for (int i = 0; i < count; ++i) {
    const kind& k = kinds[i % 3];
    const std::uint64_t own_seed = seed + static_cast<std::uint64_t>(i);
    const std::string name = "phantom_" + std::to_string(own_seed) + "_" + k.name + ".nii.gz";
    const fs::path image = folder / "images" / name, labels = folder / "labels" / name;
    if (!fs::exists(image) || !fs::exists(labels)) {
      const phantom made = make_phantom({.seed = own_seed, .extents = k.extents, .spacing = k.spacing});
      if (!fs::exists(labels)) write_nifti(labels, oriented(made.labels, k.orientation, 0));
      if (!fs::exists(image)) write_nifti(image, oriented(made.image, k.orientation, 0));
    }
    bar.advance();
  }
  bar.finish();
}

}  // namespace suture::examples
