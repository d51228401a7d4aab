// SPDX-License-Identifier: Apache-2.0
// What lies in --out of the cases of a cohort. A file is this program's where a record tells of it, or the list of a
// run that was stopped; any other is never removed nor replaced.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "common/output_folder.hpp"
#include "records.hpp"

namespace suture::examples {

// A result and what writes it to a path, whose ending is that of its name.
struct result_file {
  std::string name;
  std::function<void(const std::filesystem::path&)> write;
};

class case_results {
public:
  case_results(const std::filesystem::path& out, output_folder& list);

  // The records of this key, where they are whole and the files they tell of are there.
  std::optional<report> finished(const std::string& name, const std::string& key);
  std::optional<report> fingerprint(const std::string& name, const std::string& key);

  void keep_fingerprint(const std::string& name, const report& content);
  // Writes the files and then the record, which gets their sizes, and removes those of this program that are there
  // beside them. Throws suture::error, with nothing touched, where a file that is not this program's has one of their
  // names and other bytes.
  void replace(const std::string& name, std::span<const result_file> files, report& content);
  // Removes the results of a case and its records, as far as they are this program's.
  void remove(const std::string& name);

  // Cases with a record that are none of these, sorted.
  std::vector<std::string> others(const std::function<bool(const std::string&)>& known) const;
  // What was found damaged, a sentence each.
  const std::vector<std::string>& damage() const { return damage_; }

private:
  std::filesystem::path record(const std::string& name) const;
  std::filesystem::path fingerprint_record(const std::string& name) const;
  std::vector<std::string> own(const std::string& name, const found_record& there);
  void move_old_fingerprint_records() const;
  bool is_there(const std::string& file) const;
  bool has_bytes_of(const result_file& file) const;
  void say_damaged(const found_record& there);

  std::filesystem::path out_;
  output_folder& list_;
  std::mutex mutex_;
  std::vector<std::string> damage_;
};

}  // namespace suture::examples
