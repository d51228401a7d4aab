// SPDX-License-Identifier: Apache-2.0
// Prints operations.json: every operation with its parameters, their kinds and defaults, as their headers state them
// (see base/describe.hpp). A new operation is added to the list in main.
#include <charconv>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "suture/base/describe.hpp"
#include "suture/patch/crop_by_class.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

// A template parameter and the values that it may have; none are listed for a number or an operation.
struct template_parameter {
  std::string_view name;
  std::vector<std::string_view> values;
};
using template_parameters = std::vector<template_parameter>;

std::map<std::string_view, std::vector<std::string_view>> enumerations;

template <class E>
void add_enumeration() {
  constexpr auto names = enumerators<E>();
  enumerations[type_name<E>()] = {names.begin(), names.end()};
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

template <class List>
std::string listed(const List& list) {
  std::string text;
  for (const auto& each : list) text += (text.empty() ? "" : ", ") + quoted(each);
  return '[' + text + ']';
}

// A default as JSON, by the structure of its type: intervals and statistics are lists of their members.
template <class T>
std::string value_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (value - value != 0) return value != value ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    char digits[40];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  } else if constexpr (std::is_enum_v<T>) {
    return quoted(enumerators<T>()[static_cast<std::size_t>(value)]);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return quoted(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? value_of(*value) : "null";
  } else if constexpr (detail::is_variant<T>::value) {
    return std::visit([](const auto& chosen) { return quoted(chosen.name); }, value);
  } else if constexpr (detail::names_its_fields<T>) {
    std::string text;
    detail::for_each_field<T>(
        [&](std::string_view, auto member) { text += (text.empty() ? "" : ", ") + value_of(value.*member); });
    return '[' + text + ']';
  } else if constexpr (detail::wraps_array<T>) {
    return value_of(detail::array_of(value));
  } else if constexpr (detail::given_elements<T> || detail::room_for_elements<T>) {
    require(std::size(value) == 0, {"describe"}, "a list has no default but the empty one");
    return "[]";
  } else {
    std::string text;
    for (const auto& each : value) text += (text.empty() ? "" : ", ") + value_of(each);
    return '[' + text + ']';
  }
}

std::string kind_text(const parameter_kind& kind) {
  const std::string name(kind.name);
  if (name == "choices:") return std::string(kind.of) + 's';
  return kind.count > 0 && kind.capacity == 0 ? name + std::to_string(kind.count) : name + std::string(kind.of);
}

template <class T>
void add_enumerations_of() {
  if constexpr (std::is_array_v<T>)
    add_enumerations_of<std::remove_extent_t<T>>();
  else if constexpr (std::is_enum_v<T>)
    add_enumeration<T>();
}

template <class T>
std::string parameters_of() {
  static_assert(check_described<T>());
  const T defaults = with_defaults<T>();
  std::string text;
  for_each_parameter<T>([&]<class Member>(std::string_view name, const Member& member) {
    text += (text.empty() ? "\n      {" : ",\n      {") + ("\"name\": " + quoted(name));
    if constexpr (is_noted<Member, note::left_out>) {
      text += ", \"left_out\": true}";
    } else {
      using type = parameter_type<Member>;
      constexpr parameter_kind kind = kind_of_parameter<Member>();
      add_enumerations_of<type>();
      text += ", \"kind\": " + quoted(kind_text(kind));
      if constexpr (kind.capacity > 0) text += ", \"capacity\": " + std::to_string(kind.capacity);
      if constexpr (kind.capacity > 0 && kind.count > 0) text += ", \"of_capacity\": " + std::to_string(kind.count);
      if constexpr (chosen_by_name<type>) {
        std::vector<std::string_view> names;
        for (const auto& each : choices_of(static_cast<const type*>(nullptr))) names.push_back(each.name);
        text += ", \"choices\": " + listed(names);
      }
      if constexpr (is_noted<Member, note::multiplies>) text += ", \"multiplies\": true";
      if constexpr (is_noted<Member, note::required>)
        text += ", \"required\": true}";
      else
        text += ", \"default\": " + value_of(defaults.*without_note(member)) + '}';
    }
  });
  return text.empty() ? "[]" : '[' + text + "]";
}

std::string operations;

// `T` has the parameters; `Op`, which may be derived from it, the name and the role.
template <class Op, class T = Op>
void add(std::string_view header, const template_parameters& templates, std::string_view as_role = {},
         std::string_view name = Op::name) {
  std::string_view folder = header.substr(header.find('/') + 1);
  folder = folder.substr(0, folder.find('/'));
  operations += (operations.empty() ? "\n    {" : ",\n    {") + ("\"name\": " + quoted(name)) +
                ", \"header\": " + quoted(header) + ", \"role\": " + quoted(as_role.empty() ? folder : as_role) +
                ", \"random\": " + (requires { Op::kind; } ? "true" : "false");
  if constexpr (role_of<Op>() == role::geometry || role_of<Op>() == role::deformation) {
    static_assert(
        requires { Op::gives_size; },
        "suture: a geometry operation says what its output size depends on: see output_size");
    operations += ", \"gives_size\": " + value_of(Op::gives_size);
  }
  std::string text;
  for (const auto& each : templates)
    text +=
        (text.empty() ? "" : ", ") + ("{\"name\": " + quoted(each.name)) + ", \"values\": " + listed(each.values) + '}';
  operations += ", \"template\": [" + text + "],\n     \"parameters\": " + parameters_of<T>() + '}';
}

template <class... Ops>
void list(std::string_view header, const template_parameters& templates = {}) {
  (add<Ops>(header, templates), ...);
}

}  // namespace

int main() {
  const std::vector<std::string_view> spaces{"lab", "ruderman"};
  list<coarse_shuffle, random_coarse_shuffle>("ops/filter/coarse_shuffle.hpp");
  list<gaussian_blur, random_gaussian_blur>("ops/filter/gaussian_blur.hpp");
  list<gibbs_ringing, random_gibbs_ringing>("ops/filter/gibbs_ringing.hpp");
  list<kspace_spike, random_kspace_spike>("ops/filter/kspace_spike.hpp");
  list<random_low_resolution>("ops/filter/low_resolution.hpp");
  list<median_filter, random_median_filter>("ops/filter/median.hpp");
  list<sharpen, random_sharpen>("ops/filter/sharpen.hpp");
  list<affine_matrix, suture::affine, random_affine>("ops/geometry/affine.hpp");
  list<crop, center_crop, random_crop>("ops/geometry/crop.hpp");
  list<crop_at>("ops/geometry/crop_at.hpp");
  list<suture::elastic, random_elastic>("ops/geometry/elastic.hpp");
  list<flip, random_flip>("ops/geometry/flip.hpp");
  list<identity>("ops/geometry/identity.hpp");
  list<orient>("ops/geometry/orient.hpp");
  list<pad, pad_to, crop_or_pad>("ops/geometry/pad.hpp");
  list<permute>("ops/geometry/permute.hpp");
  list<random_scale>("ops/geometry/random_scale.hpp");
  list<resample, resize, resample_to>("ops/geometry/resample.hpp");
  list<rot90, random_rot90>("ops/geometry/rot90.hpp");
  list<one_hot>("ops/label/one_hot.hpp");
  list<suture::regions>("ops/label/regions.hpp");
  list<suture::remap>("ops/label/remap.hpp");
  list<channel_normalize>("ops/stain/channel_normalize.hpp");
  list<color_jitter, random_color_jitter>("ops/stain/color_jitter.hpp");
  list<grayscale, random_grayscale>("ops/stain/grayscale.hpp");
  list<hed_jitter, random_hed_jitter>("ops/stain/hed_jitter.hpp");
  list<hsv_jitter, random_hsv_jitter>("ops/stain/hsv_jitter.hpp");
  list<macenko_normalize>("ops/stain/macenko.hpp");
  list<reinhard<lab>>("ops/stain/reinhard.hpp", {{"Space", spaces}});
  list<stain_jitter, random_stain_jitter>("ops/stain/stain_jitter.hpp");
  list<random_stain_na<lab>>("ops/stain/stain_na.hpp", {{"Space", spaces}});
  list<bias_field, random_bias_field>("ops/value/bias_field.hpp");
  list<brightness, brightness_factor, random_brightness, random_brightness_factor>("ops/value/brightness.hpp");
  list<suture::clamp>("ops/value/clamp.hpp");
  list<coarse_dropout, random_coarse_dropout>("ops/value/coarse_dropout.hpp");
  list<contrast, random_contrast>("ops/value/contrast.hpp");
  list<ct_normalize>("ops/value/ct_normalize.hpp");
  list<suture::gamma, random_gamma>("ops/value/gamma.hpp");
  list<gaussian_noise>("ops/value/gaussian_noise.hpp");
  list<histogram_match<2>>("ops/value/histogram_match.hpp", {{"N", {}}});
  list<histogram_shift, random_histogram_shift>("ops/value/histogram_shift.hpp");
  list<invert>("ops/value/invert.hpp");
  list<limit_to_range>("ops/value/limit_to_range.hpp");
  list<random_patch_contrast>("ops/value/patch_contrast.hpp");
  list<random_patch_gamma>("ops/value/patch_gamma.hpp");
  list<patch_z_score, exclude>("ops/value/patch_z_score.hpp");
  list<percentile_scale, min_max_scale>("ops/value/percentile_scale.hpp");
  list<poisson_noise>("ops/value/poisson_noise.hpp");
  list<rescale>("ops/value/rescale.hpp");
  list<rician_noise>("ops/value/rician_noise.hpp");
  list<scale_intensity>("ops/value/scale_intensity.hpp");
  list<suture::window, sigmoid_window>("ops/value/window.hpp");
  list<z_score>("ops/value/z_score.hpp");
  add<cast<float>>("ops/value/cast.hpp",
                   {{"T", {"int8", "uint8", "int16", "uint16", "int32", "float32", "float16", "bfloat16"}}});
  add<per_channel_operation<random_brightness>, channel_draws>("ops/value/per_channel.hpp", {{"Operation", {}}},
                                                               "value", "per_channel");
  add<sampling<>>(
      "sample/sampling.hpp",
      {{"Interpolation", {"nearest", "nearest_half_even", "linear", "catmull_rom", "torch_cubic", "cubic_bspline"}},
       {"Border", {"constant", "default_value", "edge", "reflect", "mirror", "wrap"}},
       {"Labels", {"nearest", "nearest_half_even", "vote", "majority"}}},
      "sampling");
  add_enumeration<image_rim>();
  add<inverse_affine>("plan/inverse.hpp", {}, "geometry");
  add<crop_by_class>("patch/crop_by_class.hpp", {}, "geometry");

  std::cout << "{\n  \"enumerations\": {";
  const char* between = "\n    ";
  for (const auto& [name, values] : enumerations) {
    std::cout << between << quoted(name) << ": " << listed(values);
    between = ",\n    ";
  }
  std::cout << "},\n  \"operations\": [" << operations << "]\n}\n";
}
