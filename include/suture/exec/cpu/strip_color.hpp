// SPDX-License-Identifier: Apache-2.0
// Reads the source for a strip where operations work on color: all three channels of a voxel pass through the
// operations before the geometry together, then each channel is interpolated by itself.
#pragma once

#include "lane_positions.hpp"
#include "strip_sampling.hpp"

namespace suture::detail {

// Source positions of the voxels that the lanes read at one offset of the interpolation.
struct at_taps {
  const std::int32_t (&extents)[3];
  std::int32_t sample_index;
  const std::int32_t (&z)[strip_width];
  const std::int32_t (&y)[strip_width];
  const std::int32_t (&x)[strip_width];
  std::int32_t channel = 0;

  SUTURE_INLINE voxel operator()(int l) const { return voxel_at(extents, {sample_index, channel, z[l], y[l], x[l]}); }
  SUTURE_INLINE at_taps in_channel(std::int32_t c) const { return {extents, sample_index, z, y, x, c}; }
};

// Loads the three channels of pixels without any operation; the first channel of lane l is at(l).
template <class In, class At>
SUTURE_INLINE void load_pixels(std::int64_t channel_stride, const At& at, float (&v)[3][strip_width]) {
  if constexpr (std::is_same_v<In, std::uint8_t>) {  // one word per pixel, of which registers hold several
    std::uint32_t words[strip_width];
    for (int l = 0; l < strip_width; ++l) {
      const std::uint8_t* const p = at(l);
      words[l] =
          std::uint32_t{p[0]} | std::uint32_t{p[channel_stride]} << 8 | std::uint32_t{p[2 * channel_stride]} << 16;
    }
    for (int channel = 0; channel < 3; ++channel)
      for (int l = 0; l < strip_width; ++l)
        v[channel][l] = static_cast<float>(static_cast<std::int32_t>(words[l] >> (8 * channel) & 255u));
  } else {
    In raw[3][strip_width];
    for (int l = 0; l < strip_width; ++l)
      for (int channel = 0; channel < 3; ++channel) raw[channel][l] = at(l)[channel * channel_stride];
    for (int channel = 0; channel < 3; ++channel)
      for (int l = 0; l < strip_width; ++l) v[channel][l] = storage<In>::load(raw[channel][l]);
  }
}
// Loads the three channels of pixels that lie `stride` apart in memory. Adjacent channels or adjacent pixels, in order
// or reversed, have loops of their own, which compilers vectorize.
template <class In>
SUTURE_INLINE void load_pixel_row(const In* p, std::int64_t channel_stride, std::int64_t stride,
                                  float (&v)[3][strip_width]) {
  const bool is_row = stride == 1 || stride == -1, is_reversed = stride < 0;
  if (!is_row && !(channel_stride == 1 && (stride == 3 || stride == -3)))
    return load_pixels<In>(
        channel_stride, [&](int l) { return p + l * stride; }, v);
  In raw[3][strip_width];
  const In* const first = is_reversed ? p + (strip_width - 1) * stride : p;
  if (is_row) {
    for (int channel = 0; channel < 3; ++channel) copy_strip(raw[channel], first + channel * channel_stride);
  } else {
    for (int l = 0; l < strip_width; ++l) {
      raw[0][l] = first[3 * l];
      raw[1][l] = first[3 * l + 1];
      raw[2][l] = first[3 * l + 2];
    }
  }
  for (int channel = 0; channel < 3; ++channel) {
    if (is_reversed)
      for (int l = 0; l < strip_width; ++l) v[channel][l] = storage<In>::load(raw[channel][strip_width - 1 - l]);
    else
      for (int l = 0; l < strip_width; ++l) v[channel][l] = storage<In>::load(raw[channel][l]);
  }
}

// Computes the interpolated pixels of a strip; with Planar, for samples of one plane, along x and y alone.
template <bool Planar, class Pipeline, class In>
void sample_pixels(const strip<Pipeline>& s, const sample_parameters<Pipeline>& sample, const source_tensor& in,
                   std::int32_t sample_index, const typename Pipeline::border_type& border,
                   float (&out)[3][strip_width]) {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  constexpr int planes = Planar ? 1 : I::taps;
  std::int32_t index[3][I::taps][strip_width], inside[3][I::taps][strip_width];
  float w[3][I::taps][strip_width];
  for (int k = 0; k < 3; ++k) {
    const std::int32_t extent = in.extents[k];
    for (int l = 0; l < strip_width; ++l) {
      const std::int32_t first = I::first({s.base[k][l], s.fraction_of[k][l]});
      float weights[I::taps];
      I::weights(s.fraction_of[k][l], weights);
      for (int j = 0; j < I::taps; ++j) {
        const bool is_plane = Planar && k == 0;
        inside[k][j][l] = is_plane || B::index(first + j, extent) >= 0;
        index[k][j][l] = is_plane ? 0 : readable_index<B>(first + j, extent);
        w[k][j][l] = weights[j];
      }
    }
  }
  const In* const data = static_cast<const In*>(in.data);
  float plane[3][I::taps][strip_width];
  for (int a = 0; a < planes; ++a) {
    float row[3][I::taps][strip_width];
    for (int b = 0; b < I::taps; ++b) {
      float v[3][I::taps][strip_width];
      for (int j = 0; j < I::taps; ++j) {
        std::int64_t offset[strip_width];
        for (int l = 0; l < strip_width; ++l)
          offset[l] = index[0][a][l] * in.stride[0] + index[1][b][l] * in.stride[1] + index[2][j][l] * in.stride[2];
        float tap[3][strip_width];
        load_pixels<In>(
            in.channel_stride, [&](int l) { return data + offset[l]; }, tap);
        const at_taps place{in.extents, sample_index, index[0][a], index[1][b], index[2][j]};
        apply_pixel_lanes(sample.source_functors, tap, place, [](const float(&)[3][strip_width]) {});
        for (int channel = 0; channel < 3; ++channel)
          for (int l = 0; l < strip_width; ++l) {
            if constexpr (B::has_value)
              v[channel][j][l] =
                  (inside[0][a][l] & inside[1][b][l] & inside[2][j][l]) != 0 ? tap[channel][l] : border.value;
            else
              v[channel][j][l] = tap[channel][l];
          }
      }
      for (int channel = 0; channel < 3; ++channel) combine_axis<I>(v[channel], w[2], row[channel][b]);
    }
    for (int channel = 0; channel < 3; ++channel)
      combine_axis<I>(row[channel], w[1], Planar ? out[channel] : plane[channel][a]);
  }
  if constexpr (!Planar)
    for (int channel = 0; channel < 3; ++channel) combine_axis<I>(plane[channel], w[0], out[channel]);
}

// Computes the pixels of the strip at `at` before the operations after the geometry.
template <class Pipeline, class In, class Strip>
void pixels_of_strip(Strip& s, const sample_parameters<Pipeline>& sample, const source_tensor& in,
                     const typename Pipeline::border_type& border, const voxel_index& at, float (&v)[3][strip_width]) {
  if constexpr (!Pipeline::has_geometry) {
    const In* const first = element_at<const In>(in, at);
    const std::int32_t last = in.extents[2] - 1 - at.x;
    if (last + 1 >= strip_width)
      load_pixel_row(first, in.channel_stride, in.stride[2], v);
    else
      load_pixels<In>(
          in.channel_stride, [&](int l) { return first + std::min(l, last) * in.stride[2]; }, v);
  } else if constexpr (Pipeline::prefiltered) {
    for (std::int32_t channel = 0; channel < 3; ++channel)
      sample_strip<Pipeline, In, std::int64_t>(s, in, channel, source_functors_of(sample), border, v[channel]);
  } else if (sample.planar) {
    sample_pixels<true, Pipeline, In>(s, sample, in, at.sample, border, v);
  } else {
    sample_pixels<false, Pipeline, In>(s, sample, in, at.sample, border, v);
  }
}

}  // namespace suture::detail
