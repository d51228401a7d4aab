// SPDX-License-Identifier: Apache-2.0
// Chains that cross from Python: every operation out of numbers and lists is the one that C++ writes by hand, what does
// not fit is refused, and a module makes the voxels that plan and run make.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include "support/abi_request.hpp"
#include "support/expect_says.hpp"
#include "support/source_directory.hpp"
#include "suture/abi/chain.hpp"
#include "suture/patch/crop_by_class.hpp"
#include "suture/suture.hpp"

namespace ct {
using moved = suture::sampling<suture::linear, suture::default_value, suture::nearest>;
using operations =
    suture::chain<suture::random_affine, moved, suture::random_crop, suture::window, suture::gaussian_noise>;
}  // namespace ct

SUTURE_ABI_CHAIN(ct::operations, suture::abi::image_slot<std::int16_t, float>,
                 suture::abi::level_slot<std::uint8_t, std::uint8_t, suture::remap>,
                 suture::abi::label_slot<std::uint8_t, std::uint8_t>)

namespace suture {
namespace {

template <class T>
abi::list list_of(const std::vector<T>& elements) {
  return {elements.data(), static_cast<std::int64_t>(elements.size()), sizeof(T)};
}
abi::list list_of(std::string_view letters) { return {letters.data(), static_cast<std::int64_t>(letters.size()), 1}; }

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
      const auto& plain = without_notes(member);
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

// As many as the lines of tests/operations.txt that take part in a chain.
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

TEST(abi_chain, every_operation_is_the_one_that_is_written_by_hand) {
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
  expect_decoded(orient{.to = "RAS"}, {}, {list_of("RAS")});
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

TEST(abi_chain, numbers_become_those_of_the_type) {
  EXPECT_EQ(decoded<random_bias_field>({0, .1, 3, 0, 1}).coefficients.high, .1f);
  EXPECT_EQ(decoded<one_hot>({9007199254740992.0, 1, 0, 0}).classes, std::int64_t{1} << 53);
  EXPECT_NE(decoded<patch_z_score>({std::numeric_limits<double>::quiet_NaN()}).nan, 0);
}

TEST(abi_chain, what_does_not_fit_is_refused_by_name) {
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

// A batch of two volumes with two label maps, and what a module and plain C++ make of it.
struct batch {
  static constexpr extent3 in{12, 20, 24}, out{6, 8, 16}, half{3, 4, 8};
  static constexpr std::size_t samples = 2;
  static std::size_t voxels(const extent3& n) { return static_cast<std::size_t>(n[0] * n[1] * n[2]); }

  std::vector<grid> grids{samples, {in, {2.5, .8, .8}, {-10, 20, 30}}};
  std::vector<std::int16_t> image = std::vector<std::int16_t>(samples * voxels(in));
  std::vector<std::uint8_t> first = std::vector<std::uint8_t>(image.size()), second = first;
  std::vector<std::uint64_t> ids{41, 7};

  batch() {
    for (std::size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<std::int16_t>(static_cast<int>(i * 7919 % 2400) - 1000);
      first[i] = static_cast<std::uint8_t>(i / 37 % 3);
      second[i] = static_cast<std::uint8_t>(i / 11 % 5);
    }
  }
};

struct made {
  std::vector<float> image = std::vector<float>(batch::samples * batch::voxels(batch::out));
  std::vector<std::uint8_t> first = std::vector<std::uint8_t>(image.size()), second = first;
  std::vector<std::uint8_t> level = std::vector<std::uint8_t>(batch::samples * batch::voxels(batch::half));
};

// The views of samples that lie one after the other.
template <class T>
std::vector<view<T>> views_of_each(T* data, const std::vector<grid>& grids) {
  std::vector<view<T>> all;
  for (std::size_t i = 0; i < grids.size(); ++i)
    all.push_back(contiguous(data + i * batch::voxels(grids[i].extents), grids[i]));
  return all;
}
template <class T>
std::vector<abi::array> arrays_of(const std::vector<view<T>>& views) {
  std::vector<abi::array> all;
  for (const auto& v : views) {
    abi::array a{const_cast<void*>(static_cast<const void*>(v.data)),
                 {},
                 {v.stride[0], v.stride[1], v.stride[2]},
                 v.channels,
                 v.channel_stride,
                 {},
                 {},
                 {},
                 {},
                 {}};
    abi::write_grid(v.grid, a);
    all.push_back(a);
  }
  return all;
}
abi::bound bound_of(const std::vector<abi::array>& arrays) {
  return {arrays.data(), static_cast<std::int64_t>(arrays.size()), 0};
}

grid halved(const grid& g) {
  grid h = g;
  for (int k = 0; k < 3; ++k) h.extents[k] = g.extents[k] / 2, h.spacing[k] = g.spacing[k] * 2;
  return h;
}

TEST(abi_chain, a_module_makes_what_plan_and_run_make) {
  const batch b;
  const remap conversion{.table = {{2, 5}}, .others = {}};
  const auto plain =
      plan(random_affine{.rotate_deg = 15, .scale = {.8f, 1.2f}, .shear = {-.05f, .1f}, .translate = {1, 2, 3}} |
               ct::moved{.border = {-1024, image_rim::faces}, .label_outside = 4} | random_crop{.size = batch::out} |
               window{.center = 40, .width = 400} | gaussian_noise{.sigma = {.01f, .1f}, .probability = .5f},
           b.grids, {.seed = 3, .epoch = 2, .sample_ids = b.ids});
  std::vector<grid> outs, halves;
  for (std::size_t i = 0; i < batch::samples; ++i) {
    outs.push_back(plain.output_grid(i));
    halves.push_back(halved(outs.back()));
  }
  made by_hand, by_module;
  run(cpu{.threads = 1}, plain,
      image(views_of_each(b.image.data(), b.grids), views_of_each(by_hand.image.data(), outs)),
      labels(views_of_each(b.first.data(), b.grids), views_of_each(by_hand.first.data(), outs), conversion,
             deep_supervision(views_of_each(by_hand.level.data(), halves))),
      labels(views_of_each(b.second.data(), b.grids), views_of_each(by_hand.second.data(), outs)));

  const auto in_image = arrays_of(views_of_each(b.image.data(), b.grids));
  const auto in_first = arrays_of(views_of_each(b.first.data(), b.grids));
  const auto in_second = arrays_of(views_of_each(b.second.data(), b.grids));
  const std::vector<label_change> changes{{2, 5}};
  std::vector<abi::array> placed(batch::samples);
  filled planning{.numbers = {-15,  15,  -15, 15, -15, 15, .8, 1.2, .8, 1.2, .8, 1.2,          // random_affine
                              -.05, .1,  -1,  1,  -2,  2,  -3, 3,   1,  0,   1,  -1024, 0, 4,  // sampling
                              6,    8,   16,  1,                                               // random_crop
                              40,   400, 0,   1,  0,                                           // window
                              .01,  .1,  0,   .5,                                              // gaussian_noise
                              0,    0},                                                        // remap
                  .lists = {list_of(changes)},
                  .results = {{placed.data(), batch::samples, sizeof(abi::array)}},
                  .inputs = {bound_of(in_image), bound_of(in_first), bound_of(in_second)}};
  planning.r.samples = batch::samples;
  planning.r.sample_ids = b.ids.data();
  planning.r.id_count = batch::samples;
  planning.r.seed = 3;
  planning.r.epoch = 2;
  EXPECT_EQ(suture_version(), abi::version);
  void* handle = nullptr;
  ASSERT_EQ(suture_plan(&planning.get(), &handle), 0) << suture_error();
  for (std::size_t i = 0; i < batch::samples; ++i) {
    EXPECT_EQ(abi::grid_of(placed[i]).extents, batch::out);
    EXPECT_EQ(abi::grid_of(placed[i]).origin, outs[i].origin);
  }

  const std::vector<std::int64_t> levels{0, 1, 0};
  const auto out_image = arrays_of(views_of_each(by_module.image.data(), outs));
  const auto out_first = arrays_of(views_of_each(by_module.first.data(), outs));
  const auto out_level = arrays_of(views_of_each(by_module.level.data(), halves));
  const auto out_second = arrays_of(views_of_each(by_module.second.data(), outs));
  filled running{.lists = {list_of(levels)},
                 .outputs = {bound_of(out_image), bound_of(out_first), bound_of(out_level), bound_of(out_second)}};
  running.r.samples = batch::samples;
  running.r.threads = 1;
  std::uint64_t bytes = 0;
  EXPECT_EQ(suture_workspace(handle, &running.get(), &bytes), 0) << suture_error();
  ASSERT_EQ(suture_run(handle, &running.get()), 0) << suture_error();
  EXPECT_EQ(0, std::memcmp(by_module.image.data(), by_hand.image.data(), by_hand.image.size() * sizeof(float)));
  EXPECT_EQ(by_module.first, by_hand.first);
  EXPECT_EQ(by_module.level, by_hand.level);
  EXPECT_EQ(by_module.second, by_hand.second);
  EXPECT_NE(by_hand.first, by_hand.second);
  EXPECT_TRUE(std::count(by_hand.first.begin(), by_hand.first.end(), 5) > 0);

  const char* drawn = nullptr;
  ASSERT_EQ(suture_drawn(handle, &drawn), 0);
  EXPECT_EQ(drawn, abi::drawn_text(plain));
  abi::geometry maps{};
  suture_geometry(handle, &maps);
  EXPECT_EQ(maps.samples, 2);
  EXPECT_EQ(abi::geometry_of(maps)[1].output.origin, outs[1].origin);

  // What does not fit is refused, and the plan is as it was.
  const auto refused = [&](std::vector<std::int64_t> wrong_levels, std::vector<abi::bound> wrong_outputs) {
    filled wrong{.lists = {list_of(wrong_levels)}, .outputs = std::move(wrong_outputs)};
    wrong.r.samples = batch::samples;
    EXPECT_EQ(suture_run(handle, &wrong.get()), 1);
    return std::string(suture_error());
  };
  expect_parts(refused({0, 1}, running.outputs), {"levels: expected 3 numbers, got 2"});
  expect_parts(refused({0, 0, 0}, running.outputs), {"levels: expected 1 or more, got 0"});
  expect_parts(refused({1, 1, 0}, running.outputs), {"levels: expected 0 for an image, got 1"});
  expect_parts(refused({0, 1, 0}, {running.outputs[0]}), {"output: expected more than 1 outputs"});
  expect_parts(refused({0, 1, 0}, {running.outputs[0], running.outputs[1], running.outputs[2], running.outputs[3],
                                   running.outputs[0]}),
               {"request: expected", "4 outputs", "5"});
  ASSERT_EQ(suture_run(handle, &running.get()), 0) << suture_error();
  suture_free(handle);

  const auto plan_says = [&](auto&& change) {
    filled wrong = planning;
    change(wrong);
    void* none = nullptr;
    EXPECT_EQ(suture_plan(&wrong.get(), &none), 1);
    EXPECT_EQ(none, nullptr);
    return std::string(suture_error());
  };
  expect_parts(plan_says([](filled& f) { f.numbers.pop_back(); }), {"remap: others", "numbers"});
  expect_parts(plan_says([](filled& f) { f.numbers.push_back(0); }), {"plan: request: expected 41 numbers", "got 42"});
  expect_parts(plan_says([](filled& f) { f.lists.clear(); }), {"remap: table: expected more than 0 lists"});
  expect_parts(plan_says([](filled& f) { f.inputs.pop_back(); }), {"input: expected more than 2 inputs"});
  expect_parts(plan_says([](filled& f) { f.results.clear(); }), {"grids: expected more than 0 results"});
  expect_parts(plan_says([](filled& f) { f.results[0].count = 1; }), {"grids: expected room for 2 elements, got 1"});
}

}  // namespace
}  // namespace suture
