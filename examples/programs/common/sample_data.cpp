// SPDX-License-Identifier: Apache-2.0
#include "sample_data.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "nifti.hpp"
#include "whole_file.hpp"

extern char** environ;

namespace suture::examples {
namespace {

namespace fs = std::filesystem;
constexpr site here{"sample"};
constexpr std::size_t largest_member = std::size_t{1} << 28;

// Runs a program quietly in a folder; true if it ended well.
bool run_program(const fs::path& folder, const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The members of a gzip-compressed tar whose base name is asked for.
std::map<std::string, std::vector<char>> read_members(const fs::path& archive,
                                                      const std::vector<std::string_view>& wanted) {
  std::map<std::string, std::vector<char>> members;
  require_regular_file(here, archive);
  gzFile_s* file = gzopen(archive.c_str(), "rb");
  require(file != nullptr, here, archive.string(), ": cannot be opened");
  char block[512];
  while (gzread(file, block, sizeof block) == static_cast<int>(sizeof block) && block[0] != 0) {
    const std::string path(block, strnlen(block, 100));
    const std::string digits(block + 124, strnlen(block + 124, 12));
    const auto size = static_cast<std::size_t>(std::strtoull(digits.c_str(), nullptr, 8));
    const std::string name = fs::path(path).filename().string();
    const std::size_t stored = (size + 511) / 512 * 512;
    if (size > largest_member) break;
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) {
      if (gzseek(file, static_cast<z_off_t>(stored), SEEK_CUR) < 0) break;
      continue;
    }
    std::vector<char> bytes(stored);
    if (gzread(file, bytes.data(), static_cast<unsigned>(stored)) != static_cast<int>(stored)) break;
    bytes.resize(size);
    members[name] = std::move(bytes);
  }
  gzclose(file);
  return members;
}

// The numbers of the array that follows <key>NAME</key> in a property list.
std::vector<double> plist_numbers(std::string_view plist, std::string_view name) {
  std::vector<double> numbers;
  std::size_t at = plist.find("<key>" + std::string(name) + "</key>");
  if (at == plist.npos) return numbers;
  const std::size_t end = plist.find("</array>", at);
  at = plist.find("<array>", at);
  if (at == plist.npos || end == plist.npos) return numbers;
  for (at += 7; at < end && numbers.size() < 8;) {
    const std::size_t open = plist.find('>', at);
    if (open == plist.npos || open >= end) break;
    const std::size_t close = plist.find('<', open);
    const std::string number(plist.substr(open + 1, close - open - 1));
    numbers.push_back(std::strtod(number.c_str(), nullptr));
    at = plist.find('>', close) + 1;
  }
  return numbers;
}

fs::path head_project() {
  const fs::path folder = cache_folder();
  const fs::path project = folder / "Cranium.inv3";
  std::error_code status;
  if (fs::exists(project, status)) return project;

  fs::create_directories(folder, status);
  require(!status, here, "the cache folder ", folder.string(), " cannot be made: ", status.message());
  std::string made = (folder / "download-XXXXXX").string();  // a name that nothing there has
  require(mkdtemp(made.data()) != nullptr, here, "the cache folder ", folder.string(),
          " cannot be written: ", std::strerror(errno));
  const fs::path work = made;
  struct cleanup {
    fs::path folder;
    ~cleanup() {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
  } at_end{work};

  require(run_program(work, {"apt-get", "download", "invesalius-examples"}), here,
          "the Debian package invesalius-examples cannot be downloaded with apt-get (no Debian, no network, or package "
          "lists that are missing or old: try apt-get update); another CT can be given with --image");
  fs::path package;
  for (const auto& entry : fs::directory_iterator(work, status))
    if (entry.path().extension() == ".deb") package = entry.path();
  const fs::path inside = work / "usr/share/doc/invesalius-examples/examples/Cranium.inv3";
  require(!package.empty() && run_program(work, {"dpkg-deb", "-x", package.string(), work.string()}) &&
              fs::exists(inside, status),
          here, "the Debian package invesalius-examples does not hold examples/Cranium.inv3");
  fs::rename(inside, project, status);
  require(!status, here, project.string(), " cannot be written: ", status.message());
  return project;
}

}  // namespace

fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return fs::path(cache) / "suture";
  const char* home = std::getenv("HOME");
  require(home && *home, here, "neither XDG_CACHE_HOME nor HOME is set, so there is no cache folder");
  return fs::path(home) / ".cache" / "suture";
}

sample_volume read_invesalius(const fs::path& project) {
  const auto members = read_members(project, {"main.plist", "matrix.dat", "mask_0.dat"});
  for (const char* name : {"main.plist", "matrix.dat", "mask_0.dat"})
    require(members.contains(name), here, project.string(), ": truncated or damaged, ", name,
            " is missing (delete the file to have it fetched again)");
  const std::vector<char>& text = members.at("main.plist");
  const std::string_view plist(text.data(), text.size());
  const std::vector<double> shape = plist_numbers(plist, "shape");      // slice, row, column
  const std::vector<double> spacing = plist_numbers(plist, "spacing");  // column, row, slice
  require(shape.size() == 3 && spacing.size() == 3, here, project.string(), ": main.plist names no shape or spacing");

  sample_volume sample{"head CT (Debian package invesalius-examples)", {"bone"}, {}, {}};
  grid& g = sample.image.grid;
  for (std::size_t k = 0; k < 3; ++k) {
    require(shape[k] >= 1 && shape[k] <= 4096, here, project.string(), ": extent ", shape[k], " is impossible");
    g.extents[static_cast<int>(k)] = static_cast<std::int64_t>(shape[k]);
    g.spacing[static_cast<int>(k)] = spacing[2 - k];
  }
  // Columns run to the left, rows from the back to the front, slices to the head; the middle is the origin.
  g.direction = diagonal({1, -1, 1});
  for (int k = 0; k < 3; ++k)
    g.origin[k] = -0.5 * g.direction[k][k] * static_cast<double>(g.extents[k] - 1) * g.spacing[k];
  check(g, here);

  const extent3& n = g.extents;
  const auto voxels = static_cast<std::size_t>(g.voxels());
  const std::vector<char>& matrix = members.at("matrix.dat");
  const std::vector<char>& mask = members.at("mask_0.dat");
  // Every plane, row and line of the mask begins with one element of bookkeeping.
  const auto mask_size = static_cast<std::size_t>((n[0] + 1) * (n[1] + 1) * (n[2] + 1));
  require(matrix.size() == 2 * voxels, here, project.string(), ": matrix.dat holds ", matrix.size(),
          " bytes, expected ", 2 * voxels);
  require(mask.size() == mask_size, here, project.string(), ": mask_0.dat holds ", mask.size(), " bytes, expected ",
          mask_size);
  sample.image.voxels.resize(voxels);
  sample.labels.grid = g;
  sample.labels.voxels.resize(voxels);
  for (std::size_t i = 0; i < voxels; ++i) {
    const auto low = static_cast<unsigned char>(matrix[2 * i]), high = static_cast<unsigned char>(matrix[2 * i + 1]);
    sample.image.voxels[i] = static_cast<std::int16_t>(static_cast<std::uint16_t>(low | high << 8));
  }
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x) {
        const auto at = static_cast<std::size_t>(((z + 1) * (n[1] + 1) + y + 1) * (n[2] + 1) + x + 1);
        // 255: by threshold, 254: drawn; 1 and 2 mark what was erased.
        sample.labels.voxels[linear_index(n, z, y, x)] = static_cast<unsigned char>(mask[at]) > 127 ? 1 : 0;
      }
  return sample;
}

fs::path sample_file(const std::string& name) {
  const fs::path file = fs::path(SUTURE_EXAMPLE_DATA) / name;
  require(fs::exists(file), here, file.string(),
          " is not there; another file can be given instead, or --sample phantom");
  return file;
}

sample_volume abdomen_sample() {
  const fs::path image = sample_file("ct/abdomen_ct.nii.gz"), labels = sample_file("ct/abdomen_ct_labels.nii.gz");
  sample_volume sample{"abdomen CT (TotalSegmentator)",
                       {"liver", "spleen", "kidneys", "colon", "bladder"},
                       std::get<0>(read_image(image)),
                       {}};
  sample.labels = read_labels_of(sample.image.grid, image.string(), labels);
  std::uint8_t organs[256]{};  // by the numbers of TotalSegmentator
  organs[5] = 1, organs[1] = 2, organs[2] = organs[3] = 3, organs[20] = 4, organs[21] = 5;
  for (std::uint8_t& label : sample.labels.voxels) label = organs[label];
  return sample;
}

sample_volume ct_sample(const std::string& which) { return which == "head" ? head_sample() : abdomen_sample(); }

sample_volume head_sample() { return read_invesalius(head_project()); }

}  // namespace suture::examples
