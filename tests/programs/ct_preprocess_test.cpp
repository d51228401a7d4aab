// SPDX-License-Identifier: Apache-2.0
// The program that preprocesses a cohort, run as a user runs it: its images and labels against nnU-Net's rules computed
// naively in double, its fingerprint against sorted values, what it keeps and does anew, and what it says of bad cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/fingerprint_json.hpp"
#include "common/nifti.hpp"
#include "ref/nnunet.hpp"
#include "ref/statistics.hpp"
#include "support/ct_preprocess.hpp"

namespace {

using namespace support;

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
  fs::remove(folder / "out/records/fingerprints/turned.json");
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0);
  EXPECT_EQ(report_of("out")["made"], 3);
  EXPECT_EQ(text_of(folder / "out/records/thick.json.damaged"), "{");
  fs::remove(folder / "out/records/thick.json.damaged");
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
  write_nifti(in("unlabeled.nii.gz"), image);
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
  const std::map<std::string, std::string> reasons{{"not_nifti", "NIfTI"},        {"truncated", "truncated"},
                                                   {"cut", "truncated"},          {"four", "volumes along axis 4"},
                                                   {"holed", "not finite"},       {"air", "no body"},
                                                   {"unlabeled", "no label map"}, {"elsewhere", "does not lie where"},
                                                   {"smaller", "extents"},        {"halves", "not a whole number"}};
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
  // Nothing to resample: the labels are those of the source, the image is normalized and no more.
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
  const std::vector<std::string> words{"--sample",  "phantom", "--out",   (folder / "out").string(),
                                       "--spacing", "6",       "--count", "2"};
  ASSERT_EQ(run(words), 0) << errors();
  EXPECT_EQ(report_of("out")["made"], 2);
  EXPECT_EQ(report::parse(text_of(folder / "out/records/phantom_8_thick.json"))["separate_axis"], 0);
  ASSERT_EQ(run(words), 0);
  EXPECT_EQ(report_of("out")["kept"], 2);
}

}  // namespace
