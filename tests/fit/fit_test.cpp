// SPDX-License-Identifier: Apache-2.0
// Fits against the definitions of the statistics, the promise that any division of the voxels gives the same bits, and
// every input a fit must refuse or report.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <suture/fit/otsu.hpp>
#include <suture/fit/percentiles.hpp>
#include <type_traits>
#include <vector>

#include "ref/statistics.hpp"
#include "support/expect_says.hpp"

namespace {

using namespace suture;

constexpr double positions[] = {0, .5, 1, 25, 33.3, 50, 75, 99, 99.5, 100};
constexpr int position_count = 10;

grid box(std::int64_t z, std::int64_t y, std::int64_t x) {
  grid g;
  g.extents = {z, y, x};
  return g;
}

template <class T>
T stored(double x) {
  return storage<T>::store(static_cast<float>(x));
}
template <>
std::int32_t stored<std::int32_t>(double x) {
  return static_cast<std::int32_t>(x * 1e6);
}
template <class T>
double value_of(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(storage<T>::load(x));
}

// CT-like values: a heap of air, tissue, a few far out.
template <class T>
std::vector<T> voxels(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> tissue(40, 60);
  std::vector<T> v(count);
  for (T& x : v) {
    const auto kind = random() % 10;
    x = stored<T>(kind < 4 ? 0 : kind < 9 ? tissue(random) : static_cast<double>(random() % 3000) - 1000);
  }
  return v;
}

template <class Fit, class Images, class Selection = everything>
std::vector<typename Fit::result> fitted(const Fit& how, const Images& images, std::size_t groups,
                                         const Selection& selection = {}, const cpu& exec = {}) {
  std::vector<typename Fit::result> results(groups);
  fit(exec, how, images, selection, results);
  return results;
}

template <class T>
class fit_types : public testing::Test {};
using stored_types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, float,
                                    suture::half, suture::bfloat16>;
TYPED_TEST_SUITE(fit_types, stored_types);

template <class T>
class fit_small_types : public testing::Test {};
using small_types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>;
TYPED_TEST_SUITE(fit_small_types, small_types);

void expect_moments(const moments& m, const std::vector<double>& x, int ddof) {
  ASSERT_EQ(m.tally.count, x.size());
  EXPECT_EQ(m.status, fit_status::ok);
  EXPECT_EQ(m.minimum, *std::min_element(x.begin(), x.end()));
  EXPECT_EQ(m.maximum, *std::max_element(x.begin(), x.end()));
  const auto mean = static_cast<double>(reference::mean(x));
  const auto deviation = static_cast<double>(reference::deviation(x, ddof));
  EXPECT_NEAR(m.mean, mean, 1e-14 * std::abs(mean) + 1e-15 * deviation);
  EXPECT_NEAR(m.standard_deviation, deviation, 1e-14 * deviation);
  EXPECT_EQ(m.center, static_cast<float>(m.mean));
  EXPECT_NEAR(m.reciprocal, 1 / deviation, 1e-7 / deviation);
}

TYPED_TEST(fit_types, moments_and_percentiles_by_definition) {
  const grid g = box(7, 19, 23);
  const std::vector<TypeParam> image = voxels<TypeParam>(static_cast<std::size_t>(g.voxels()));
  std::vector<double> all, not_zero, high;
  for (const TypeParam v : image) {
    const double x = value_of(v);
    all.push_back(x);
    if (x != 0) not_zero.push_back(x);
    if (x > 30) high.push_back(x);
  }
  const auto seen = contiguous(image.data(), g);
  const auto check = [&](const std::vector<double>& x, const auto& selection) {
    for (const int ddof : {0, 1}) expect_moments(fitted(fit_moments{.ddof = ddof}, seen, 1, selection)[0], x, ddof);
    fit_percentiles<position_count> how{};
    std::copy(std::begin(positions), std::end(positions), how.q);
    const auto p = fitted(how, seen, 1, selection)[0];
    EXPECT_EQ(p.tally.count, x.size());
    EXPECT_EQ(p.status, fit_status::ok);
    for (int k = 0; k < position_count; ++k)
      EXPECT_EQ(p.value[k], reference::percentile(x, positions[k])) << "percentile " << positions[k];
    const auto range = fitted(fit_range{.lower = 1, .upper = 99}, seen, 1, selection)[0];
    EXPECT_EQ(range.low, reference::percentile(x, 1));
    EXPECT_EQ(range.high, reference::percentile(x, 99));
  };
  check(all, everything{});
  check(not_zero, nonzero{});
  check(high, above{30});
  if constexpr (counted<TypeParam>::by_histogram) {
    const auto t = fitted(fit_otsu{}, seen, 1)[0];
    EXPECT_EQ(t.value, reference::otsu_of_integers(all));
  }
}

TYPED_TEST(fit_types, masks_and_labels_choose_voxels) {
  const grid g = box(5, 11, 13);
  const auto n = static_cast<std::size_t>(g.voxels());
  const std::vector<TypeParam> image = voxels<TypeParam>(2 * n);
  std::vector<std::uint8_t> mask(n);
  std::vector<std::int16_t> labels(n);
  std::vector<double> masked[2], labeled_values[2];
  std::uint64_t undeclared = 0;
  for (std::size_t i = 0; i < n; ++i) {
    mask[i] = i % 3 == 0 ? 7 : 0;
    labels[i] = static_cast<std::int16_t>(static_cast<int>(i % 7) - 1);  // -1 .. 5
    if (labels[i] < 0 || labels[i] >= 5) ++undeclared;
    for (std::size_t c = 0; c < 2; ++c) {
      if (mask[i] != 0) masked[c].push_back(value_of(image[c * n + i]));
      if (labels[i] == 2 || labels[i] == 4) labeled_values[c].push_back(value_of(image[c * n + i]));
    }
  }
  const auto seen = contiguous(image.data(), g, 2);
  const auto mask_view = contiguous(mask.data(), g);
  const auto label_view = contiguous(labels.data(), g);
  const auto masks = inside(std::vector{contiguous(mask.data(), g)});  // keeps the temporary views
  const auto by_mask = fitted(fit_moments{}, seen, 2, masks);
  const auto by_label = fitted(fit_moments{}, seen, 2, labeled(label_view, {{2, 4}, 5}));
  for (std::size_t c = 0; c < 2; ++c) {
    expect_moments(by_mask[c], masked[c], 0);
    expect_moments(by_label[c], labeled_values[c], 0);
    EXPECT_EQ(by_label[c].tally.undeclared, undeclared);
    EXPECT_EQ(by_mask[c].tally.undeclared, 0u);
  }
  std::vector<double> pooled = masked[0];
  pooled.insert(pooled.end(), masked[1].begin(), masked[1].end());
  expect_moments(fitted(fit_moments{.pooled = true}, seen, 1, inside(mask_view))[0], pooled, 0);
  EXPECT_EQ(fitted(fit_range{.lower = 10, .upper = 90, .pooled = true}, seen, 1, inside(mask_view))[0].high,
            reference::percentile(pooled, 90));
  const label_set foreground = label_set::foreground(5);
  EXPECT_EQ(fitted(fit_range{.pooled = true}, seen, 1, labeled(label_view, foreground))[0].tally.count,
            2 * static_cast<std::uint64_t>(
                    std::count_if(labels.begin(), labels.end(), [](int l) { return l >= 1 && l < 5; })));
}

// Strides, threads and slabs leave no trace in any bit.
TYPED_TEST(fit_types, any_division_gives_the_same_bits) {
  const grid g = box(12, 96, 160);
  const auto n = static_cast<std::size_t>(g.voxels());
  const std::vector<TypeParam> image = voxels<TypeParam>(n);
  const auto seen = contiguous(image.data(), g);
  std::vector<TypeParam> interleaved(3 * n);
  for (std::size_t i = 0; i < n; ++i) interleaved[3 * i + 1] = image[i];
  view<TypeParam> strided = channels_last(interleaved.data(), g, 3);
  strided.data += 1;
  strided.channels = 1;
  const auto expect_same = [&](const auto& how) {
    const auto expected = fitted(how, seen, 1, nonzero{}, cpu{1})[0];
    EXPECT_EQ(fitted(how, seen, 1, nonzero{}, cpu{3})[0], expected);
    EXPECT_EQ(fitted(how, seen, 1, nonzero{}, cpu{})[0], expected);
    EXPECT_EQ(fitted(how, strided, 1, nonzero{}, cpu{2})[0], expected);
    return expected;
  };
  const auto m = expect_same(fit_moments{.ddof = 1});
  const auto p = expect_same(fit_percentiles<3>{{.5, 50, 99.5}});
  expect_same(fit_otsu{});
  expect_same(fit_landmarks<3>{{1, 50, 99}, {0, 40, 100}});

  // Three slabs of uneven depth, merged from the last to the first.
  std::vector<view<const TypeParam>> slabs;
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 8}, {8, 12}}) {
    auto slab = seen;
    slab.data += from * seen.stride[0];
    slab.grid.extents[0] = to - from;
    slabs.push_back(slab);
  }
  if constexpr (counted<TypeParam>::by_histogram) {
    histogram<TypeParam> whole, parts;
    whole.add(cpu{}, view<const TypeParam>(seen), nonzero{});
    for (int s = 2; s >= 0; --s) {
      histogram<TypeParam> part;
      part.add(cpu{}, slabs[static_cast<std::size_t>(s)], nonzero{});
      parts.merge(part);
    }
    EXPECT_EQ(whole, parts);
    EXPECT_EQ(parts.moments(1), m);
    EXPECT_EQ(parts.percentiles({.5, 50, 99.5}), p);
  } else {
    moment_sums<TypeParam> sums;
    for (int s = 2; s >= 0; --s) {
      moment_sums<TypeParam> part;
      part.add(cpu{}, slabs[static_cast<std::size_t>(s)], nonzero{});
      sums.merge(part);
    }
    EXPECT_EQ(sums.moments(1), m);
    percentile_search<TypeParam, 3> first({.5, 50, 99.5}), second({.5, 50, 99.5});
    while (!first.done()) {
      first.add(cpu{}, slabs[1], nonzero{});
      second.add(cpu{}, slabs[0], nonzero{});
      second.add(cpu{}, slabs[2], nonzero{});
      auto merged = second;
      merged.merge(first);
      merged.advance();
      // What either side goes on with, less what it counted.
      first = merged;
      second = merged;
    }
    EXPECT_EQ(first.percentiles(), p);
  }
}

TEST(fit, refuses_other_values_in_a_later_round) {
  const grid g{.extents = {1, 1, 4}};
  const float first[] = {1, 2, 3, 4}, later[] = {-100, -200, -300, -400};
  percentile_search<float, 1> search({50});
  search.add(cpu{}, contiguous(first, g));
  search.advance();
  search.add(cpu{}, contiguous(later, g));
  EXPECT_SAYS(search.advance(), "percentiles: this round saw other values than the first");
  EXPECT_SAYS(search.advance(), "percentiles: this round saw other values than the first");
}

TEST(fit, refuses_a_negative_number_of_threads) {
  const grid g{.extents = {1, 1, 4}};
  const float values[] = {1, 2, 3, 4};
  moments m;
  EXPECT_SAYS(fit(cpu{.threads = -1}, fit_moments{}, contiguous(values, g), everything{}, std::span(&m, 1)),
              "cpu: threads -1 must not be negative; 0 takes all");
}

// Images and masks in every order of axes in memory, not in the same one.
template <class T>
void expect_any_order() {
  const grid g = box(5, 7, 9);
  const std::vector<T> values = voxels<T>(static_cast<std::size_t>(g.voxels()));
  const auto kept = [](std::size_t i) { return i % 4 != 0; };
  std::vector<double> expected;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (kept(i)) expected.push_back(value_of(values[i]));
  int axes[3] = {0, 1, 2};
  do {
    std::vector<T> memory(values.size());
    std::vector<std::uint8_t> marks(values.size());
    view<T> image = contiguous(memory.data(), g);
    view<std::uint8_t> mask = contiguous(marks.data(), g);
    std::int64_t step = 1, mask_step = 1;
    for (int j = 2; j >= 0; --j) {
      image.stride[axes[j]] = step;
      step *= g.extents[axes[j]];
      mask.stride[axes[2 - j]] = mask_step;
      mask_step *= g.extents[axes[2 - j]];
    }
    std::size_t i = 0;
    for (std::int64_t z = 0; z < g.extents[0]; ++z)
      for (std::int64_t y = 0; y < g.extents[1]; ++y)
        for (std::int64_t x = 0; x < g.extents[2]; ++x, ++i) {
          image.data[z * image.stride[0] + y * image.stride[1] + x * image.stride[2]] = values[i];
          mask.data[z * mask.stride[0] + y * mask.stride[1] + x * mask.stride[2]] = kept(i);
        }
    const auto p = fitted(fit_percentiles<2>{{10, 80}}, image, 1, inside(mask))[0];
    EXPECT_EQ(p.tally.count, expected.size());
    EXPECT_EQ(p.value[0], reference::percentile(expected, 10));
    EXPECT_EQ(p.value[1], reference::percentile(expected, 80));
  } while (std::next_permutation(axes, axes + 3));
}
TEST(fit, any_order_of_axes) {
  expect_any_order<std::int16_t>();
  expect_any_order<float>();
}

TEST(fit, float_sums_are_exact) {
  // Sums that any order of float or double additions gets wrong: 2^100 and its negative cancel, 2^-100 stays.
  const std::vector<float> x{0x1p100f, 0x1p-100f, 1, -0x1p100f, 0x1p-149f, -1, -0x1p-149f};
  const auto m = fitted(fit_moments{}, contiguous(x.data(), box(1, 1, 7)), 1)[0];
  EXPECT_EQ(m.mean, 0x1p-100 / 7);
  EXPECT_EQ(m.standard_deviation, std::sqrt((0x1p201 / 7)));
  // Far from zero: numpy in float64 keeps nothing of the deviation here.
  const std::vector<float> far{0x1p60f, std::nextafter(0x1p60f, 0.0f), 0x1p60f, std::nextafter(0x1p60f, 0.0f)};
  const auto f = fitted(fit_moments{}, contiguous(far.data(), box(1, 2, 2)), 1)[0];
  EXPECT_EQ(f.standard_deviation, 0x1p35);
  EXPECT_EQ(f.mean, 0x1p60 - 0x1p35);
  // The largest and the smallest there are.
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  const std::vector<float> ends{most, -most, least, -least};
  const auto e = fitted(fit_moments{}, contiguous(ends.data(), box(1, 2, 2)), 1)[0];
  EXPECT_EQ(e.mean, 0);
  EXPECT_NEAR(e.standard_deviation / (static_cast<double>(most) / std::sqrt(2.0)), 1, 1e-15);
  const std::vector<float> small{least, -least};
  EXPECT_EQ(fitted(fit_moments{}, contiguous(small.data(), box(1, 1, 2)), 1)[0].standard_deviation, 0x1p-149);
}

TEST(fit, integer_extremes_do_not_overflow) {
  const std::int32_t low = std::numeric_limits<std::int32_t>::min(), high = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> x(100000, low);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = high;
  const auto m = fitted(fit_moments{}, contiguous(x.data(), box(1, 100, 1000)), 1)[0];
  EXPECT_EQ(m.mean, -0.5);
  EXPECT_EQ(m.standard_deviation, 2147483647.5);
  EXPECT_EQ(m.minimum, low);
  EXPECT_EQ(m.maximum, high);
}

TEST(fit, known_answers) {
  // z-score of [-1, 0, 1, 2, 6], percentiles of 0..9 and of powers of two, three Otsu thresholds.
  const std::vector<float> z{-1, 0, 1, 2, 6};
  const auto row = [](auto& v) { return contiguous(v.data(), box(1, 1, static_cast<std::int64_t>(v.size()))); };
  EXPECT_NEAR(fitted(fit_moments{}, row(z), 1)[0].mean, 1.6, 1e-15);
  EXPECT_NEAR(fitted(fit_moments{}, row(z), 1)[0].standard_deviation, 2.4166091947, 5e-11);
  EXPECT_NEAR(fitted(fit_moments{.ddof = 1}, row(z), 1)[0].standard_deviation, 2.7018512172, 5e-11);
  const std::vector<std::uint8_t> digits{3, 1, 4, 0, 5, 9, 2, 6, 8, 7};
  const auto p = fitted(fit_percentiles<5>{{.5, 1, 25, 99, 99.5}}, row(digits), 1)[0];
  const double expected[] = {.045, .09, 2.25, 8.91, 8.955};
  for (int k = 0; k < 5; ++k) EXPECT_NEAR(p.value[k], expected[k], 1e-14);
  const std::vector<float> powers{16, 1, 8, 2, 4};
  const auto w = fitted(fit_percentiles<3>{{10, 37.5, 90}}, row(powers), 1)[0];
  EXPECT_NEAR(w.value[0], 1.4, 1e-15);
  EXPECT_NEAR(w.value[1], 3, 1e-15);
  EXPECT_NEAR(w.value[2], 12.8, 2e-15);

  std::vector<std::uint8_t> heaps;
  for (const auto& [value, times] : {std::pair{10, 4}, {12, 6}, {20, 2}, {200, 5}, {210, 3}})
    heaps.insert(heaps.end(), static_cast<std::size_t>(times), static_cast<std::uint8_t>(value));
  EXPECT_EQ(fitted(fit_otsu{}, row(heaps), 1)[0].value, 20);
  EXPECT_EQ(fitted(fit_otsu{.rule = otsu_rule::opencv}, row(heaps), 1)[0].value, 20);
  std::vector<float> scaled;
  for (const int v : heaps) scaled.push_back(static_cast<float>(v / 255.0));
  EXPECT_NEAR(fitted(fit_otsu{}, row(scaled), 1)[0].value, 0.0775122549, 1e-8);  // values are float here
  const std::vector<std::int16_t> steps{0, 0, 1, 1, 2, 2, 3, 3};
  EXPECT_EQ(fitted(fit_otsu{}, row(steps), 1)[0].value, 1);
}

TEST(fit, opencv_ignores_splits_of_next_to_nothing) {
  std::vector<std::uint64_t> counts(256);
  counts[5] = 1u << 24;
  counts[6] = 1u << 10;
  counts[200] = 1;  // less than FLT_EPSILON of all, but far away
  const histogram<std::uint8_t> h(counts, 0);
  EXPECT_EQ(h.otsu().value, 6);
  EXPECT_EQ(h.otsu(otsu_rule::opencv).value, 5);
  counts[6] = counts[200] = 0;
  const histogram<std::uint8_t> constant(counts, 0);
  EXPECT_EQ(constant.otsu().value, 5);
  EXPECT_EQ(constant.otsu(otsu_rule::opencv).value, 0);
  EXPECT_SAYS(histogram<std::int16_t>().otsu(otsu_rule::opencv), "histogram: rule opencv is not defined for int16");
}

TEST(fit, histograms_count_every_value) {
  const std::vector<std::int16_t> image = voxels<std::int16_t>(3000);
  std::vector<histogram_counts<std::int16_t>> counts(1);
  fit(cpu{2}, fit_histogram<std::int16_t>{}, contiguous(image.data(), box(3, 10, 100)), everything{},
      std::span(counts));
  const histogram<std::int16_t> h(counts[0]);
  EXPECT_EQ(h.total(), 3000u);
  std::map<std::int16_t, std::uint64_t> expected;
  for (const std::int16_t v : image) ++expected[v];
  for (int v = -32768; v <= 32767; ++v) {
    const auto found = expected.find(static_cast<std::int16_t>(v));
    ASSERT_EQ(h.count(static_cast<std::int16_t>(v)), found == expected.end() ? 0 : found->second) << v;
  }
}

// The counters behind a histogram, against one count a voxel: rows of every length, strides, masks, counters that must
// be emptied on the way.
TYPED_TEST(fit_small_types, rows_are_counted_voxel_by_voxel) {
  using T = TypeParam;
  std::mt19937 random(7);
  for (const std::int64_t most : {std::int64_t{1} << 32, std::int64_t{100}})
    for (const std::int64_t stride : {1, 3}) {
      detail::value_counter<T> all(most), inside_mask(most);
      std::vector<std::uint64_t> expected(65536), expected_inside(65536);
      for (std::int64_t count = 1; count < 140; ++count) {
        const auto values = voxels<T>(static_cast<std::size_t>(count * stride), static_cast<unsigned>(count));
        std::vector<std::uint8_t> mask(values.size());
        for (auto& m : mask) m = random() % 16 < static_cast<unsigned>(count) % 17 ? std::uint8_t(random() | 1u) : 0;
        all.row(detail::voxel_row<T, std::uint8_t>{values.data(), stride, mask.data(), 0, count},
                everything::selector{});
        inside_mask.row(detail::voxel_row<T, std::uint8_t>{values.data(), stride, mask.data(), stride, count},
                        inside_selection<std::uint8_t>::selector{});
        for (std::int64_t x = 0; x < count; ++x) {
          const auto at = static_cast<std::size_t>(x * stride);
          ++expected[counted<T>::key(values[at])];
          expected_inside[counted<T>::key(values[at])] += mask[at] != 0;
        }
      }
      detail::value_counter<T> both(most);
      both.merge(all);
      both.merge(inside_mask);
      const auto expect_counts = [](const detail::value_counter<T>& found, const auto& count_of) {
        std::vector<std::uint64_t> counts(65536);
        found.each([&](std::int64_t bin, std::uint64_t n) { counts[static_cast<std::size_t>(bin)] = n; });
        for (std::size_t bin = 0; bin < counts.size(); ++bin) ASSERT_EQ(counts[bin], count_of(bin)) << bin;
      };
      expect_counts(all, [&](std::size_t bin) { return expected[bin]; });
      expect_counts(inside_mask, [&](std::size_t bin) { return expected_inside[bin]; });
      expect_counts(both, [&](std::size_t bin) { return expected[bin] + expected_inside[bin]; });
    }
}

TEST(fit, landmarks_lie_on_the_percentiles) {
  const std::vector<float> image = voxels<float>(5000);
  std::vector<double> x(image.begin(), image.end());
  const auto m =
      fitted(fit_landmarks<4>{{1, 60, 90, 99}, {0, 30, 70, 100}}, contiguous(image.data(), box(5, 20, 50)), 1)[0];
  const double q[] = {1, 60, 90, 99}, target[] = {0, 30, 70, 100};
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(m.source[k], static_cast<float>(reference::percentile(x, q[k])));
    EXPECT_EQ(m.target[k], static_cast<float>(target[k]));
    if (k == 0) continue;
    const double slope =
        (target[k] - target[k - 1]) / (reference::percentile(x, q[k]) - reference::percentile(x, q[k - 1]));
    EXPECT_NEAR(m.slope[k - 1], slope, 1e-7 * slope);
  }
}

TEST(fit, nan_and_infinity_are_left_out_and_counted) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{nan, 3, infinity, 5, -infinity, -nan, 0};
  const auto seen = contiguous(x.data(), box(1, 1, 7));
  const auto m = fitted(fit_moments{}, seen, 1, nonzero{})[0];
  EXPECT_EQ(m.tally.count, 2u);
  EXPECT_EQ(m.tally.excluded, 4u);
  EXPECT_EQ(m.mean, 4);
  EXPECT_EQ(m.standard_deviation, 1);
  const auto p = fitted(fit_range{}, seen, 1)[0];
  EXPECT_EQ(p.tally.count, 3u);
  EXPECT_EQ(p.tally.excluded, 4u);
  EXPECT_EQ(p.low, 0);
  EXPECT_EQ(p.high, 5);
  EXPECT_EQ(fitted(fit_otsu{}, seen, 1)[0].tally.excluded, 4u);
}

template <class T>
void expect_finite(const T& result) {
  if constexpr (std::is_same_v<T, moments>) {
    for (const double v : {result.mean, result.standard_deviation, result.minimum, result.maximum,
                           static_cast<double>(result.center), static_cast<double>(result.reciprocal)})
      EXPECT_TRUE(std::isfinite(v));
  } else if constexpr (std::is_same_v<T, intensity_range>) {
    for (const double v : {result.low, result.high, static_cast<double>(result.reciprocal)})
      EXPECT_TRUE(std::isfinite(v));
  } else if constexpr (std::is_same_v<T, threshold>) {
    EXPECT_TRUE(std::isfinite(result.value));
  } else {
    for (const float v : result.slope.of) EXPECT_TRUE(std::isfinite(v));
    for (const float v : result.source) EXPECT_TRUE(std::isfinite(v));
  }
}

TYPED_TEST(fit_types, what_cannot_be_fitted_says_so) {
  const auto expect_status = [](const std::vector<TypeParam>& image, const auto& selection, fit_status expected) {
    const auto seen = contiguous(image.data(), box(1, 1, static_cast<std::int64_t>(image.size())));
    const auto check = [&](const auto& how) {
      const auto result = fitted(how, seen, 1, selection)[0];
      EXPECT_EQ(result.status, expected);
      expect_finite(result);
    };
    check(fit_moments{});
    check(fit_moments{.ddof = 1});
    check(fit_range{});
    check(fit_otsu{});
    check(fit_landmarks<3>{{1, 50, 99}, {0, 1, 2}});
  };
  const std::vector<TypeParam> constant(77, stored<TypeParam>(3)), single(1, stored<TypeParam>(-2)),
      zeros(9, stored<TypeParam>(0));
  expect_status(constant, everything{}, fit_status::constant);
  expect_status(single, everything{}, fit_status::constant);
  expect_status(zeros, everything{}, fit_status::constant);
  expect_status(zeros, nonzero{}, fit_status::empty);
  expect_status(single, above{1e30f}, fit_status::empty);
  const std::vector<std::uint8_t> mask(77, 0);
  const auto nothing = contiguous(mask.data(), box(1, 1, 77));
  expect_status(constant, inside(nothing), fit_status::empty);
  expect_status(constant, labeled(nothing, label_set(std::initializer_list<int>{1}, 2)), fit_status::empty);
  if constexpr (!counted<TypeParam>::is_integer) {
    const std::vector<TypeParam> bad(5, storage<TypeParam>::store(std::numeric_limits<float>::quiet_NaN()));
    expect_status(bad, everything{}, fit_status::empty);
  }
  const auto m = fitted(fit_moments{}, contiguous(constant.data(), box(1, 1, 77)), 1)[0];
  EXPECT_EQ(m.mean, value_of(constant[0]));
  EXPECT_EQ(m.standard_deviation, 0);
  const auto empty = fitted(fit_moments{}, contiguous(zeros.data(), box(1, 1, 9)), 1, nonzero{})[0];
  EXPECT_EQ(empty.center, 0);
  EXPECT_EQ(empty.reciprocal, 1);
}

template <class F>
void expect_refusal(const F& f, const std::string& words) {
  const std::string said = message(f);
  EXPECT_NE(said.find(words), std::string::npos) << said << "; expected: " << words;
}

TEST(fit, refuses_bad_input) {
  const std::vector<float> x(24, 1);
  const auto seen = contiguous(x.data(), box(2, 3, 4));
  expect_refusal([&] { fitted(fit_percentiles<1>{{101}}, seen, 1); },
                 "fit_percentiles: percentile 101 must be in [0, 100]");
  expect_refusal([&] { fitted(fit_percentiles<1>{{-1}}, seen, 1); }, "percentile -1");
  expect_refusal([&] { fitted(fit_percentiles<1>{{std::nan("")}}, seen, 1); }, "percentile nan");
  expect_refusal([&] { fitted(fit_range{.lower = 50, .upper = 50}, seen, 1); }, "must be below");
  expect_refusal([&] { fitted(fit_moments{.ddof = 2}, seen, 1); }, "ddof 2");
  expect_refusal([&] { fitted(fit_landmarks<2>{{50, 50}, {0, 1}}, seen, 1); }, "must increase");
  expect_refusal([&] { fitted(fit_landmarks<2>{{1, 50}, {1, 1}}, seen, 1); }, "must increase");
  expect_refusal([&] { fitted(fit_otsu{.rule = otsu_rule::opencv}, seen, 1); },
                 "rule opencv is not defined for float32");
  expect_refusal([&] { fitted(fit_moments{}, seen, 2); }, "2 results given, 1 needed");
  expect_refusal([] { label_set s({1, 5}, 5); }, "label 5 is outside the declared classes 0..4");
  expect_refusal([] { label_set s({-1}); }, "label -1");
  expect_refusal([] { label_set s(std::initializer_list<int>{}, 257); }, "classes 257");
  expect_refusal([] { above a(std::nanf("")); }, "threshold");
  const std::vector<std::uint8_t> mask(24, 1);
  expect_refusal([&] { fitted(fit_moments{}, seen, 1, inside(contiguous(mask.data(), box(2, 4, 3)))); },
                 "extents (2, 4, 3)");
  auto null = seen;
  null.data = nullptr;
  expect_refusal([&] { fitted(fit_moments{}, null, 1); }, "fit_moments: sample 0: null pointer");
  histogram<std::uint8_t> h;
  EXPECT_THROW(h.add(cpu{}, contiguous(mask.data(), box(2, 3, 4)), everything{}, 1), error);
}

TEST(fit, a_batch_of_none_is_none) {
  const std::vector<view<const float>> none;
  EXPECT_TRUE(fitted(fit_moments{}, none, 0).empty());
  EXPECT_TRUE(fitted(fit_range{}, none, 0).empty());
  EXPECT_TRUE(fitted(fit_otsu{}, none, 0).empty());
}

TEST(fit, ragged_batches_are_fitted_by_sample) {
  const std::vector<float> a = voxels<float>(2 * 60, 1), b = voxels<float>(2 * 1001, 2);
  const std::vector<view<const float>> batch{contiguous(a.data(), box(3, 4, 5), 2),
                                             contiguous(b.data(), box(7, 11, 13), 2)};
  const auto both = fitted(fit_moments{}, batch, 4);
  const auto first = fitted(fit_moments{}, batch[0], 2), second = fitted(fit_moments{}, batch[1], 2);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(both[c], first[c]);
    EXPECT_EQ(both[2 + c], second[c]);
  }
}

}  // namespace
