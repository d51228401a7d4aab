// SPDX-License-Identifier: Apache-2.0
// A cohort's fingerprint: the statistics of all foreground voxels by definition, the same value however the cohort was
// divided, and the same value after a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/fingerprint_json.hpp"
#include "common/nifti.hpp"
#include "ref/statistics.hpp"
#include "support/expect_says.hpp"
#include "support/oracle.hpp"
#include "suture/ops/value/ct_normalize.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

// Five cases of two channels, of type T, with labels 0..3.
template <class T>
struct cohort {
  std::vector<std::string> names{"gamma", "alpha", "epsilon", "beta", "delta"};
  std::vector<grid> grids;
  std::vector<std::vector<T>> images;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<double> foreground[2];  // labels 1 and 2

  cohort() {
    std::mt19937 random(21);
    for (int i = 0; i < 5; ++i) {
      grid g;
      g.extents = {4 + i, 9 - i, 10 + 3 * i};
      g.spacing = {2.5 - .1 * i, .7 + .03 * i, .8};
      const auto n = static_cast<std::size_t>(g.voxels());
      std::vector<T> image(2 * n);
      std::vector<std::uint8_t> label(n);
      for (auto& l : label) l = static_cast<std::uint8_t>(random() % 4);
      for (std::size_t v = 0; v < 2 * n; ++v) {
        image[v] = storage<T>::store(static_cast<float>(static_cast<int>(random() % 4000) - 1000) *
                                     (std::is_same_v<T, float> ? 0.37f : 1.0f));
        if (label[v % n] == 1 || label[v % n] == 2)
          foreground[v / n].push_back(static_cast<double>(storage<T>::load(image[v])));
      }
      grids.push_back(g);
      images.push_back(std::move(image));
      labels.push_back(std::move(label));
    }
  }
  cohort_fingerprint fingerprint(const std::vector<std::size_t>& order, int threads = 0) const {
    cohort_fingerprint f;
    for (const std::size_t i : order)
      f.add(cpu{threads}, names[i], contiguous(images[i].data(), grids[i], 2), contiguous(labels[i].data(), grids[i]),
            {{1, 2}, 4});
    return f;
  }
};

template <class T>
class fingerprint : public testing::Test {};
using stored_types = testing::Types<std::int16_t, float>;
TYPED_TEST_SUITE(fingerprint, stored_types);

TYPED_TEST(fingerprint, statistics_of_the_foreground) {
  const cohort<TypeParam> c;
  const cohort_fingerprint f = c.fingerprint({0, 1, 2, 3, 4});
  ASSERT_EQ(f.channels(), 2u);
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const std::vector<double>& x = c.foreground[channel];
    const intensity_properties p = f.intensities(channel);
    EXPECT_EQ(p.count, x.size());
    EXPECT_EQ(p.status, fit_status::ok);
    const auto mean = static_cast<double>(reference::mean(x)),
               deviation = static_cast<double>(reference::deviation(x, 0));
    EXPECT_NEAR(p.mean, mean, 1e-13 * std::abs(mean));
    EXPECT_NEAR(p.standard_deviation, deviation, 1e-13 * deviation);
    EXPECT_EQ(p.median, reference::percentile(x, 50));
    EXPECT_EQ(p.percentile_00_5, reference::percentile(x, .5));
    EXPECT_EQ(p.percentile_99_5, reference::percentile(x, 99.5));
    EXPECT_EQ(p.minimum, *std::min_element(x.begin(), x.end()));
    EXPECT_EQ(p.maximum, *std::max_element(x.begin(), x.end()));
    const ct_normalize n = f.normalization(channel);
    EXPECT_EQ(n.lower, static_cast<float>(p.percentile_00_5));
    EXPECT_EQ(n.upper, static_cast<float>(p.percentile_99_5));
    EXPECT_EQ(n.mean, static_cast<float>(p.mean));
    EXPECT_EQ(n.standard_deviation, static_cast<float>(p.standard_deviation));
  }
  ASSERT_EQ(f.cases().size(), 5u);
  EXPECT_EQ(f.cases()[0].name, "alpha");
  EXPECT_EQ(f.cases()[0].shape, c.grids[1].extents);
  EXPECT_EQ(f.median_spacing(), (point3{2.5 - .1 * 2, .7 + .03 * 2, .8}));
  EXPECT_EQ(f.median_shape(), (point3{6, 7, 16}));
}

TYPED_TEST(fingerprint, partial_cohorts_merge_to_the_same_value) {
  const cohort<TypeParam> c;
  const cohort_fingerprint whole = c.fingerprint({0, 1, 2, 3, 4}, 1);
  EXPECT_EQ(c.fingerprint({3, 1, 4, 0, 2}, 3), whole);
  cohort_fingerprint left = c.fingerprint({4, 0}), right = c.fingerprint({2}), last = c.fingerprint({1, 3});
  right.merge(last);
  right.merge(cohort_fingerprint{});
  right.merge(left);
  EXPECT_EQ(right, whole);
  for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(right.intensities(k), whole.intensities(k));
  cohort_fingerprint from_nothing;
  from_nothing.merge(whole);
  EXPECT_EQ(from_nothing, whole);
}

TYPED_TEST(fingerprint, a_file_keeps_every_bit) {
  const cohort<TypeParam> c;
  const cohort_fingerprint whole = c.fingerprint({0, 1, 2, 3, 4});
  const fs::path file = fs::temp_directory_path() / ("fingerprint_" + std::to_string(getpid()) + ".json");
  write_fingerprint(file, c.fingerprint({0, 3, 2}));
  cohort_fingerprint read = read_fingerprint(file);
  EXPECT_EQ(read, c.fingerprint({0, 2, 3}));
  read.merge(c.fingerprint({1, 4}));
  EXPECT_EQ(read, whole);
  EXPECT_EQ(fingerprint_from_json(report::parse(fingerprint_to_json(whole).dump())), whole);
  const report document = fingerprint_to_json(whole);
  EXPECT_EQ(document.at("foreground_intensity_properties_per_channel").at("1").at("mean").get<double>(),
            whole.intensities(1).mean);
  fs::remove(file);
}

TEST(fingerprint_file, refuses_what_is_no_fingerprint) {
  const cohort<std::int16_t> c;
  const report good = fingerprint_to_json(c.fingerprint({0, 1}));
  const auto refused = [&](auto change) {
    report bad = good;
    change(bad);
    EXPECT_THROW(fingerprint_from_json(bad), error) << bad.dump().substr(0, 300);
  };
  refused([](report& r) { r.erase("cases"); });
  refused([](report& r) { r["cases"][1] = r["cases"][0]; });
  refused([](report& r) { r["spacings"][0][2] = -1; });
  refused([](report& r) { r["shapes_after_crop"][0].push_back(4); });
  refused([](report& r) { r["shapes_after_crop"][0][1] = 2.5; });
  refused([](report& r) { r["shapes_after_crop"][0][1] = 1e46; });
  refused([](report& r) { r["foreground_counts_per_channel"]["0"]["counts"][0] = -3; });
  refused([](report& r) { r["foreground_counts_per_channel"]["0"]["counts"][0] = 1.5; });
  refused([](report& r) { r["foreground_counts_per_channel"]["0"]["values"][0] = 1e30; });
  refused([](report& r) { r["foreground_counts_per_channel"]["0"]["values"].push_back(1e30); });
  refused([](report& r) { r = report::array(); });
  EXPECT_THROW(read_fingerprint(fs::temp_directory_path() / "no such fingerprint.json"), error);
  EXPECT_THROW(write_fingerprint(fs::temp_directory_path() / "no such folder" / "f.json", c.fingerprint({0})), error);
  const fs::path file = fs::temp_directory_path() / ("damaged_" + std::to_string(getpid()) + ".json");
  std::ofstream(file) << good.dump().substr(0, 500);
  EXPECT_THROW(read_fingerprint(file), error);
  for (const std::size_t levels : {65U, 30'000U, 1'000'000U}) {
    std::ofstream(file) << "{\"cases\": " << std::string(levels, '[') << std::string(levels, ']')
                        << ", \"spacings\": 1, \"shapes_after_crop\": 2}";
    EXPECT_SAYS(read_fingerprint(file), ": lists and objects are nested more than 64 levels deep");
  }
  fs::remove(file);
}

TEST(fingerprint_input, refuses_and_reports) {
  const cohort<std::int16_t> c;
  cohort_fingerprint f = c.fingerprint({0, 1});
  const cohort_fingerprint before = f;
  EXPECT_THROW(f.merge(c.fingerprint({1, 2})), error);  // a case counted twice
  EXPECT_THROW(f.add(cpu{}, "one channel", contiguous(c.images[0].data(), c.grids[0]),
                     contiguous(c.labels[0].data(), c.grids[0])),
               error);
  EXPECT_THROW(f.add(cpu{}, "other extents", contiguous(c.images[0].data(), c.grids[0], 2),
                     contiguous(c.labels[1].data(), c.grids[1])),
               error);
  EXPECT_EQ(f, before);
  EXPECT_THROW(f.intensities(2), error);
  EXPECT_TRUE(cohort_fingerprint{}.cases().empty());
  EXPECT_EQ(cohort_fingerprint{}.median_spacing(), (point3{0, 0, 0}));

  // A cohort without foreground.
  cohort_fingerprint empty;
  const std::vector<std::uint8_t> background(c.labels[0].size(), 0);
  empty.add(cpu{}, "a", contiguous(c.images[0].data(), c.grids[0], 2), contiguous(background.data(), c.grids[0]));
  EXPECT_EQ(empty.intensities(0).status, fit_status::empty);
  EXPECT_EQ(empty.intensities(0).standard_deviation, 1);
  EXPECT_THROW(empty.normalization(0), error);
  EXPECT_EQ(fingerprint_from_json(fingerprint_to_json(empty)), empty);
  EXPECT_THROW(value_counts({{2, 1}, {1, 1}}), error);
  EXPECT_THROW(value_counts({{2, 0}}), error);
  EXPECT_THROW(value_counts({{std::numeric_limits<float>::infinity(), 1}}), error);
}

}  // namespace
