// SPDX-License-Identifier: Apache-2.0
// The program that preprocesses a cohort, run as a user runs it, on cases of a few voxels.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "common/nifti.hpp"
#include "common/report.hpp"
#include "scratch_folder.hpp"

namespace support {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A patient of ellipsoids in air on grid g: fat, organs with labels 1, 2, 3, and a texture so that no two slices are
// alike.
inline volume<std::int16_t> make_image(const grid& g, int seed, label_volume* labels) {
  volume<std::int16_t> image{g, std::vector<std::int16_t>(static_cast<std::size_t>(g.voxels()))};
  *labels = {g, std::vector<std::uint8_t>(image.voxels.size())};
  std::mt19937 random(static_cast<unsigned>(seed));
  const affine_map place = g.index_to_physical();
  for (std::int64_t z = 0; z < g.extents[0]; ++z)
    for (std::int64_t y = 0; y < g.extents[1]; ++y)
      for (std::int64_t x = 0; x < g.extents[2]; ++x) {
        const point3 p = place({static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)});
        const auto within = [&](double cz, double cy, double cx, double r) {
          const double dz = p[0] - cz, dy = p[1] - cy, dx = p[2] - cx;
          return dz * dz + dy * dy + dx * dx < r * r;
        };
        int hu = -1000;
        std::uint8_t label = 0;
        if (std::hypot(p[1] / 22, p[2] / 26) < 1) {
          hu = -100 + static_cast<int>(20 * std::sin(.4 * p[0]) * std::cos(.3 * p[1])) + static_cast<int>(random() % 9);
          if (within(0, 4, 6 + seed, 9)) hu = 60 + static_cast<int>(random() % 40), label = 1;
          if (within(3, -6, -8, 7)) hu = 250, label = 2;
          if (within(-6, 6, -6, 6)) hu = 130 + static_cast<int>(p[0]), label = 3;
        }
        const std::size_t i = linear_index(g.extents, z, y, x);
        image.voxels[i] = static_cast<std::int16_t>(hu);
        labels->voxels[i] = label;
      }
  return image;
}

inline grid centered(const extent3& extents, const point3& spacing, const matrix3& direction = {}) {
  grid g{.extents = extents, .spacing = spacing, .origin = {0, 0, 0}, .direction = direction};
  const point3 middle = g.index_to_physical()(g.center());
  for (int k = 0; k < 3; ++k) g.origin[k] = 1.5 * k - middle[k];
  return g;
}

class ct_preprocess : public scratch_folder {
protected:
  void SetUp() override {
    scratch_folder::SetUp();
    fs::create_directories(folder / "in");
    fs::create_directories(folder / "seg");
  }

  void add_case(const std::string& name, const grid& g, int seed) const {
    label_volume labels;
    const auto image = make_image(g, seed, &labels);
    write_nifti(folder / "in" / (name + ".nii.gz"), image);
    write_nifti(folder / "seg" / (name + ".nii.gz"), labels);
  }
  // Thin slices, thick slices, and axes that run the other way round in another order.
  void add_good_cases() const {
    add_case("thick", centered({9, 40, 44}, {5.5, 1.5, 1.4}), 1);
    add_case("thin", centered({22, 36, 38}, {2, 1.6, 1.6}), 2);
    add_case("turned", centered({34, 20, 40}, {1.7, 2.2, 1.5}, {{{0, 1, 0}, {-1, 0, 0}, {0, 0, -1}}}), 3);
  }

  // Starts the program in a process of its own.
  pid_t start(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words{SUTURE_CT_PREPROCESS, "--backend", "cpu"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const std::string out = (folder / "stdout").string(), err = (folder / "stderr").string();
    const pid_t child = fork();
    if (child != 0) return child;
    dup2(open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int run(const std::vector<std::string>& arguments) const { return finish(start(arguments)); }
  std::vector<std::string> arguments(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"--in",  (folder / "in").string(), "--labels",  (folder / "seg").string(),
                                   "--out", (folder / out).string(),  "--opening", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  report report_of(const std::string& out) const { return report::parse(text_of(folder / out / "report.json")); }
  std::string errors() const { return text_of(folder / "stderr"); }

  // What a run leaves that must not depend on how it came to be; the report tells of the run itself.
  std::map<std::string, std::string> results(const std::string& out) const {
    std::map<std::string, std::string> files;
    if (!fs::exists(folder / out)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(folder / out)) {
      const std::string name = fs::relative(entry.path(), folder / out).string();
      if (entry.is_regular_file() && name != "report.json" && name != ".lock") files[name] = text_of(entry.path());
    }
    return files;
  }
};

}  // namespace support
