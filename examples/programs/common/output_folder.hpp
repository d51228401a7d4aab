// SPDX-License-Identifier: Apache-2.0
// The folder of a run's results: one run at a time, and a list of what the run has begun, so that a later run can tell
// the files that this program made from all others.
#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

namespace suture::examples {

// Makes the folder, if it is not there, and holds it until the object or the program ends. A folder that was made here
// and got no file is removed at the end, so that a run that fails leaves nothing. Files that a killed run left
// unfinished are removed: those on its list alone. Throws suture::error where the folder cannot be made or written,
// where another run is at work, and where a file that is no such list or no report has the name of one.
class output_folder {
public:
  explicit output_folder(const std::filesystem::path& folder);
  ~output_folder();
  output_folder(const output_folder&) = delete;
  output_folder& operator=(const output_folder&) = delete;

  // Puts a result, named relative to the folder, on the list before it is made: whoever comes to it after a kill knows
  // it for this program's. A result that is settled is known by other means from then on.
  void begin(const std::string& name);
  void settle(const std::string& name);
  // Whether this run or a killed one put it on the list.
  bool begun(const std::string& name);

  // Puts a file that is about to be made on the list of the folder it lies in, where one is open.
  static void list_unfinished(const std::filesystem::path& path);

private:
  void read_list();
  void require_own_report() const;
  void append(const std::string& name);
  void remove_what_is_empty() const;

  std::filesystem::path folder_, list_path_;
  std::filesystem::path first_made_;  // the uppermost folder that was made for it; empty: none
  std::mutex mutex_;
  std::set<std::string> begun_;
  int lock_ = -1, list_ = -1;
};

}  // namespace suture::examples
