// SPDX-License-Identifier: Apache-2.0
#include "output_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "report.hpp"
#include "suture/base/error.hpp"
#include "whole_file.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;
constexpr site here{"--out"};
// What the list begins with. Names follow, each ended by a zero byte, which no name holds.
constexpr std::string_view first_line = "suture: files that a run in this folder has begun\n";

std::mutex of_open;
std::vector<output_folder*> open_folders;

fs::path plain(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

bool is_unfinished(const fs::path& name) { return name.filename().string().starts_with(unfinished_mark); }

// A name on the list leads nowhere else than into the folder.
bool stays_inside(const fs::path& name) {
  return name.is_relative() && std::find(name.begin(), name.end(), "..") == name.end();
}

}  // namespace

output_folder::output_folder(const fs::path& folder) : folder_(plain(folder)), list_path_(folder_ / ".unfinished") {
  std::error_code status;
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // NAME/
  for (fs::path up = folder_; !up.empty() && !fs::exists(up, status); up = up.parent_path()) first_made_ = up;
  make_folder(folder);
  const fs::path path = folder_ / ".lock";
  const auto holds_file_of_that_name = [&] {
    struct stat held, named;
    return fstat(lock_, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
  };
  lock_ = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  require(lock_ >= 0, here, path.string(), ": cannot be made: ", std::strerror(errno));
  try {
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
      fail(here, folder.string(), ": ", errno == EWOULDBLOCK ? "another run is at work there" : std::strerror(errno));
    // A run that ends removes an empty folder with its lock; whoever opened that lock before holds nothing.
    require(holds_file_of_that_name(), here, folder.string(),
            ": another run has just ended there; start this one again");
    read_list();
    require_own_report();
    if (list_ < 0) append({});  // which shows early whether the folder can be written
  } catch (...) {
    if (list_ >= 0) close(list_);
    close(lock_);
    throw;
  }
  const std::lock_guard guard(of_open);
  open_folders.push_back(this);
}

output_folder::~output_folder() {
  {
    const std::lock_guard guard(of_open);
    std::erase(open_folders, this);
  }
  if (list_ >= 0) close(list_);
  // What is whole or gone needs no list; results that no record tells of do.
  if (list_ >= 0 && begun_.empty()) remove_whole(list_path_);
  if (!first_made_.empty()) remove_what_is_empty();
  close(lock_);
}

// Folders that this run made and left without a file, from the innermost out.
void output_folder::remove_what_is_empty() const {
  std::error_code status;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, status))
    if (!entry.is_directory(status) && entry.path() != folder_ / ".lock") return;
  for (const auto& entry : fs::directory_iterator(folder_, status))
    if (entry.is_directory(status)) fs::remove_all(entry.path(), status);
  fs::remove(folder_ / ".lock", status);
  for (fs::path up = folder_; fs::remove(up, status) && up != first_made_;) up = up.parent_path();
}

void output_folder::read_list() {
  std::error_code status;
  if (!fs::exists(fs::symlink_status(list_path_, status))) return;
  require(fs::is_regular_file(fs::symlink_status(list_path_, status)), here, list_path_.string(),
          ": is no list of this program; it is not touched");
  std::ifstream file(list_path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool begins = std::string_view(text).starts_with(first_line);
  require(begins || first_line.starts_with(text), here, list_path_.string(),
          ": is no list of this program; it is not touched");
  std::size_t at = begins ? first_line.size() : 0;
  for (std::size_t end = text.find('\0', at); begins && end != text.npos; end = text.find('\0', at)) {
    const fs::path name = text.substr(at, end - at);
    at = end + 1;
    if (!stays_inside(name)) continue;
    if (!is_unfinished(name))
      begun_.insert(name.string());
    else if (fs::is_regular_file(fs::symlink_status(folder_ / name, status)))
      fs::remove(folder_ / name, status);
  }
  // A name that a kill cut short is taken off.
  list_ = open(list_path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  require(list_ >= 0 && ftruncate(list_, static_cast<off_t>(at)) == 0, here, list_path_.string(),
          ": cannot be written: ", std::strerror(errno));
  if (!begins) append({});
}

// A report is written again by every run; another file of that name is not to be lost.
void output_folder::require_own_report() const {
  const fs::path path = folder_ / "report.json";
  std::error_code status;
  if (!fs::exists(fs::symlink_status(path, status))) return;
  bool own = false;
  try {
    own = read_report(here, path).contains("example");
  } catch (const error&) {  // no JSON at all
  }
  require(own, here, path.string(), ": lies there and is no report of an example; it is not touched");
}

void output_folder::append(const std::string& name) {
  std::string text;
  const bool fresh = list_ < 0;
  if (fresh) list_ = open(list_path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
  require(list_ >= 0, here, list_path_.string(), ": cannot be made: ", std::strerror(errno));
  if (lseek(list_, 0, SEEK_END) == 0) text = first_line;
  if (!name.empty()) text += name + '\0';
  require(write(list_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fdatasync(list_) == 0, here,
          list_path_.string(), ": cannot be written: ", std::strerror(errno));
  if (fresh) reaches_disk(folder_);
}

void output_folder::begin(const std::string& name) {
  const std::lock_guard guard(mutex_);
  if (begun_.insert(name).second) append(name);
}

void output_folder::settle(const std::string& name) {
  const std::lock_guard guard(mutex_);
  begun_.erase(name);
}

bool output_folder::begun(const std::string& name) {
  const std::lock_guard guard(mutex_);
  return begun_.contains(name);
}

void output_folder::list_unfinished(const fs::path& path) {
  const std::lock_guard guard(of_open);
  for (output_folder* each : open_folders) {
    const fs::path name = plain(path).lexically_relative(each->folder_);
    if (name.empty() || !stays_inside(name)) continue;
    const std::lock_guard own(each->mutex_);
    each->append(name.string());
  }
}

}  // namespace suture::examples
