// SPDX-License-Identifier: Apache-2.0
// Short ways to run the library in tests: dense arrays in, dense arrays out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "../ref/volume.hpp"
#include "suture/suture.hpp"

namespace support {

inline suture::extent3 extents(const reference::size3& s) { return {s[0], s[1], s[2]}; }
inline suture::point3 point(const reference::point& p) { return {p[0], p[1], p[2]}; }
inline suture::matrix3 matrix(const reference::matrix& m) {
  suture::matrix3 r;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[i][j] = m[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  return r;
}
inline reference::point point(const suture::point3& p) { return {p[0], p[1], p[2]}; }

inline suture::grid voxel_grid(const reference::size3& size) { return {.extents = extents(size)}; }

// A batch of one image through a chain of operations on the CPU.
template <class Out, class In, class Operations>
std::vector<Out> image_result(const Operations& operations, const std::vector<In>& x, const suture::grid& g,
                              const suture::settings& settings = {}, std::int64_t channels = 1) {
  const std::vector<suture::grid> batch{g};
  const auto plan = suture::plan(operations, batch, settings);
  const suture::grid out_grid = plan.output_grid(0);
  std::vector<Out> y(static_cast<std::size_t>(out_grid.voxels() * channels));
  const auto in = suture::contiguous(x.data(), g, channels);
  const auto out = suture::contiguous(y.data(), out_grid, channels);
  suture::run(suture::cpu{}, plan, suture::image(in, out));
  return y;
}

// A batch of one label map.
template <class Label, class Operations>
std::vector<Label> label_result(const Operations& operations, const std::vector<Label>& x, const suture::grid& g,
                                const suture::settings& settings = {}) {
  const std::vector<suture::grid> batch{g};
  const auto plan = suture::plan(operations, batch, settings);
  std::vector<Label> y(static_cast<std::size_t>(plan.output_grid(0).voxels()));
  const auto in = suture::contiguous(x.data(), g);
  const auto out = suture::contiguous(y.data(), plan.output_grid(0));
  suture::run(suture::cpu{}, plan, suture::labels(in, out));
  return y;
}

// One type for every geometry, so that a test compiles one pipeline per interpolation and border rather than one per
// operation as well: a fixed map, or resampling to a target through physical space.
struct any_geometry {
  static constexpr std::string_view name = "any_geometry";
  static constexpr bool keeps_axes = false;

  bool fixed = true;
  suture::geometry_step map{};
  suture::grid target{};

  suture::geometry_step step(const suture::grid& input, const suture::site& where) const {
    return fixed ? map : suture::resample_to{target}.step(input, where);
  }
};

// What an operation of the library does to one grid.
template <class Operation>
any_geometry geometry_of(const Operation& operation, const suture::grid& input) {
  return {true, operation.step(input, {Operation::name}), {}};
}

inline any_geometry geometry_to(const suture::grid& target) { return {false, {}, target}; }

// A map of voxel indices to `size` voxels.
inline any_geometry geometry_of(const reference::affine& pull, const reference::size3& size) {
  return {true, {voxel_grid(size), {matrix(pull.linear), point(pull.offset)}}, {}};
}

}  // namespace support
