// SPDX-License-Identifier: Apache-2.0
// Fits and masks by a request: counted by hand, the bits of the plain calls, and wrong requests refused.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "support/abi_request.hpp"
#include "support/expect_says.hpp"
#include "suture/abi/fit.hpp"
#include "suture/abi/mask.hpp"

namespace suture {
namespace {

// The memory of a list or a result.
template <class Values>
abi::result room_of(Values& values) {
  const std::span all(values);
  return {all.data(), static_cast<std::int64_t>(all.size()), sizeof(all[0])};
}
// One array of these extents, dense, channels slowest.
template <class T>
abi::array array_of(std::vector<T>& data, const extent3& n, std::int64_t channels = 1) {
  const std::int64_t voxels = n[0] * n[1] * n[2];
  return {data.data(), {n[0], n[1], n[2]}, {n[1] * n[2], n[2], 1},     channels, voxels, {}, {},
          {1, 1, 1},   {0, 0, 0},          {1, 0, 0, 0, 1, 0, 0, 0, 1}};
}

// A request for one sample that reads one array, or writes one.
filled one_sample(const abi::bound& read, const abi::bound& written) {
  filled f;
  if (read.count > 0) f.inputs = {read};
  if (written.count > 0) f.outputs = {written};
  f.r.samples = 1;
  return f;
}

// An image of one sample, and a request that reads it.
template <class T>
struct one_image {
  extent3 extents;
  std::int64_t channels;
  std::vector<T> data;
  abi::array record = array_of(data, extents, channels);
  filled f = one_sample({&record, 1, 0}, {});

  view<const T> plain() { return abi::reader(f.get(), "plain").template input<T>("")[0]; }
};

template <class T>
one_image<T> image_of(const extent3& extents, std::vector<T> values, std::int64_t channels = 1) {
  return {extents, channels, std::move(values)};
}

// What a fit leaves of an image.
template <class Result, auto Function, class T>
Result fitted(one_image<T>& image, std::vector<double> numbers) {
  std::array<Result, 1> found{};
  image.f.numbers = std::move(numbers);
  image.f.results = {room_of(found)};
  Function(image.f.get());
  return found[0];
}

// The same by a plain call.
template <class How, class T, class Selection>
typename How::result plainly(one_image<T>& image, const How& how, const Selection& selection) {
  std::array<typename How::result, 1> found{};
  fit(cpu{}, how, image.plain(), selection, std::span(found));
  return found[0];
}

one_image<float> four() { return image_of<float>({1, 2, 2}, {1, 2, 3, 4}); }
one_image<std::uint8_t> tile() {
  std::vector<std::uint8_t> values(3 * 24 * 24);
  std::uint32_t state = 1;
  for (auto& v : values) v = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return image_of<std::uint8_t>({1, 24, 24}, std::move(values), 3);
}

TEST(abi_functions, moments) {
  auto image = four();
  const auto all = fitted<moments, abi::fit_moments<float, everything, cpu>>(image, {0, 0});
  EXPECT_EQ(all.mean, 2.5);
  EXPECT_DOUBLE_EQ(all.standard_deviation, std::sqrt(1.25));
  EXPECT_EQ(all.minimum, 1);
  EXPECT_EQ(all.maximum, 4);
  EXPECT_EQ(all.tally.count, 4u);
  EXPECT_EQ(all, plainly(image, fit_moments{}, everything{}));
  EXPECT_DOUBLE_EQ((fitted<moments, abi::fit_moments<float, everything, cpu>>(image, {1, 0}).standard_deviation),
                   std::sqrt(5. / 3));
  EXPECT_EQ((fitted<moments, abi::fit_moments<float, above, cpu>>(image, {2, 0, 0}).mean), 3.5);
  image.data[0] = 0;
  EXPECT_EQ((fitted<moments, abi::fit_moments<float, nonzero, cpu>>(image, {0, 0}).mean), 3);
}

TEST(abi_functions, moments_of_channels_and_pooled) {
  auto image = image_of<std::int16_t>({1, 1, 2}, {1, 3, 10, 30}, 2);
  std::array<moments, 2> found{};
  image.f.numbers = {0, 0};
  image.f.results = {room_of(found)};
  abi::fit_moments<std::int16_t, everything, cpu>(image.f.get());
  EXPECT_EQ(found[0].mean, 2);
  EXPECT_EQ(found[1].mean, 20);
  EXPECT_EQ((fitted<moments, abi::fit_moments<std::int16_t, everything, cpu>>(image, {0, 1}).mean), 11);
  image.f.results = {room_of(found)};
  expect_parts(message([&] { abi::fit_moments<std::int16_t, everything, cpu>(image.f.get()); }),
               {"fit_moments", "2 results given, 1 needed"});
}

TEST(abi_functions, selections_by_maps) {
  auto image = four();
  std::vector<std::int64_t> map{0, 1, 7, 1};
  const abi::array record = array_of(map, {1, 2, 2});
  image.f.inputs.push_back({&record, 1, 0});
  EXPECT_EQ((fitted<moments, abi::fit_moments<float, inside_selection<std::int64_t>, cpu>>(image, {0, 0}).mean), 3);
  const std::vector<std::int32_t> labels{1};
  image.f.lists = {list_of(labels)};
  const auto found = fitted<moments, abi::fit_moments<float, labeled_selection<std::int64_t>, cpu>>(image, {2, 0, 0});
  EXPECT_EQ(found.mean, 3);
  EXPECT_EQ(found.tally.count, 2u);
  EXPECT_EQ(found.tally.undeclared, 1u);
  expect_parts(message([&] {
                 fitted<moments, abi::fit_moments<float, labeled_selection<std::int64_t>, cpu>>(image, {1, 0, 0});
               }),
               {"label 1 is outside the declared classes 0..0"});
}

TEST(abi_functions, percentiles_range_landmarks_and_otsu) {
  auto image = four();
  const auto p = fitted<percentiles<3>, abi::fit_percentiles<3, float, everything, cpu>>(image, {0, 50, 100, 0});
  EXPECT_EQ(p.value[0], 1);
  EXPECT_EQ(p.value[1], 2.5);
  EXPECT_EQ(p.value[2], 4);
  const auto range = fitted<intensity_range, abi::fit_range<float, everything, cpu>>(image, {0, 50, 0});
  EXPECT_EQ(range.low, 1);
  EXPECT_EQ(range.high, 2.5);
  const auto map = fitted<landmark_map<2>, abi::fit_landmarks<2, float, everything, cpu>>(image, {0, 100, 10, 40, 0});
  EXPECT_EQ(map.source[1], 4);
  EXPECT_EQ(map.target[0], 10);
  EXPECT_EQ(map.slope[0], 10);
  auto bytes = image_of<std::uint8_t>({1, 1, 4}, {3, 3, 9, 9});
  EXPECT_EQ((fitted<threshold, abi::fit_otsu<std::uint8_t, everything, cpu>>(bytes, {0, 0}).value), 3);
  EXPECT_EQ((fitted<threshold, abi::fit_otsu<std::uint8_t, everything, cpu>>(bytes, {1, 0})),
            plainly(bytes, fit_otsu{otsu_rule::opencv}, everything{}));
  expect_parts(message([&] {
                 fitted<threshold, abi::fit_otsu<std::uint8_t, everything, cpu>>(bytes, {2, 0});
               }),
               {"fit_otsu: rule", "0 to 1, got 2"});
  const auto counts =
      fitted<histogram_counts<std::uint8_t>, abi::fit_histogram<std::uint8_t, everything, cpu>>(bytes, {0});
  EXPECT_EQ(counts.counts[3], 2u);
  EXPECT_EQ(counts.counts[9], 2u);
  EXPECT_EQ(std::accumulate(std::begin(counts.counts), std::end(counts.counts), std::uint64_t{0}), 4u);
}

TEST(abi_functions, sharpness_and_colors) {
  // One bright pixel of 9: the Laplacian is -36 there and, mirrored about the border, 18 at its four neighbors.
  auto gray = image_of<std::uint8_t>({1, 3, 3}, {0, 0, 0, 0, 9, 0, 0, 0, 0});
  const auto sharp = fitted<sharpness, abi::fit_sharpness<cpu>>(gray, {});
  EXPECT_DOUBLE_EQ(sharp.mean, 1);
  EXPECT_DOUBLE_EQ(sharp.laplacian_variance, (4 * 18 * 18 + 36 * 36) / 9. - 16);
  EXPECT_DOUBLE_EQ(sharp.standard_deviation, std::sqrt(8.));
  EXPECT_EQ(sharp.pixels, 9u);
  EXPECT_EQ(sharp, plainly(gray, fit_sharpness{}, everything{}));
  auto colors = tile();
  const auto space =
      fitted<color_moments<hsv>, abi::fit_color_moments<hsv, std::uint8_t, everything, cpu>>(colors, {1, 200});
  EXPECT_EQ(space, plainly(colors, fit_color_moments<hsv>{.ddof = 1, .white = 200}, everything{}));
  EXPECT_EQ(space.tally.count, 576u);
}

// Numbers of fit_macenko: a mode, and those parameters that are changed.
std::vector<double> macenko_numbers(abi::stain_library mode,
                                    std::initializer_list<std::pair<std::size_t, double>> changed) {
  std::vector<double> numbers(1 + 2 * 15);
  numbers[0] = static_cast<double>(mode);
  for (const auto& [parameter, value] : changed) {
    numbers[1 + 2 * parameter] = 1;
    numbers[2 + 2 * parameter] = value;
  }
  return numbers;
}

TEST(abi_functions, macenko_by_mode_and_changed_parameters) {
  constexpr auto& function = abi::fit_macenko<std::uint8_t, everything, cpu>;
  auto image = tile();
  const auto by = [&](abi::stain_library mode) {
    return fitted<stain_basis, function>(image, macenko_numbers(mode, {}));
  };
  EXPECT_EQ(by(abi::stain_library::standard), plainly(image, macenko::standard.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::torchstain), plainly(image, macenko::torchstain.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::torchstain_torch), plainly(image, macenko::torchstain_torch.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::matlab), plainly(image, macenko::matlab.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::henorm), plainly(image, macenko::henorm.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::monai), plainly(image, macenko::monai.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::cucim), plainly(image, macenko::cucim.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::staintools), plainly(image, macenko::staintools.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::tiatoolbox), plainly(image, macenko::tiatoolbox.fit, everything{}));
  EXPECT_EQ(by(abi::stain_library::vahadane), plainly(image, macenko::vahadane.fit, everything{}));
  fit_macenko how;
  how.least_density = .2f;
  how.luminosity = .7;
  how.centered = false;
  how.alpha = 2;
  how.concentration_percentile = 98;
  how.concentrations_of_all = true;
  how.penalty = .02;
  how.refinements = 3;
  how.sparsity = .2;
  how.least_pixels = 10;
  how.least_share = .02;
  how.single_stain_ratio = 1e-5;
  how.single_stain_angle = .5;
  how.together = true;
  how.full_scale = 250;
  const auto changed = fitted<stain_basis, function>(image, macenko_numbers(abi::stain_library::standard, {{0, .2},
                                                                                                           {1, .7},
                                                                                                           {2, 0},
                                                                                                           {3, 2},
                                                                                                           {4, 98},
                                                                                                           {5, 1},
                                                                                                           {6, .02},
                                                                                                           {7, 3},
                                                                                                           {8, .2},
                                                                                                           {9, 10},
                                                                                                           {10, .02},
                                                                                                           {11, 1e-5},
                                                                                                           {12, .5},
                                                                                                           {13, 1},
                                                                                                           {14, 250}}));
  EXPECT_EQ(changed, plainly(image, how, everything{}));
  expect_parts(message([&] {
                 fitted<stain_basis, function>(image, macenko_numbers(abi::stain_library::standard, {{3, 60}}));
               }),
               {"fit_macenko", "alpha 60"});
}

TEST(abi_functions, results_have_the_size_of_their_type) {
  auto image = four();
  std::array<char, 71> small{};
  image.f.numbers = {0, 0};
  image.f.results = {{small.data(), 1, 71}};
  expect_parts(message([&] { abi::fit_moments<float, everything, cpu>(image.f.get()); }),
               {"fit_moments: results", "elements of 72 bytes, got 71"});
  std::array<moments, 1> room{};
  image.f.results = {room_of(room)};
  image.f.numbers = {0, 0, 1};
  expect_parts(message([&] { abi::fit_moments<float, everything, cpu>(image.f.get()); }),
               {"expected 2 numbers", "got 3"});
  image.f.numbers = {0, .5};
  expect_parts(message([&] { abi::fit_moments<float, everything, cpu>(image.f.get()); }),
               {"fit_moments: pooled", "true or false"});
  EXPECT_EQ(room[0], moments{});  // nothing has run
}

// Masks: a request reads `image`, writes `out`, and `found` where the function leaves something.
template <auto Function, class T, class Out, class Found>
void write(one_image<T>& image, std::vector<Out>& out, std::vector<double> numbers, Found& found) {
  const abi::array record = array_of(out, image.extents);
  image.f.outputs = {{&record, 1, 0}};
  image.f.numbers = std::move(numbers);
  image.f.results.clear();
  if constexpr (!std::is_same_v<Found, std::nullptr_t>) image.f.results = {room_of(found)};
  Function(image.f.get());
}
template <auto Function, class T>
std::vector<T> written(one_image<T>& image, std::vector<double> numbers) {
  std::vector<T> out(image.data.size(), 77);
  std::nullptr_t none{};
  write<Function>(image, out, std::move(numbers), none);
  return out;
}
using bytes = std::vector<std::uint8_t>;

TEST(abi_functions, body_mask_and_bounding_box) {
  auto image = image_of<std::int16_t>({1, 2, 4}, {0, -1000, 50, 50, -1000, -1000, 50, -1000});
  bytes mask(8, 77);
  std::array<largest_component_result, 1> largest{};
  write<abi::body_mask<std::int16_t, cpu>>(image, mask, {-300, 0}, largest);
  EXPECT_EQ(mask, (bytes{0, 0, 1, 1, 0, 0, 1, 0}));
  EXPECT_EQ(largest[0].voxels, 3u);
  EXPECT_EQ(largest[0].status, mask_status::ok);
  std::array<bounding_box_result, 1> box{};
  image.f.outputs.clear();
  image.f.numbers = {10};
  image.f.results = {room_of(box)};
  abi::bounding_box<std::int16_t, cpu>(image.f.get());
  EXPECT_EQ(box[0].first[2], 2);
  EXPECT_EQ(box[0].last[2], 3);
  EXPECT_EQ(box[0].last[1], 1);
  image.f.results = {};
  expect_parts(message([&] { abi::bounding_box<std::int16_t, cpu>(image.f.get()); }),
               {"bounding_box: found", "more than 0 results"});
}

TEST(abi_functions, crop_foreground) {
  std::array<std::int64_t, 3> start{}, size{};
  filled f{.numbers = {10, 10, 10, 0, 2, 3, 4, 5, 5, 5, 1, 1, 1, 1, 1, 4, 1},
           .results = {room_of(start), room_of(size)}};
  abi::crop_foreground(f.get());
  EXPECT_EQ(start, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(size, (std::array<std::int64_t, 3>{6, 5, 4}));
  f.numbers[3] = 1;  // an empty box
  abi::crop_foreground(f.get());
  EXPECT_EQ(size, (std::array<std::int64_t, 3>{10, 10, 10}));
  f.numbers[3] = 0;
  f.numbers[9] = 10;
  expect_parts(message([&] { abi::crop_foreground(f.get()); }), {"crop_foreground", "leaves the extents"});
  f.results.pop_back();
  expect_parts(message([&] { abi::crop_foreground(f.get()); }), {"crop_foreground: size", "more than 1 results"});
}

TEST(abi_functions, components) {
  auto mask = image_of<std::uint8_t>({1, 2, 5}, {1, 0, 0, 1, 1, 0, 1, 0, 1, 0});
  std::vector<std::int32_t> labels(10, 77);
  std::array<std::uint32_t, 1> count{};
  write<abi::label_components<std::uint8_t, cpu>>(mask, labels, {1}, count);
  EXPECT_EQ(labels, (std::vector<std::int32_t>{1, 0, 0, 2, 2, 0, 3, 0, 2, 0}));
  EXPECT_EQ(count[0], 3u);
  write<abi::label_components<std::uint8_t, cpu>>(mask, labels, {2}, count);
  EXPECT_EQ(count[0], 2u);
  bytes kept(10, 77);
  std::array<largest_component_result, 1> largest{};
  write<abi::keep_largest_component<std::uint8_t, cpu>>(mask, kept, {1}, largest);
  EXPECT_EQ(kept, (bytes{0, 0, 0, 1, 1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(largest[0].voxels, 3u);
  EXPECT_EQ((written<abi::remove_small_components<std::uint8_t, cpu>>(mask, {2, 3})),
            (bytes{0, 0, 0, 1, 1, 0, 0, 0, 1, 0}));
  expect_parts(message([&] {
                 written<abi::remove_small_components<std::uint8_t, cpu>>(mask, {0, 3});
               }),
               {"remove_small_components: connectivity", "1 to 3, got 0"});
  expect_parts(message([&] {
                 written<abi::remove_small_components<std::uint8_t, cpu>>(mask, {1, 2.5});
               }),
               {"least", "whole number"});
}

TEST(abi_functions, holes_and_morphology) {
  const bytes ring{1, 1, 1, 1, 0, 1, 1, 1, 1};
  auto mask = image_of<std::uint8_t>({1, 3, 3}, ring);
  EXPECT_EQ((written<abi::fill_holes<std::uint8_t, cpu>>(mask, {0})), ring);
  EXPECT_EQ((written<abi::fill_holes<std::uint8_t, cpu>>(mask, {1})), bytes(9, 1));
  const std::vector<double> cross{1, 0, 1, 1};
  const auto with = [&](double border) {
    std::vector<double> numbers = cross;
    numbers.push_back(border);
    return numbers;
  };
  auto dot = image_of<std::uint8_t>({1, 3, 3}, {0, 0, 0, 0, 1, 0, 0, 0, 0});
  EXPECT_EQ((written<abi::binary_dilation<std::uint8_t, cpu>>(dot, with(0))), (bytes{0, 1, 0, 1, 1, 1, 0, 1, 0}));
  EXPECT_EQ((written<abi::binary_opening<std::uint8_t, cpu>>(dot, with(0))), bytes(9, 0));
  EXPECT_EQ((written<abi::binary_closing<std::uint8_t, cpu>>(dot, with(0))), (bytes{0, 0, 0, 0, 1, 0, 0, 0, 0}));
  auto full = image_of<std::uint8_t>({1, 3, 3}, bytes(9, 1));
  EXPECT_EQ((written<abi::binary_erosion<std::uint8_t, cpu>>(full, with(0))), (bytes{0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ((written<abi::binary_erosion<std::uint8_t, cpu>>(full, with(1))), bytes(9, 1));
  expect_parts(message([&] {
                 written<abi::binary_erosion<std::uint8_t, cpu>>(full, {3, 0, 1, 1, 0});
               }),
               {"binary_erosion: shape", "0 to 2, got 3"});
  auto gray = image_of<float>({1, 1, 4}, {5, 2, 8, 3});
  EXPECT_EQ((written<abi::gray_erosion<float, cpu>>(gray, {0, 0, 0, 1, 0, 0})), (std::vector<float>{2, 2, 2, 3}));
  EXPECT_EQ((written<abi::gray_dilation<float, cpu>>(gray, {0, 0, 0, 1, 1, 6})), (std::vector<float>{6, 8, 8, 8}));
}

TEST(abi_functions, tissue_mask) {
  auto image = image_of<std::uint8_t>({1, 1, 4}, {250, 250, 90, 80, 250, 250, 90, 80, 250, 250, 90, 80}, 3);
  bytes mask(4, 77);
  std::array<tissue_mask_result, 1> found{};
  write<abi::tissue_mask<cpu>>(image, mask, {0, 80, 0, 0}, found);
  EXPECT_EQ(mask, (bytes{0, 0, 1, 1}));
  EXPECT_EQ(found[0].pixels, 2u);
  EXPECT_EQ(found[0].threshold, 90);
}

TEST(abi_functions, label_maps_are_changed_where_they_lie) {
  const std::vector<std::int32_t> labels{1};
  const bytes before{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  bytes map = before, plain = before;
  const abi::array record = array_of(map, {1, 3, 5}), other = array_of(plain, {1, 3, 5});
  const std::vector<std::uint64_t> ids{7};
  filled f = one_sample({}, {&record, 1, 0});
  f.numbers = {1, 1, 1, 2};
  f.lists = {list_of(labels)};
  f.r.sample_ids = ids.data();
  f.r.id_count = 1;
  f.r.seed = 5;
  f.r.epoch = 3;
  abi::random_binary_operation<std::uint8_t, cpu>(f.get());
  filled g = one_sample({}, {&other, 1, 0});
  disturb_labels(
      cpu{},
      random_binary_operation{
          .labels = labels, .probability = 1, .label_probability = 1, .smallest_radius = 1, .largest_radius = 2},
      abi::reader(g.get(), "").inout<std::uint8_t>(""), {.seed = 5, .epoch = 3, .sample_ids = ids});
  EXPECT_EQ(map, plain);
  EXPECT_NE(map, before);
  map = before;
  f.numbers = {1, 1, 1};
  abi::random_component_removal<std::uint8_t, cpu>(f.get());
  EXPECT_EQ(map, bytes(15, 0));
  f.numbers = {2, 1, 1};
  expect_parts(message([&] { abi::random_component_removal<std::uint8_t, cpu>(f.get()); }), {"must be in [0, 1]"});
  f.r.id_count = 0;
  f.numbers = {1, 1, 1};
  expect_parts(message([&] { abi::random_component_removal<std::uint8_t, cpu>(f.get()); }), {"0 sample ids for 1"});
}

TEST(abi_functions, mask_image) {
  auto map = image_of<std::int64_t>({1, 1, 3}, {-1, 0, 2});
  std::vector<float> image{1, 2, 3, 4, 5, 6};
  const abi::array record = array_of(image, {1, 1, 3}, 2);
  const std::vector<std::int64_t> channels{1};
  map.f.outputs = {{&record, 1, 0}};
  map.f.lists = {list_of(channels)};
  map.f.numbers = {1, 9};
  abi::mask_image<std::int64_t, float, cpu>(map.f.get());
  EXPECT_EQ(image, (std::vector<float>{1, 2, 3, 9, 9, 6}));
  map.f.outputs = {};
  expect_parts(message([&] { abi::mask_image<std::int64_t, float, cpu>(map.f.get()); }),
               {"mask_image: images", "more than 0 outputs"});
}

TEST(abi_functions, tables_are_aligned) {
  filled f;
  f.r.threads = 3;
  std::array<int, 2> room{};
  f.results = {room_of(room)};
  abi::reader r(f.get(), "table");
  const auto numbers = r.result<int>("numbers", 2);
  abi::place<cpu>::run_with_table(r, 1000, numbers,
                                  [](const cpu& exec, std::span<std::byte> table, std::span<int> out) {
                                    EXPECT_EQ(exec.threads, 3);
                                    EXPECT_EQ(table.size(), 1000u);
                                    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table.data()) % 256, 0u);
                                    std::memset(table.data(), 1, table.size());
                                    out[1] = 5;
                                  });
  EXPECT_EQ(room[1], 5);
}

}  // namespace
}  // namespace suture
