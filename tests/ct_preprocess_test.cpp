// SPDX-License-Identifier: Apache-2.0
// The program that preprocesses a cohort, run as a user runs it: its images and labels against nnU-Net's rules computed
// naively in double, its fingerprint against sorted values, what it keeps and does anew, what it says of bad cases, and
// that a run killed at any moment leaves nothing that a later run does not put right.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "common/fingerprint_json.hpp"
#include "common/nifti.hpp"
#include "ref/nnunet.hpp"
#include "ref/statistics.hpp"
#include "support/scratch_folder.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A patient of ellipsoids in air on grid g: fat, organs with labels 1, 2, 3, and a texture so that no two slices are
// alike.
volume<std::int16_t> make_image(const grid& g, int seed, label_volume* labels) {
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

grid centered(const extent3& extents, const point3& spacing, const matrix3& direction = {}) {
  grid g{.extents = extents, .spacing = spacing, .origin = {0, 0, 0}, .direction = direction};
  const point3 middle = g.index_to_physical()(g.center());
  for (int k = 0; k < 3; ++k) g.origin[k] = 1.5 * k - middle[k];
  return g;
}

class ct_preprocess : public support::scratch_folder {
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

template <class T>
const volume<T>& as(const image_volume& v) {
  return std::get<volume<T>>(v);
}

// The voxels of a source in the order of LPS axes, as doubles: done by physical place, one voxel at a time.
template <class T>
reference::volume in_lps(const volume<T>& v, grid* g) {
  // The source's axes are parallel to the patient's: every place is a voxel of the reoriented grid.
  point3 low{1e9, 1e9, 1e9}, high{-1e9, -1e9, -1e9};
  for (int corner = 0; corner < 8; ++corner) {
    point3 p{};
    for (int k = 0; k < 3; ++k) p[k] = (corner >> k & 1) ? static_cast<double>(v.grid.extents[k] - 1) : 0;
    const point3 at = v.grid.index_to_physical()(p);
    for (int k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], at[k]);
      high[k] = std::max(high[k], at[k]);
    }
  }
  *g = {};
  g->origin = low;
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < 3; ++j)
      if (std::abs(v.grid.direction[k][j]) > .5) {
        g->spacing[k] = v.grid.spacing[j];
        g->extents[k] = v.grid.extents[j];
      }
  reference::volume out({g->extents[0], g->extents[1], g->extents[2]});
  for (std::int64_t z = 0; z < out.size[0]; ++z)
    for (std::int64_t y = 0; y < out.size[1]; ++y)
      for (std::int64_t x = 0; x < out.size[2]; ++x) {
        const point3 i = v.grid.physical_to_index()(
            g->index_to_physical()({static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)}));
        out.at(z, y, x) = static_cast<double>(
            v.voxels[linear_index(v.grid.extents, std::llround(i[0]), std::llround(i[1]), std::llround(i[2]))]);
      }
  return out;
}

reference::volume cropped(const reference::volume& v, const reference::size3& start, const reference::size3& size) {
  reference::volume out(size);
  for (std::int64_t z = 0; z < size[0]; ++z)
    for (std::int64_t y = 0; y < size[1]; ++y)
      for (std::int64_t x = 0; x < size[2]; ++x) out.at(z, y, x) = v.at(start[0] + z, start[1] + y, start[2] + x);
  return out;
}

TEST_F(ct_preprocess, makes_what_nnunets_rules_say) {
  add_good_cases();
  const point3 spacing{1.5, 1.2, 1.3};
  ASSERT_EQ(run(arguments("out", {"--spacing", "1.5", "1.2", "1.3"})), 0) << errors();

  // Crops and foreground, from the definitions.
  struct expected_case {
    std::string name;
    grid source;
    reference::volume image, labels;
    reference::size3 start{};
  };
  std::vector<expected_case> cases;
  std::vector<double> foreground;
  for (const char* name : {"thick", "thin", "turned"}) {
    expected_case c{name, {}, {}, {}};
    const auto image = in_lps(as<std::int16_t>(read_image(folder / "in" / (c.name + ".nii.gz"))), &c.source);
    const auto labels = in_lps(read_labels(folder / "seg" / (c.name + ".nii.gz")), &c.source);
    reference::size3 low{1 << 20, 1 << 20, 1 << 20}, high{-1, -1, -1};
    for (std::int64_t z = 0; z < image.size[0]; ++z)
      for (std::int64_t y = 0; y < image.size[1]; ++y)
        for (std::int64_t x = 0; x < image.size[2]; ++x) {
          if (labels.at(z, y, x) > 0) foreground.push_back(image.at(z, y, x));
          if (image.at(z, y, x) <= -300) continue;
          const reference::size3 at{z, y, x};
          for (std::size_t k = 0; k < 3; ++k) {
            low[k] = std::min(low[k], at[k]);
            high[k] = std::max(high[k], at[k]);
          }
        }
    c.start = low;
    const reference::size3 size{high[0] - low[0] + 1, high[1] - low[1] + 1, high[2] - low[2] + 1};
    c.image = cropped(image, low, size);
    c.labels = cropped(labels, low, size);
    cases.push_back(c);
  }

  const report said = report_of("out");
  const double lower = reference::percentile(foreground, .5), upper = reference::percentile(foreground, 99.5);
  const auto mean = static_cast<double>(reference::mean(foreground));
  const auto deviation = static_cast<double>(reference::deviation(foreground, 0));
  EXPECT_NEAR(said["normalize"]["lower"].get<double>(), lower, 1e-4);
  EXPECT_NEAR(said["normalize"]["upper"].get<double>(), upper, 1e-4);
  EXPECT_NEAR(said["normalize"]["mean"].get<double>(), mean, 1e-4);
  EXPECT_NEAR(said["normalize"]["standard_deviation"].get<double>(), deviation, 1e-4);
  const cohort_fingerprint fingerprint = read_fingerprint(folder / "out" / "fingerprint.json");
  EXPECT_EQ(fingerprint.counts()[0].total(), foreground.size());

  int separate = 0;
  for (const expected_case& c : cases) {
    reference::volume normalized = c.image;
    for (double& v : normalized.values) v = (std::clamp(v, lower, upper) - mean) / deviation;
    reference::size3 size{};
    reference::point from{}, to{};
    for (std::size_t k = 0; k < 3; ++k) {
      from[k] = c.source.spacing[static_cast<int>(k)];
      to[k] = spacing[static_cast<int>(k)];
      size[k] = reference::nnunet_size(c.image.size[k], from[k], to[k]);
    }
    const int axis = reference::nnunet_separate_axis(from, to);
    separate += axis >= 0;
    reference::volume doubt;
    const auto image = reference::nnunet_image(normalized, size, axis);
    const auto labels = reference::nnunet_labels(c.labels, size, axis, &doubt);
    const double range = (upper - lower) / deviation;

    const auto made = as<float>(read_image(folder / "out/images" / (c.name + ".nii.gz")));
    const auto made_labels = read_labels(folder / "out/labels" / (c.name + ".nii.gz"));
    ASSERT_EQ(made.voxels.size(), image.values.size()) << c.name;
    ASSERT_EQ(made_labels.voxels.size(), image.values.size()) << c.name;
    std::size_t doubtful = 0;
    for (std::size_t i = 0; i < image.values.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(made.voxels[i]), image.values[i], 3e-5 * range) << c.name << " voxel " << i;
      doubtful += doubt.values[i] > 0;
      if (doubt.values[i] == 0) {
        ASSERT_EQ(made_labels.voxels[i], labels.values[i]) << c.name << " voxel " << i;
      }
    }
    EXPECT_LT(doubtful, image.values.size() / 20) << c.name;

    // LPS axes; voxel -1/2 stays where the crop's -1/2 is.
    point3 corner{}, there{};
    for (int k = 0; k < 3; ++k) {
      const auto s = static_cast<std::size_t>(k);
      const double step = from[s] * static_cast<double>(c.image.size[s]) / static_cast<double>(size[s]);
      EXPECT_EQ(made.grid.extents[k], size[s]);
      EXPECT_NEAR(made.grid.spacing[k], step, 1e-5);
      corner[k] = made.grid.origin[k] - .5 * step;
      there[k] = c.source.origin[k] + (static_cast<double>(c.start[s]) - .5) * from[s];
      EXPECT_NEAR(corner[k], there[k], 1e-4) << c.name << " axis " << k;
      for (int j = 0; j < 3; ++j) EXPECT_NEAR(made.grid.direction[k][j], k == j ? 1 : 0, 1e-6);
    }
    EXPECT_TRUE(fs::exists(folder / "out/sheets" / (c.name + ".png")));
  }
  EXPECT_EQ(separate, 1);
}

TEST_F(ct_preprocess, keeps_what_is_done_and_notices_what_changed) {
  add_good_cases();
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0) << errors();
  EXPECT_EQ(report_of("out")["made"], 3);
  const auto first = results("out");
  const auto digest = report_of("out")["image_digest"];

  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0);
  EXPECT_EQ(report_of("out")["kept"], 3);
  EXPECT_EQ(report_of("out")["image_digest"], digest);
  EXPECT_EQ(results("out"), first);
  ASSERT_EQ(run(arguments("out", {"--spacing", "3", "--threads", "1"})), 0);
  EXPECT_EQ(report_of("out")["kept"], 3) << "threads change nothing";
  ASSERT_EQ(run(arguments("together", {"--spacing", "3", "--workers", "3", "--threads", "1"})), 0);
  EXPECT_EQ(results("together"), first);

  // Something of one case is gone or damaged.
  fs::remove(folder / "out/images/thin.nii.gz");
  std::ofstream(folder / "out/records/thick.json") << "{";
  fs::resize_file(folder / "out/labels/turned.nii.gz", 20);
  fs::remove(folder / "out/records/turned.fingerprint.json");
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0);
  EXPECT_EQ(report_of("out")["made"], 3);
  EXPECT_EQ(results("out"), first);

  // Other settings, and back.
  ASSERT_EQ(run(arguments("out", {"--spacing", "4", "--orientation", "RAS"})), 0);
  EXPECT_EQ(report_of("out")["made"], 3);
  const auto turned = as<float>(read_image(folder / "out/images/turned.nii.gz"));
  EXPECT_NEAR(turned.grid.direction[2][2], -1, 1e-6);
  EXPECT_NEAR(turned.grid.direction[1][1], -1, 1e-6);
  EXPECT_NEAR(turned.grid.direction[0][0], 1, 1e-6);
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0);
  EXPECT_EQ(report_of("out")["made"], 3);
  EXPECT_EQ(results("out"), first);

  // Another image changes the fingerprint, and so every case.
  add_case("thin", centered({22, 36, 38}, {2, 1.6, 1.6}), 9);
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0);
  EXPECT_EQ(report_of("out")["made"], 3);
  EXPECT_NE(results("out"), first);
  // A case that left the cohort is named and left alone.
  fs::remove(folder / "in/thick.nii.gz");
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0);
  EXPECT_EQ(report_of("out")["not_of_this_cohort"], report({"thick"}));
}

TEST_F(ct_preprocess, names_bad_cases_and_finishes_the_others) {
  add_good_cases();
  ASSERT_EQ(run(arguments("good", {"--spacing", "3"})), 0) << errors();

  const grid g = centered({8, 20, 20}, {5, 3, 3});
  label_volume labels;
  const auto image = make_image(g, 4, &labels);
  const auto in = [&](const char* name) { return folder / "in" / name; };
  const auto seg = [&](const char* name) { return folder / "seg" / name; };
  const auto add = [&](const char* name, const auto& volume, const auto& map) {
    write_nifti(in(name), volume);
    write_nifti(seg(name), map);
  };
  std::ofstream(in("not_nifti.nii.gz")) << "nothing of the kind";
  write_nifti(seg("not_nifti.nii.gz"), labels);
  add("truncated.nii.gz", image, labels);
  fs::resize_file(in("truncated.nii.gz"), fs::file_size(in("truncated.nii.gz")) / 2);
  add("cut.nii", image, labels);
  fs::resize_file(in("cut.nii"), fs::file_size(in("cut.nii")) - 1);
  add("four.nii", image, labels);
  {
    std::fstream file(in("four.nii"), std::ios::in | std::ios::out | std::ios::binary);
    const std::int16_t dim[] = {4, 20, 20, 4, 2};
    file.seekp(40);
    file.write(reinterpret_cast<const char*>(dim), sizeof dim);
  }
  volume<float> holed{g, {image.voxels.begin(), image.voxels.end()}};
  holed.voxels[1234] = std::numeric_limits<float>::quiet_NaN();
  add("holed.nii.gz", holed, labels);
  volume<std::int16_t> air{g, std::vector<std::int16_t>(image.voxels.size(), -1000)};
  add("air.nii.gz", air, labels);
  write_nifti(in("unlabelled.nii.gz"), image);
  label_volume elsewhere = labels;
  elsewhere.grid.origin[0] += 40;
  add("elsewhere.nii.gz", image, elsewhere);
  label_volume smaller{centered({8, 20, 10}, {5, 3, 3}), std::vector<std::uint8_t>(1600)};
  add("smaller.nii.gz", image, smaller);
  volume<float> halves{g, std::vector<float>(image.voxels.size(), .5f)};
  add("halves.nii.gz", image, halves);
  add("thin.nii", image, labels);  // and thin.nii.gz is there
  fs::create_directories(in("folder.nii.gz"));

  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 3) << errors();
  const std::map<std::string, std::string> reasons{{"not_nifti", "NIfTI"},         {"truncated", "truncated"},
                                                   {"cut", "truncated"},           {"four", "volumes along axis 4"},
                                                   {"holed", "not finite"},        {"air", "no body"},
                                                   {"unlabelled", "no label map"}, {"elsewhere", "does not lie where"},
                                                   {"smaller", "extents"},         {"halves", "not a whole number"}};
  report said = report_of("out");
  EXPECT_EQ(said["made"], 3);
  EXPECT_EQ(said["left_out"].size(), reasons.size() + 1);
  for (const auto& [name, words] : reasons) {
    const auto found = std::find_if(said["left_out"].begin(), said["left_out"].end(),
                                    [&, n = name](const report& c) { return c["case"] == n; });
    ASSERT_NE(found, said["left_out"].end()) << name;
    EXPECT_NE((*found)["reason"].get<std::string>().find(words), std::string::npos) << *found;
    EXPECT_NE(errors().find("  " + name + ": "), std::string::npos) << errors();
  }
  // Of two files of one case the second is the bad one.
  EXPECT_NE(errors().find("another file of this case is thin.nii"), std::string::npos) << errors();

  // The results of the good ones are those of a cohort without the bad ones, where no file took the place of another.
  fs::remove(in("thin.nii"));
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 3) << errors();
  EXPECT_EQ(results("out"), results("good"));

  // A case that turns bad takes its results along.
  fs::copy_file(in("not_nifti.nii.gz"), in("thin.nii.gz"), fs::copy_options::overwrite_existing);
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 3);
  EXPECT_FALSE(fs::exists(folder / "out/images/thin.nii.gz"));
  EXPECT_FALSE(fs::exists(folder / "out/records/thin.json"));

  // No case at all.
  for (const char* name : {"thin", "thick", "turned"}) fs::remove(in((std::string(name) + ".nii.gz").c_str()));
  EXPECT_EQ(run(arguments("out", {"--spacing", "3"})), 3);
  EXPECT_EQ(report_of("out")["made"], 0);
}

TEST_F(ct_preprocess, refuses_what_cannot_be_run) {
  EXPECT_EQ(run(arguments("out")), 1);
  EXPECT_NE(errors().find("holds no .nii"), std::string::npos) << errors();
  EXPECT_EQ(run({"--in", (folder / "nowhere").string(), "--out", (folder / "out").string()}), 1);
  EXPECT_EQ(run(arguments("out", {"--spacing", "fine"})), 2);
  EXPECT_EQ(run(arguments("out", {"--spacing", "1", "2"})), 2);
  EXPECT_EQ(run(arguments("out", {"--orientation", "XYZ"})), 2);
  EXPECT_EQ(run({"--labels", "x"}), 2);
  std::ofstream(folder / "file") << 'x';
  add_good_cases();
  EXPECT_EQ(run(arguments("file")), 1);
  EXPECT_EQ(run({"--in", (folder / "in").string(), "--labels", "none", "--out", (folder / "out").string()}), 1);
  EXPECT_NE(errors().find("neither a folder nor a rule"), std::string::npos) << errors();
}

TEST_F(ct_preprocess, takes_labels_by_a_rule_and_the_target_spacing_of_the_cohort) {
  const grid g = centered({20, 30, 30}, {2.5, 2, 2});
  label_volume labels;
  for (const char* name : {"a", "b"}) {
    const auto image = make_image(g, 5, &labels);
    write_nifti(folder / "in" / (std::string(name) + "_0000.nii.gz"), image);
    write_nifti(folder / "in" / (std::string(name) + "_seg.nii.gz"), labels);
  }
  const std::vector<std::string> words{"--in",  (folder / "in").string(),  "--labels",  "{case}_seg.nii.gz",
                                       "--out", (folder / "out").string(), "--spacing", "nnunet"};
  ASSERT_EQ(run(words), 0) << errors();
  const report said = report_of("out");
  EXPECT_EQ(said["cases"], 2);
  EXPECT_EQ(said["spacing_mm"], report({2.5, 2.0, 2.0}));
  // Nothing to resample: the labels are those of the source, the image is normalised and no more.
  const auto made = read_labels(folder / "out/labels/a.nii.gz");
  const auto record = report::parse(text_of(folder / "out/records/a.json"));
  EXPECT_EQ(record["crop"]["size"], record["result"]["extents"]);
  const auto made_image = as<float>(read_image(folder / "out/images/a.nii.gz"));
  const auto image = as<std::int16_t>(read_image(folder / "in/a_0000.nii.gz"));
  const auto start = record["crop"]["start"].get<std::vector<std::int64_t>>();
  const auto& n = made.grid.extents;
  const double lower = said["normalize"]["lower"].get<double>(), upper = said["normalize"]["upper"].get<double>(),
               mean = said["normalize"]["mean"].get<double>(),
               deviation = said["normalize"]["standard_deviation"].get<double>();
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x) {
        const std::size_t to = linear_index(n, z, y, x),
                          from = linear_index(g.extents, start[0] + z, start[1] + y, start[2] + x);
        ASSERT_EQ(made.voxels[to], labels.voxels[from]);
        const double hu = image.voxels[from];
        ASSERT_NEAR(made_image.voxels[to], (std::clamp(hu, lower, upper) - mean) / deviation, 1e-5);
      }
}

TEST_F(ct_preprocess, makes_its_own_cohort) {
  const std::vector<std::string> words{"--out", (folder / "out").string(), "--spacing", "6", "--count", "2"};
  ASSERT_EQ(run(words), 0) << errors();
  EXPECT_EQ(report_of("out")["made"], 2);
  EXPECT_EQ(report::parse(text_of(folder / "out/records/phantom_8_thick.json"))["separate_axis"], 0);
  ASSERT_EQ(run(words), 0);
  EXPECT_EQ(report_of("out")["kept"], 2);
}

TEST_F(ct_preprocess, killed_at_any_moment_it_goes_on_to_the_same_files) {
  add_good_cases();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(arguments("whole", {"--spacing", "1.5"})), 0) << errors();
  auto longest = static_cast<unsigned>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count());
  const auto whole = results("whole");
  // 3 images, label maps, sheets, records of both passes, and the fingerprint.
  ASSERT_EQ(whole.size(), 3u * 5 + 1);

  // Whatever has its final name is whole.
  const auto expect_whole_files = [&] {
    for (const auto& [name, content] : results("out")) {
      if (name.find(".part") != name.npos) continue;
      const auto expected = whole.find(name);
      ASSERT_NE(expected, whole.end()) << name;
      ASSERT_TRUE(content == expected->second) << name << " is not what it should be";
    }
  };
  std::mt19937 random(17);
  int killed = 0;
  for (int round = 0; round < 4; ++round) {
    for (int kills = 0, attempt = 0; kills < 4 && attempt < 20; ++attempt) {
      const pid_t child = start(arguments("out", {"--spacing", "1.5", "--workers", round < 2 ? "1" : "2"}));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
      kill(child, SIGKILL);
      if (finish(child) == -SIGKILL) {
        ++kills, ++killed;
      } else {  // too late: it had come to its end
        longest = std::max(longest / 2, 1000u);
        fs::remove_all(folder / "out");
      }
      expect_whole_files();
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(run(arguments("out", {"--spacing", "1.5"})), 0) << errors();
    EXPECT_EQ(results("out"), whole);
    // The next round begins with nothing, or with some of it gone.
    if (round % 2 == 0) {
      fs::remove(folder / "out/images/thin.nii.gz");
      fs::remove(folder / "out/records/turned.json");
      fs::remove(folder / "out/records/thick.fingerprint.json");
    } else {
      fs::remove_all(folder / "out");
    }
  }
  EXPECT_GE(killed, 10);
}

TEST_F(ct_preprocess, one_run_at_a_time_in_a_folder) {
  add_good_cases();
  fs::create_directories(folder / "out");
  const int lock = open((folder / "out/.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);  // as another run would hold it
  EXPECT_EQ(run(arguments("out", {"--spacing", "4"})), 1);
  EXPECT_NE(errors().find("another run is at work"), std::string::npos) << errors();
  close(lock);
  EXPECT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
}

}  // namespace
