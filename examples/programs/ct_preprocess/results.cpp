// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "common/whole_file.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;
constexpr site here{"--out"};

bool contains(std::span<const result_file> files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const result_file& f) { return f.name == name; });
}

}  // namespace

case_results::case_results(const fs::path& out, output_folder& list) : out_(out), list_(list) {
  for (const char* folder : {"images", "labels", "sheets", "records", "records/fingerprints"})
    fs::create_directories(out_ / folder);
  move_old_fingerprint_records();
}

// They lay as NAME.fingerprint.json among the records of cases, where a case of that name has its own.
void case_results::move_old_fingerprint_records() const {
  constexpr std::string_view ending = ".fingerprint.json";
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(out_ / "records", status)) {
    const std::string file = entry.path().filename().string();
    if (file.size() > ending.size() && file.ends_with(ending))
      names.push_back(file.substr(0, file.size() - ending.size()));
  }
  for (const std::string& name : names) {
    const fs::path old = out_ / "records" / (name + std::string(ending));
    if (!read_fingerprint_record(old, name).content) continue;
    if (fs::exists(fs::symlink_status(fingerprint_record(name), status)))
      remove_whole(old);  // of an older version that ran here in between
    else
      fs::rename(old, fingerprint_record(name), status);
  }
}

fs::path case_results::record(const std::string& name) const { return out_ / "records" / (name + ".json"); }
fs::path case_results::fingerprint_record(const std::string& name) const {
  return out_ / "records" / "fingerprints" / (name + ".json");
}
bool case_results::is_there(const std::string& file) const {
  std::error_code status;
  return fs::exists(fs::symlink_status(out_ / file, status));
}

void case_results::say_damaged(const found_record& there) {
  if (there.damage.empty()) return;
  const std::lock_guard lock(mutex_);
  damage_.push_back("a damaged record does not count: " + there.damage);
}

std::optional<report> case_results::finished(const std::string& name, const std::string& key) {
  found_record there = read_case_record(record(name), name);
  say_damaged(there);
  if (!there.content || there.content->at("key") != key) return {};
  std::error_code status;
  for (const auto& [file, bytes] : there.content->at("files").items())
    if (bytes != fs::file_size(out_ / file, status) || status) return {};
  for (const std::string& file : result_names(name)) list_.settle(file);
  return std::move(there.content);
}

std::optional<report> case_results::fingerprint(const std::string& name, const std::string& key) {
  found_record there = read_fingerprint_record(fingerprint_record(name), name);
  say_damaged(there);
  if (!there.content || there.content->at("key") != key) return {};
  return std::move(there.content);
}

void case_results::keep_fingerprint(const std::string& name, const report& content) {
  write_record(fingerprint_record(name), content, read_fingerprint_record(fingerprint_record(name), name));
}

std::vector<std::string> case_results::own(const std::string& name, const found_record& there) {
  std::vector<std::string> names;
  std::error_code status;
  for (const std::string& file : result_names(name)) {
    const bool told_of = list_.begun(file) || (there.content && there.content->at("files").contains(file));
    if (told_of && fs::is_regular_file(fs::symlink_status(out_ / file, status))) names.push_back(file);
  }
  return names;
}

bool case_results::has_bytes_of(const result_file& file) const {
  std::error_code status;
  const fs::path target = out_ / file.name;
  if (!fs::is_regular_file(fs::symlink_status(target, status))) return false;
  std::string problem;
  const fs::path beside = make_unfinished(target.parent_path(), problem, target.extension().string());
  require(problem.empty(), here, target.string(), ": cannot be compared: ", problem);
  bool same = false;
  try {
    file.write(beside);
    std::ifstream a(target, std::ios::binary), b(beside, std::ios::binary);
    same = fs::file_size(target) == fs::file_size(beside) &&
           std::equal(std::istreambuf_iterator<char>(a), {}, std::istreambuf_iterator<char>(b), {});
  } catch (...) {
    remove_whole(beside);
    throw;
  }
  remove_whole(beside);
  return same;
}

void case_results::replace(const std::string& name, std::span<const result_file> files, report& content) {
  const found_record there = read_case_record(record(name), name);
  const std::vector<std::string> before = own(name, there);
  std::vector<std::string> complete;
  for (const result_file& file : files) {
    if (!is_there(file.name) || std::find(before.begin(), before.end(), file.name) != before.end()) continue;
    require(has_bytes_of(file), here, (out_ / file.name).string(),
            ": lies there with other bytes, and no record tells that this program made it; it is not touched (move it "
            "away to have the case made)");
    complete.push_back(file.name);
  }
  const auto is_complete = [&](const result_file& file) {
    return std::find(complete.begin(), complete.end(), file.name) != complete.end();
  };
  for (const std::string& file : before) list_.begin(file);
  for (const result_file& file : files)
    if (!is_complete(file)) list_.begin(file.name);
  // The record goes first: without it nothing that is left counts.
  if (there.content) remove_whole(record(name));
  report sizes = report::object();
  for (const result_file& file : files) {
    if (!is_complete(file)) file.write(out_ / file.name);
    sizes[file.name] = fs::file_size(out_ / file.name);
  }
  for (const std::string& file : before)
    if (!contains(files, file)) remove_whole(out_ / file);
  content["files"] = sizes;
  write_record(record(name), content, there);
  for (const std::string& file : result_names(name)) list_.settle(file);
}

void case_results::remove(const std::string& name) {
  const found_record there = read_case_record(record(name), name);
  const std::vector<std::string> before = own(name, there);
  for (const std::string& file : before) list_.begin(file);
  if (there.content) remove_whole(record(name));
  for (const std::string& file : before) remove_whole(out_ / file);
  for (const std::string& file : result_names(name)) list_.settle(file);
  if (read_fingerprint_record(fingerprint_record(name), name).content) remove_whole(fingerprint_record(name));
}

std::vector<std::string> case_results::others(const std::function<bool(const std::string&)>& known) const {
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(out_ / "records", status)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || known(name)) continue;
    if (read_case_record(entry.path(), name).content) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace suture::examples
