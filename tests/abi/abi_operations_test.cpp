// SPDX-License-Identifier: Apache-2.0
// Operations that cross from Python: each one out of numbers and lists is the one that C++ writes by hand, and a request
// that does not fit is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "support/abi_request.hpp"
#include "support/expect_says.hpp"
#include "support/source_directory.hpp"
#include "suture/abi/chain.hpp"
#include "suture/patch/crop_by_class.hpp"
#include "suture/suture.hpp"

namespace suture {
namespace {

using namespace std::literals;

// All that a value holds, number by number; lists that lie elsewhere by their place.
void flatten(double value, std::vector<std::uint64_t>& all) { all.push_back(std::bit_cast<std::uint64_t>(value)); }
template <class T>
void flatten_any(const T& value, std::vector<std::uint64_t>& all) {
  if constexpr (std::is_arithmetic_v<T>) {
    flatten(static_cast<double>(value), all);
  } else if constexpr (std::is_enum_v<T>) {
    flatten(static_cast<double>(value), all);
  } else if constexpr (std::is_pointer_v<T>) {
    all.push_back(reinterpret_cast<std::uintptr_t>(value));
  } else if constexpr (std::is_same_v<T, label_change>) {
    flatten_any(value.from, all), flatten_any(value.to, all);
  } else if constexpr (std::is_same_v<T, random_field>) {
    // left out, and never read
  } else if constexpr (std::is_same_v<T, color_table<lab>>) {
    for (const auto* spreads : {value.mean, value.standard_deviation})
      for (int k = 0; k < 3; ++k) flatten(spreads[k].mean, all), flatten(spreads[k].standard_deviation, all);
  } else if constexpr (std::is_same_v<T, detail::geometry_list>) {
    flatten_any(value.first, all);
    all.push_back(value.step), all.push_back(value.count);
  } else if constexpr (requires { value.has_value(); }) {
    all.push_back(value.has_value());
    if (value) flatten_any(*value, all);
  } else if constexpr (detail::given_elements<T>) {
    all.push_back(reinterpret_cast<std::uintptr_t>(value.data()));
    all.push_back(value.size());
  } else if constexpr (detail::is_variant<T>::value) {
    all.push_back(value.index());
    std::visit([&](const auto& chosen) { flatten_any(chosen, all); }, value);
  } else if constexpr (described<T>) {
    for_each_parameter<T>([&](std::string_view, const auto& member) {
      const auto& plain = without_note(member);
      if constexpr (requires { plain.count; })
        flatten_any(value.*plain.elements, all), flatten_any(value.*plain.count, all);
      else
        flatten_any(value.*plain, all);
    });
    if constexpr (requires { value.channels.synchronized; }) flatten_any(value.channels, all);
  } else if constexpr (detail::names_its_fields<T>) {
    detail::for_each_field<T>([&](std::string_view, auto member) { flatten_any(value.*member, all); });
  } else if constexpr (detail::wraps_array<T>) {
    flatten_any(detail::array_of(value), all);
  } else {
    all.push_back(std::size(value));
    for (const auto& each : value) flatten_any(each, all);
  }
}
template <class T>
std::vector<std::uint64_t> flat(const T& value) {
  std::vector<std::uint64_t> all;
  flatten_any(value, all);
  return all;
}

// The numbers of a vector of values.
template <class T>
T decoded(std::vector<double> numbers, std::vector<abi::list> lists = {}) {
  filled f{.numbers = std::move(numbers), .lists = std::move(lists)};
  abi::reader r(f.get(), name_of<T>());
  T made = r.next<T>("");
  r.finish();
  return made;
}

// Operations that a request was decoded to, by name.
std::set<std::string> seen;

template <class T>
void expect_decoded(const T& by_hand, std::vector<double> numbers, std::vector<abi::list> lists = {}) {
  seen.insert(std::string(name_of<T>()));
  EXPECT_EQ(flat(decoded<T>(numbers, lists)), flat(by_hand)) << name_of<T>();
  // One number less, one more, and one list less are refused.
  if (!numbers.empty()) {
    const std::vector<double> fewer(numbers.begin(), numbers.end() - 1);
    EXPECT_SAYS(decoded<T>(fewer, lists), "numbers");
  }
  if (!lists.empty()) EXPECT_SAYS(decoded<T>(numbers, {lists.begin(), lists.end() - 1}), "lists");
  numbers.push_back(0);
  EXPECT_SAYS(decoded<T>(numbers, lists), "numbers");
}

// Names of the operations that take part in a chain, from tests/operations.txt.
std::set<std::string> names_of_operations() {
  std::ifstream file(support::source_directory() / "tests/operations.txt");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, bar, role;
    words >> name >> bar >> role;
    if (!name.empty() && name[0] != '#' && role != "other") names.insert(name);
  }
  for (const char* other : {"cast", "sampling", "crop_by_class"}) names.insert(other);
  return names;
}

// -inf .. inf and NaN are numbers that cross.
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(abi_operations, every_operation_is_the_one_that_is_written_by_hand) {
  const std::vector<moments> fits(3);
  const std::vector<intensity_range> ranges(2);
  const std::vector<landmark_map<3>> landmarks(2);
  const std::vector<stain_basis> stains(2);
  const std::vector<color_moments<lab>> colors(2);
  const std::vector<color_moments<ruderman>> of_ruderman(1);
  const std::vector<abi::detail::hole_row> rows{{1, -2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
  const std::vector<float> few{0, .25f, 1};

  // Values.
  expect_decoded(clamp{.low = -1, .high = 2}, {-1, 2});
  expect_decoded(rescale{.slope = 2, .intercept = .1f}, {2, .1});
  expect_decoded(scale_intensity{.a_min = 1, .a_max = 2, .b_min = 3, .b_max = 4, .clip = true}, {1, 2, 3, 4, 1});
  expect_decoded(window{.center = 40, .width = 400, .low = -1, .high = 1, .function = voi_function::linear},
                 {40, 400, -1, 1, 1});
  expect_decoded(sigmoid_window{.center = 1, .width = 2, .low = 3, .high = 4}, {1, 2, 3, 4});
  expect_decoded(exclude{.value = 7}, {7});
  expect_decoded(patch_z_score{.nan = 5}, {5});
  expect_decoded(gamma{.exponent = 1.5f, .range = {-1, 2}}, {1.5, -1, 2});
  expect_decoded(contrast{.factor = 2, .pivot = 3}, {2, 3});
  expect_decoded(brightness{.offset = -static_cast<float>(infinity)}, {-infinity});
  expect_decoded(brightness_factor{.factor = 3}, {3});
  expect_decoded(invert{.pivot = 4}, {4});
  expect_decoded(ct_normalize{.lower = 1, .upper = 2, .mean = 3, .standard_deviation = 4}, {1, 2, 3, 4});
  bias_field field{.coefficients = {}, .extents = {4, 5, 6}, .degree = 2, .basis = bias_basis::monomial};
  std::copy(few.begin(), few.end(), field.coefficients.begin());
  expect_decoded(field, {4, 5, 6, 2, 1}, {list_of(few)});
  histogram_shift shift{.floating = {}, .count = 3, .range = {-2, 2}};
  std::copy(few.begin(), few.end(), shift.floating.begin());
  expect_decoded(shift, {-2, 2}, {list_of(few)});
  coarse_dropout dropout{.holes = {}, .count = 2, .fill = {1, 2}, .keep_holes = true};
  dropout.holes[0] = {{1, -2, 3}, {4, 5, 6}};
  dropout.holes[1] = {{7, 8, 9}, {10, 11, 12}};
  expect_decoded(dropout, {1, 2, 1}, {list_of(rows)});
  expect_decoded(random_gamma{.range = {1, 2}, .value_range = {3, 4}, .law = interval_law::mixture, .probability = .5f},
                 {1, 2, 3, 4, 2, .5});
  expect_decoded(random_contrast{.range = {1, 2}, .pivot = 3, .law = interval_law::log_uniform, .probability = .5f},
                 {1, 2, 3, 1, .5});
  expect_decoded(random_brightness{.range = {1, 2}, .probability = .5f}, {1, 2, .5});
  expect_decoded(random_brightness_factor{.range = {1, 2}, .law = interval_law::mixture, .probability = .5f},
                 {1, 2, 2, .5});
  expect_decoded(gaussian_noise{.sigma = {1, 2}, .mean = 3, .probability = .5f}, {1, 2, 3, .5});
  expect_decoded(rician_noise{.sigma = {1, 2}, .mean = 3, .probability = .5f}, {1, 2, 3, .5});
  expect_decoded(poisson_noise{.counts = {1, 2}, .law = interval_law::log_uniform, .probability = .5f}, {1, 2, 1, .5});
  expect_decoded(
      random_bias_field{.coefficients = {1, 2}, .degree = 4, .basis = bias_basis::monomial, .probability = .5f},
      {1, 2, 4, 1, .5});
  expect_decoded(random_histogram_shift{.control_points = {3, 8}, .value_range = {1, 2}, .probability = .5f},
                 {3, 8, 1, 2, .5});
  expect_decoded(random_coarse_dropout{.holes = {1, 6},
                                       .size = {2, 3, 4},
                                       .max_size = {5, 6, 7},
                                       .fill = {8, 9},
                                       .keep_holes = true,
                                       .may_leave = true,
                                       .probability = .5f},
                 {1, 6, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, .5});
  expect_decoded(
      per_channel(random_brightness{.range = {1, 2}, .probability = .5f}, {.probability = .25f, .synchronized = true}),
      {1, 2, .5, .25, 1});
  seen.insert("per_channel");
  expect_decoded(z_score{.fitted = fits, .channels = 3, .nonzero = true}, {3, 1}, {list_of(fits)});
  expect_decoded(percentile_scale{.fitted = ranges, .channels = 2, .b_min = 3, .b_max = 4, .clip = false}, {2, 3, 4, 0},
                 {list_of(ranges)});
  expect_decoded(min_max_scale{.fitted = ranges, .channels = 2, .b_min = 3, .b_max = 4}, {2, 3, 4}, {list_of(ranges)});
  expect_decoded(limit_to_range{.fitted = ranges, .channels = 2}, {2}, {list_of(ranges)});
  expect_decoded(histogram_match<3>{.fitted = landmarks, .channels = 2}, {2}, {list_of(landmarks)});
  expect_decoded(cast<std::uint8_t>{}, {});

  // Geometry.
  expect_decoded(identity{}, {});
  expect_decoded(resample{.spacing_mm = {1, 2, 3}, .map = coordinate_map::physical, .extents = {4, 5, 6}},
                 {1, 2, 3, 4, 4, 5, 6});
  expect_decoded(resize{.extents = {4, 5, 6}, .map = coordinate_map::align_corners}, {4, 5, 6, 1});
  expect_decoded(resample_to{.target = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {{{1, 0, 0}, {0, 0, -1}, {0, 1, 0}}}}},
                 {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 0, 0, 0, -1, 0, 1, 0});
  expect_decoded(crop{.start = {1, -2, 3}, .size = {4, 5, 6}}, {1, -2, 3, 4, 5, 6});
  expect_decoded(center_crop{.size = {4, 5, 6}}, {4, 5, 6});
  expect_decoded(random_crop{.size = {4, 5, 6}, .probability = .5f}, {4, 5, 6, .5});
  const std::vector<extent3> starts{{1, 2, 3}, {4, 5, 6}};
  expect_decoded(crop_at{.starts = starts, .size = {4, 5, 6}, .may_leave = true}, {4, 5, 6, 1}, {list_of(starts)});
  expect_decoded(pad{.before = {1, 2, 3}, .after = {4, 5, 6}}, {1, 2, 3, 4, 5, 6});
  expect_decoded(pad_to{.size = {4, 5, 6}}, {4, 5, 6});
  expect_decoded(crop_or_pad{.size = {4, 5, 6}}, {4, 5, 6});
  expect_decoded(flip{.axes = {true, false, true}}, {1, 0, 1});
  expect_decoded(random_flip{.axis_probability = {.1f, .2f, .3f}, .probability = .5f}, {.1, .2, .3, .5});
  expect_decoded(rot90{.axes = {2, 0}, .quarter_turns = -3}, {2, 0, -3});
  expect_decoded(random_rot90{.axes = {2, 0}, .max_quarter_turns = 2, .probability = .5f}, {2, 0, 2, .5});
  expect_decoded(permute{.order = {2, 0, 1}}, {2, 0, 1});
  expect_decoded(orient{.to = "RAS"}, {}, {list_of("RAS"sv)});
  expect_decoded(
      affine_matrix{.linear = {{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}}, .translation = {1, 2, 3}, .about_center = false},
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 0});
  expect_decoded(affine{.rotate_deg = {1, 2, 3},
                        .scale = {4, 5, 6},
                        .shear = {{1, 2, 3, 4, 5, 6}},
                        .translate = {7, 8, 9},
                        .convention = affine_convention::kornia},
                 {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 5});
  expect_decoded(random_affine{.rotate_deg = {{-1, 1}, {-2, 2}, {-3, 3}},
                               .scale = {.5f, 2},
                               .shear = {-4, 5},
                               .translate = {{1, 2}, {3, 4}, {5, 6}},
                               .isotropic_scale = false,
                               .convention = affine_convention::monai,
                               .probability = .5f},
                 {-1, 1, -2, 2, -3, 3, .5, 2, .5, 2, .5, 2, -4, 5, 1, 2, 3, 4, 5, 6, 0, 3, .5});
  expect_decoded(random_scale{.range = {1, 2},
                              .law = interval_law::mixture,
                              .axes = {true, false, true},
                              .convention = affine_convention::nnunet,
                              .probability = .5f},
                 {1, 2, 2, 1, 0, 1, 4, .5});
  expect_decoded(elastic{.control_spacing_mm = {1, 2, 3},
                         .max_displacement_mm = {4, 5, 6},
                         .locked_borders = 1,
                         .allow_folding = true,
                         .control_points = {7, 8, 9},
                         .mesh = mesh_span::itk,
                         .limit_to_safe = true,
                         .control_values = few},
                 {1, 2, 3, 4, 5, 6, 1, 1, 7, 8, 9, 2, 1}, {list_of(few)});
  expect_decoded(random_elastic{.control_spacing_mm = {1, 2, 3},
                                .max_displacement_mm = {4, 5, 6},
                                .locked_borders = 1,
                                .allow_folding = true,
                                .control_points = {7, 8, 9},
                                .mesh = mesh_span::centers,
                                .limit_to_safe = true,
                                .probability = .5f},
                 {1, 2, 3, 4, 5, 6, 1, 1, 7, 8, 9, 1, 1, .5});
  const abi::geometry maps{&fits, 40, 2};
  const std::vector<abi::geometry> one_map{maps};
  expect_decoded(inverse_affine{abi::geometry_of(maps)}, {}, {list_of(one_map)});
  expect_decoded(inverse_elastic{abi::geometry_of(maps)}, {}, {list_of(one_map)});
  expect_decoded(sampling<cubic_bspline, constant, vote>{.border = {-1}, .label_outside = 255}, {-1, 255});
  expect_decoded(sampling<linear, default_value>{.border = {-1024, image_rim::centers}, .label_outside = 3},
                 {-1024, 1, 3});
  expect_decoded(sampling<linear, mirror>{.label_outside = 3}, {3});
  const std::vector<const class_index*> cases{nullptr, reinterpret_cast<const class_index*>(8)};
  const std::vector<std::uint8_t> forced{1, 0};
  expect_decoded(
      crop_by_class{.rule = class_balanced_patch{.size = {1, 2, 3}, .ratios = few}, .cases = cases, .forced = forced},
      {0, 1, 2, 3}, {list_of(few), list_of(cases), list_of(forced)});
  expect_decoded(
      crop_by_class{
          .rule = pos_neg_patch{.size = {1, 2, 3}, .positive = 4, .negative = 5}, .cases = cases, .forced = forced},
      {1, 1, 2, 3, 4, 5}, {list_of(cases), list_of(forced)});
  expect_decoded(crop_by_class{.rule = oversampled_patch{.size = {1, 2, 3}, .margin = {4, 5, 6}, .probability = .5f},
                               .cases = cases,
                               .forced = forced},
                 {2, 1, 2, 3, 4, 5, 6, .5}, {list_of(cases), list_of(forced)});

  // Filters.
  expect_decoded(gaussian_blur{.sigma = {1, 2, 3}, .kernel = blur_kernel::monai, .truncate = 4}, {1, 2, 3, 2, 4});
  expect_decoded(random_gaussian_blur{.sigma = {1, 2},
                                      .kernel = blur_kernel::nnunet,
                                      .each = sigma_of::sample,
                                      .channel_probability = .25f,
                                      .probability = .5f},
                 {1, 2, 1, 2, .25, .5});
  expect_decoded(random_low_resolution{.zoom = {.5f, 1},
                                       .pick = coarse_pick::nearest_lower,
                                       .axes = {false, true, true},
                                       .channel_probability = .25f,
                                       .probability = .5f},
                 {.5, 1, 1, 0, 1, 1, .25, .5});
  expect_decoded(median_filter{}, {});
  expect_decoded(random_median_filter{.channel_probability = .25f, .probability = .5f}, {.25, .5});
  expect_decoded(sharpen{.sigma = {1, 2, 3}, .amount = 4, .kernel = blur_kernel::nnunet}, {1, 2, 3, 4, 1});
  expect_decoded(random_sharpen{.sigma = {1, 2},
                                .amount = {3, 4},
                                .kernel = blur_kernel::nnunet,
                                .channel_probability = .25f,
                                .probability = .5f},
                 {1, 2, 3, 4, 1, .25, .5});
  coarse_shuffle shuffle{.holes = {}, .count = 2};
  shuffle.holes[0] = {{1, -2, 3}, {4, 5, 6}};
  shuffle.holes[1] = {{7, 8, 9}, {10, 11, 12}};
  expect_decoded(shuffle, {}, {list_of(rows)});
  expect_decoded(random_coarse_shuffle{.holes = {1, 2}, .size = {3, 4, 5}, .max_size = {6, 7, 8}, .probability = .5f},
                 {1, 2, 3, 4, 5, 6, 7, 8, .5});
  expect_decoded(gibbs_ringing{.alpha = .25f}, {.25});
  expect_decoded(
      random_gibbs_ringing{.alpha = {.1f, .2f}, .one_alpha = false, .channel_probability = .25f, .probability = .5f},
      {.1, .2, 0, .25, .5});
  expect_decoded(kspace_spike{.location = {1, 2, 3}, .intensity = 4, .relative = false}, {1, 2, 3, 4, 0});
  expect_decoded(
      random_kspace_spike{
          .intensity = {1, 2}, .relative = false, .one_spike = true, .channel_probability = .25f, .probability = .5f},
      {1, 2, 0, 1, .25, .5});
  expect_decoded(random_patch_contrast{.range = {1, 2},
                                       .law = interval_law::mixture,
                                       .preserve_range = false,
                                       .one_factor = true,
                                       .probability = .5f},
                 {1, 2, 2, 0, 1, .5});
  expect_decoded(random_patch_gamma{.range = {1, 2},
                                    .law = interval_law::mixture,
                                    .invert = true,
                                    .retain_statistics = false,
                                    .one_exponent = true,
                                    .probability = .5f},
                 {1, 2, 2, 1, 0, 1, .5});

  // Colors.
  expect_decoded(grayscale{.rule = gray_rule::pillow}, {2});
  expect_decoded(random_grayscale{.rule = gray_rule::itu709, .probability = .5f}, {1, .5});
  expect_decoded(channel_normalize{.of = {{1, 2, 3}, {4, 5, 6}}, .white = 7}, {1, 2, 3, 4, 5, 6, 7});
  expect_decoded(
      color_jitter{.brightness = 1,
                   .contrast = 2,
                   .saturation = 3,
                   .hue = 4,
                   .pivot = 5,
                   .fitted = fits,
                   .order = {color_step::hue, color_step::brightness, color_step::saturation, color_step::contrast},
                   .white = 6},
      {1, 2, 3, 4, 5, 3, 0, 2, 1, 6}, {list_of(fits)});
  expect_decoded(random_color_jitter{.brightness = {1, 2},
                                     .contrast = {3, 4},
                                     .saturation = {5, 6},
                                     .hue = {7, 8},
                                     .pivot = 9,
                                     .fitted = fits,
                                     .random_order = true,
                                     .white = 10,
                                     .probability = .5f},
                 {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 10, .5}, {list_of(fits)});
  expect_decoded(hsv_jitter{.hue = 1, .saturation = 2, .value = 3, .white = 4}, {1, 2, 3, 4});
  expect_decoded(
      random_hsv_jitter{.hue = {1, 2}, .saturation = {3, 4}, .value = {5, 6}, .white = 7, .probability = .5f},
      {1, 2, 3, 4, 5, 6, 7, .5});
  expect_decoded(hed_jitter{.alpha = {1, 2, 3}, .beta = {4, 5, 6}, .units = hed_units::tellez_plus2, .white = 7},
                 {1, 2, 3, 4, 5, 6, 1, 7});
  expect_decoded(
      random_hed_jitter{
          .alpha = {1, 2}, .beta = {3, 4}, .units = hed_units::tellez_plus2, .white = 7, .probability = .5f},
      {1, 2, 3, 4, 1, 7, .5});
  expect_decoded(stain_jitter{.fitted = stains,
                              .shared = true,
                              .basis = {{{1, 2}, {3, 4}, {5, 6}}},
                              .alpha = {7, 8},
                              .beta = {9, 10},
                              .keep_rest = false,
                              .tissue_density = 11,
                              .white = 12},
                 {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 11, 12}, {list_of(stains)});
  expect_decoded(random_stain_jitter{.fitted = stains,
                                     .shared = true,
                                     .basis = {{{1, 2}, {3, 4}, {5, 6}}},
                                     .alpha = {7, 8},
                                     .beta = {9, 10},
                                     .keep_rest = false,
                                     .tissue_density = 11,
                                     .white = 12,
                                     .probability = .5f},
                 {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 11, 12, .5}, {list_of(stains)});
  expect_decoded(macenko_normalize{.fitted = stains,
                                   .reference = {{{{1, 2}, {3, 4}, {5, 6}}}, {7, 8}},
                                   .shared = true,
                                   .rounding = stain_rounding::truncated,
                                   .over = 254},
                 {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 254}, {list_of(stains)});
  expect_decoded(reinhard<lab>{.fitted = colors,
                               .target = {.mean = {1, 2, 3}, .standard_deviation = {4, 5, 6}},
                               .rule = reinhard_rule::modified,
                               .white = 7},
                 {1, 2, 3, 4, 5, 6, 1, 7}, {list_of(colors)});
  expect_decoded(
      reinhard<ruderman>{
          .fitted = of_ruderman, .target = {.mean = {1, 2, 3}, .standard_deviation = {4, 5, 6}}, .white = 7},
      {1, 2, 3, 4, 5, 6, 0, 7}, {list_of(of_ruderman)});
  expect_decoded(random_stain_na<lab>{.fitted = colors,
                                      .table = crc_lab,
                                      .law = stain_na_law::uniform,
                                      .widen = .25,
                                      .white = 7,
                                      .probability = .5f},
                 {0, 2, .25, 7, .5}, {list_of(colors)});

  // Label conversions.
  expect_decoded(one_hot{.classes = 4, .background = false, .ignore = 9}, {4, 0, 1, 9});
  const std::vector<std::int32_t> sets{2, 1, 5, 3, 1, 2, -4};
  expect_decoded(regions{.sets = {{5}, {1, 2, -4}}, .ignore = {}}, {0, 0}, {list_of(sets)});
  const std::vector<label_change> changes{{1, 4}, {2, -3}};
  expect_decoded(remap{.table = {{1, 4}, {2, -3}}, .others = -1}, {1, -1}, {list_of(changes)});

  EXPECT_EQ(seen, names_of_operations());
}

TEST(abi_operations, numbers_become_those_of_the_type) {
  EXPECT_EQ(decoded<random_bias_field>({0, .1, 3, 0, 1}).coefficients.high, .1f);
  EXPECT_EQ(decoded<one_hot>({9007199254740992.0, 1, 0, 0}).classes, std::int64_t{1} << 53);
  EXPECT_NE(decoded<patch_z_score>({std::numeric_limits<double>::quiet_NaN()}).nan, 0);
}

TEST(abi_operations, what_does_not_fit_is_refused_by_name) {
  const auto says = [](const auto& f, std::initializer_list<const char*> parts) { expect_parts(message(f), parts); };
  says([] { decoded<window>({40, 400, 0, 1, 2}); }, {"window: function: expected"});
  says([] { decoded<window>({40, 400, 0, 1, .5}); }, {"window: function: expected"});
  says([] { decoded<window>({40, 1e300, 0, 1, 0}); }, {"window: width: expected a number within float32"});
  says([] { decoded<rot90>({0, 1, 2147483648.0}); }, {"rot90: quarter_turns: expected a whole number"});
  says([] { decoded<crop>({0, 0, 1.5, 1, 1, 1}); }, {"crop: start: expected a whole number", "1.5"});
  says([] { decoded<flip>({0, 2, 0}); }, {"flip: axes: expected true or false, got 2"});
  says([] { decoded<random_affine>({1, 2}); }, {"random_affine: rotate_deg", "expected more than 2 numbers"});
  says([] { decoded<one_hot>({4, 1, 1, .5}); }, {"one_hot: ignore: expected a whole number"});
  says([] { decoded<crop_by_class>({3}); }, {"crop_by_class: rule: expected a number below 3, got 3"});
  const std::vector<color_moments<lab>> colors(1);
  says(
      [&] {
        decoded<random_stain_na<lab>>({1, 0, 0, 255, 1}, {list_of(colors)});
      },
      {"random_stain_na: table: expected a number below 1, got 1"});

  const std::vector<float> many(57);
  says(
      [&] {
        decoded<bias_field>({1, 1, 1, 3, 0}, {list_of(many)});
      },
      {"bias_field: coefficients: expected at most 56 elements, got 57"});
  says(
      [&] {
        decoded<histogram_shift>({0, 1}, {list_of(many)});
      },
      {"histogram_shift: floating: expected at most 32 elements, got 57"});
  const std::vector<abi::detail::hole_row> holes(33);
  says(
      [&] {
        decoded<coarse_dropout>({0, 0, 0}, {list_of(holes)});
      },
      {"coarse_dropout: holes: expected at most 32 elements, got 33"});
  const std::vector<abi::detail::hole_row> far{{0, 0, std::int64_t{1} << 40, 1, 1, 1}};
  says([&] { decoded<coarse_shuffle>({}, {list_of(far)}); },
       {"coarse_shuffle: holes: expected a whole number of 32 bits"});
  says([&] { decoded<coarse_shuffle>({}, {list_of(std::vector<std::int64_t>(6))}); },
       {"coarse_shuffle: holes: expected elements of 48 bytes, got 8"});
  const std::vector<label_change> changes(65);
  says([&] { decoded<remap>({0, 0}, {list_of(changes)}); }, {"remap: table: expected at most 64 elements, got 65"});
  says([&] { decoded<z_score>({1, 0}, {list_of(many)}); }, {"z_score: fitted: expected elements of"});
  says([&] { decoded<inverse_affine>({}, {list_of(std::vector<abi::geometry>(2))}); },
       {"inverse_of: plan: expected the maps of one plan, got 2"});

  const auto sets = [](std::vector<std::int32_t> flat) {
    return message([&] { decoded<regions>({0, 0}, {list_of(flat)}); });
  };
  expect_parts(sets({}), {"regions: sets: expected more than 0 elements"});
  expect_parts(sets({33}), {"regions: sets: expected 0 to 32 sets, got 33"});
  expect_parts(sets({-1}), {"regions: sets: expected 0 to 32 sets, got -1"});
  expect_parts(sets({1}), {"regions: sets: expected more than 1 elements"});
  expect_parts(sets({1, 65}), {"regions: sets: expected 0 to 64 labels, got 65"});
  expect_parts(sets({1, -1}), {"regions: sets: expected 0 to 64 labels, got -1"});
  expect_parts(sets({1, 2, 7}), {"regions: sets: expected 2 labels, got 1"});
  expect_parts(sets({1, 1, 7, 8}), {"regions: sets: expected 3 elements, got 4"});
}

}  // namespace
}  // namespace suture
