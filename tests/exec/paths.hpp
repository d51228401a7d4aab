// SPDX-License-Identifier: Apache-2.0
// Every path of an executor by itself beside the plain loop, on pipelines of which each path serves some samples: the
// same bits of images and labels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "digest/samples.hpp"

namespace paths_test {

using namespace suture;

// The tiles with channel after channel, and the bytes of two channels, which are no pixels.
struct planar_cases : digest_test::color_cases {
  static view<const element> source(const element* data, const grid& g) { return contiguous(data, g, channels); }
};
struct two_channel_cases : digest_test::color_cases {
  static constexpr std::int64_t channels = 2;
  static view<const element> source(const element* data, const grid& g) { return channels_last(data, g, channels); }
};

// Runs all samples of `data` by the paths of a list: Executor::run_by<Paths>(plan, bindings...).
template <class Executor, class Paths, class Out, class Cases, class Pipeline>
std::vector<unsigned char> bytes_by(const Cases& data, const Pipeline& pipeline) {
  using In = typename Cases::element;
  const auto p = plan(pipeline, data.grids, {.seed = 7, .epoch = 2, .sample_ids = data.ids});
  std::vector<typename Executor::template buffer<In>> images;
  std::vector<typename Executor::template buffer<std::uint8_t>> maps, maps_out;
  std::vector<typename Executor::template buffer<Out>> images_out;
  std::vector<view<const In>> image_views;
  std::vector<view<const std::uint8_t>> map_views;
  std::vector<view<Out>> image_targets;
  std::vector<view<std::uint8_t>> map_targets;
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    const grid& to = p.output_grid(i);
    const auto n = static_cast<std::size_t>(to.voxels());
    images.emplace_back(data.images[i]);
    maps.emplace_back(data.labels[i]);
    images_out.emplace_back(std::vector<Out>(n * static_cast<std::size_t>(Cases::channels), Out{}));
    maps_out.emplace_back(std::vector<std::uint8_t>(n, 0xab));
    image_views.push_back(Cases::source(images.back().data(), data.grids[i]));
    map_views.push_back(contiguous<const std::uint8_t>(maps.back().data(), data.grids[i]));
    image_targets.push_back(contiguous(images_out.back().data(), to, Cases::channels));
    map_targets.push_back(contiguous(maps_out.back().data(), to));
  }
  Executor::template run_by<Paths>(p, image(image_views, image_targets), labels(map_views, map_targets));
  std::vector<unsigned char> bytes;
  const auto add = [&](const auto& buffer) {
    const auto values = buffer.values();
    const auto* first = reinterpret_cast<const unsigned char*>(values.data());
    bytes.insert(bytes.end(), first, first + values.size() * sizeof(values[0]));
  };
  for (const auto& each : images_out) add(each);
  for (const auto& each : maps_out) add(each);
  return bytes;
}

// Each path of Paths that is compiled for this pipeline beside Plain alone. `compared` has the names of those.
template <class Executor, class Plain, class Out, class Cases, class Pipeline, class... Paths>
void expect_the_same_bits(const char* name, const Cases& data, const Pipeline& pipeline, detail::path_list<Paths...>,
                          std::set<std::string_view>& compared) {
  SCOPED_TRACE(name);
  using planned_chain = decltype(plan(pipeline, data.grids));
  using images = decltype(image(std::declval<std::vector<view<const typename Cases::element>>&>(),
                                std::declval<std::vector<view<Out>>&>()));
  using maps = decltype(labels(std::declval<std::vector<view<const std::uint8_t>>&>(),
                               std::declval<std::vector<view<std::uint8_t>>&>()));
  using evaluator_type = evaluator<typename planned_chain::pipeline_type, images, maps>;
  const auto plain = bytes_by<Executor, detail::path_list<Plain>, Out>(data, pipeline);
  const auto one = [&]<class Path>() {
    if constexpr (Path::template possible<evaluator_type> && !std::is_same_v<Path, Plain>) {
      EXPECT_TRUE((bytes_by<Executor, detail::path_list<Path, Plain>, Out>(data, pipeline)) == plain) << Path::name;
      compared.insert(Path::name);
    }
  };
  (one.template operator()<Paths>(), ...);
}

// How many of the paths are others than the plain one.
template <class Plain, class... Paths>
constexpr std::size_t others(detail::path_list<Paths...>) {
  return (std::size_t{0} + ... + (std::is_same_v<Paths, Plain> ? 0u : 1u));
}

template <class Executor, class Plain, class Paths>
void expect_the_same_bits_of_all() {
  const digest_test::cases ct;
  const digest_test::color_cases tiles;
  std::set<std::string_view> compared;
  const auto check = [&]<class Out>(const char* name, const auto& data, const auto& pipeline, Out) {
    expect_the_same_bits<Executor, Plain, Out>(name, data, pipeline, Paths{}, compared);
  };
  check("window", ct, window{.center = 40, .width = 400} | cast<half>{}, half{});
  check("noise where nothing is moved", ct, brightness{1.5f} | gaussian_noise{.sigma = 3}, 0.0f);
  check("crop and flip", ct, random_crop{.size = {16, 21, 35}} | random_flip{} | window{.center = 40, .width = 400},
        0.0f);
  check("crop, flip and noise", ct,
        random_flip{} | crop{.start = {1, 2, 3}, .size = {15, 20, 33}} | gaussian_noise{.sigma = 2, .probability = .5f},
        0.0f);
  check("crop beyond the rim", ct,
        pad_to{.size = {40, 56, 60}} | random_crop{.size = {33, 50, 55}} |
            sampling<linear, constant, nearest>{.border = {.value = -1000}},
        0.0f);
  check("values ahead of a crop beyond the rim", ct,
        window{.center = 40, .width = 400} | pad_to{.size = {40, 56, 60}} | random_crop{.size = {33, 50, 55}} |
            random_flip{} | sampling<linear, constant, majority>{.border = {.value = -3}, .label_outside = 9},
        0.0f);
  check("values ahead of nearest voxels", ct,
        window{.center = 40, .width = 400} | pad_to{.size = {40, 56, 60}} | random_flip{} |
            sampling<nearest, mirror, vote>{},
        0.0f);
  check("resample", ct, resample{.spacing_mm = {1.5, 1, 1}} | sampling<linear, edge, vote>{}, 0.0f);
  check("cubic resample", ct, resample{.spacing_mm = {2, 1, .7}} | sampling<catmull_rom, mirror>{}, 0.0f);
  check("turned", ct,
        random_affine{.rotate_deg = 20, .scale = {.8f, 1.3f}} | random_crop{.size = {17, 31, 33}} | cast<half>{},
        half{});
  check("turned or not", ct, random_affine{.rotate_deg = 20, .probability = .5f} | random_flip{}, 0.0f);
  check("elastic, turned", ct,
        random_affine{.rotate_deg = 10} |
            random_elastic{.control_spacing_mm = 12, .max_displacement_mm = 2, .probability = .7f},
        0.0f);
  const auto outside = [](auto interpolation, auto labels, image_rim rim) {
    return sampling<decltype(interpolation), default_value, decltype(labels)>{.border = {.value = -1000, .rim = rim},
                                                                              .label_outside = 7};
  };
  check("crop beyond a rim that is not blended", ct,
        pad_to{.size = {40, 56, 60}} | random_crop{.size = {33, 50, 55}} |
            outside(linear{}, nearest{}, image_rim::centers),
        0.0f);
  check("resample to a rim that is not blended", ct,
        resample{.spacing_mm = {1.5, .7, 1}} | pad_to{.size = {40, 56, 60}} |
            outside(catmull_rom{}, vote{}, image_rim::faces),
        0.0f);
  check("turned and elastic to a rim that is not blended", ct,
        random_affine{.rotate_deg = 30} |
            random_elastic{.control_spacing_mm = 12, .max_displacement_mm = 2, .probability = .7f} |
            outside(linear{}, majority{}, image_rim::faces),
        0.0f);
  check("patch statistics", ct, random_flip{} | patch_z_score{}, 0.0f);
  const planar_cases planar;
  const two_channel_cases two_channels;
  const auto copied = random_rot90{.probability = .7f} | random_flip{} | pad_to{.size = {3, 70, 75}} |
                      random_crop{.size = {2, 66, 70}} | sampling<linear, constant, vote>{.border = {.value = 240}};
  check("copied tiles", tiles, copied | cast<std::uint8_t>{}, std::uint8_t{});
  check("copied planar tiles", planar, copied, 0.0f);
  check("copied bytes of two channels", two_channels, copied, 0.0f);
  check("copied tiles with colors on both sides", tiles,
        random_gamma{.value_range = {0, 255}} | random_color_jitter{.probability = .7f} | gaussian_noise{.sigma = 3} |
            random_flip{} | crop_or_pad{{1, 41, 50}} | sampling<catmull_rom, reflect>{} | random_stain_jitter{} |
            gaussian_noise{.sigma = 3},
        0.0f);
  check("copied planar tiles with colors on both sides", planar,
        random_stain_jitter{} | random_rot90{} | crop_or_pad{{1, 41, 50}} |
            outside(nearest{}, majority{}, image_rim::centers) | random_hsv_jitter{.probability = .7f} | cast<half>{},
        half{});
  check("tiles where nothing is moved", tiles, random_hed_jitter{}, 0.0f);
  check("turned tiles", tiles,
        random_rot90{} | affine_matrix{.linear = {{{1, 0, 0}, {0, .9, .2}, {0, -.2, .9}}}} | random_hed_jitter{} |
            cast<half>{},
        half{});
  check("turned tiles to a rim that is not blended", tiles,
        affine_matrix{.linear = {{{1, 0, 0}, {0, .9, .2}, {0, -.2, .9}}}} |
            outside(linear{}, nearest{}, image_rim::faces) | cast<half>{},
        half{});
  EXPECT_EQ(compared.size(), others<Plain>(Paths{}));
}

}  // namespace paths_test
