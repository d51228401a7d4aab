// SPDX-License-Identifier: Apache-2.0
// What a strip reads from its source: interpolated values of one channel, and labels.
#pragma once

#include <cstring>

#include "../core/evaluator.hpp"
#include "strip.hpp"

namespace suture::detail {

// For functors that do not ask where a value stands.
struct nowhere {
  SUTURE_INLINE voxel operator()(int) const { return {}; }
  SUTURE_INLINE nowhere in_channel(std::int32_t) const { return {}; }
};

// One axis of an interpolation: the taps v with their weights w, lane by lane.
template <class I>
SUTURE_INLINE void combine_axis(const float (&v)[I::taps][strip_width], const float (&w)[I::taps][strip_width],
                                float (&out)[strip_width]) {
  for (int l = 0; l < strip_width; ++l) {
    float vl[I::taps], wl[I::taps];
    for (int j = 0; j < I::taps; ++j) {
      vl[j] = v[j][l];
      wl[j] = w[j][l];
    }
    out[l] = I::combine(vl, wl);
  }
}

// Rows of taps to planes to values, along x, then y, then z. row(a, b, v) fills v with the taps of one row.
template <class I, class Row>
SUTURE_INLINE void combine_lanes(const float (&fraction)[3][strip_width], float (&out)[strip_width], const Row& row) {
  float w[3][I::taps][strip_width];
  for (int k = 0; k < 3; ++k)
    for (int l = 0; l < strip_width; ++l) {
      float weights[I::taps];
      I::weights(fraction[k][l], weights);
      for (int j = 0; j < I::taps; ++j) w[k][j][l] = weights[j];
    }
  float planes[I::taps][strip_width];
  for (int a = 0; a < I::taps; ++a) {
    float rows[I::taps][strip_width];
    for (int b = 0; b < I::taps; ++b) {
      float v[I::taps][strip_width];
      row(a, b, v);
      combine_axis<I>(v, w[2], rows[b]);
    }
    combine_axis<I>(rows, w[1], planes[a]);
  }
  combine_axis<I>(planes, w[0], out);
}

// The 2 x 2 x 2 taps of a strip, whose first voxels lie at data + offset, to interpolated values in one loop over the
// lanes; pairs(row, l) gives the two raw neighbours along x.
template <class I, class Pack, class Pairs>
SUTURE_INLINE void blend_pairs(const float (&fraction)[3][strip_width], const Pack& taps, const Pairs& pairs,
                               float (&out)[strip_width]) {
  const Pack functors = taps;
  for (int l = 0; l < strip_width; ++l) {
    float wz[2], wy[2], wx[2], planes[2];
    I::weights(fraction[0][l], wz);
    I::weights(fraction[1][l], wy);
    I::weights(fraction[2][l], wx);
    SUTURE_UNROLL
    for (int a = 0; a < 2; ++a) {
      float rows[2];
      SUTURE_UNROLL
      for (int b = 0; b < 2; ++b) {
        float v[2];
        pairs(2 * a + b, l, v);
        v[0] = apply(functors, v[0], voxel{});
        v[1] = apply(functors, v[1], voxel{});
        rows[b] = I::combine(v, wx);
      }
      planes[a] = I::combine(rows, wy);
    }
    out[l] = I::combine(planes, wz);
  }
}

template <class I, class T, class Offset, class Pack>
SUTURE_INLINE void sample_pairs(const T* data, const Offset (&offset)[strip_width], const std::int64_t (&stride)[3],
                                const float (&fraction)[3][strip_width], const Pack& taps, float (&out)[strip_width]) {
  const std::int64_t shift[4] = {0, stride[1], stride[0], stride[0] + stride[1]};
  T raw[4][2][strip_width];
  const auto blend = [&](const T(&neighbours)[4][2][strip_width]) {
    blend_pairs<I>(
        fraction, taps,
        [&](int row, int l, float(&v)[2]) {
          v[0] = storage<T>::load(neighbours[row][0][l]);
          v[1] = storage<T>::load(neighbours[row][1][l]);
        },
        out);
  };
  // Voxels in a row, as in crops and flips, are copied as such.
  if (stride[2] == 1) {
    std::int32_t ahead = 0, back = 0;
    for (int l = 0; l < strip_width; ++l) {
      ahead |= offset[l] - offset[0] != l ? 1 : 0;
      back |= offset[0] - offset[l] != l ? 1 : 0;
    }
    if (ahead == 0 || back == 0) {
      for (int row = 0; row < 4; ++row) {
        const T* const p = data + shift[row] + offset[ahead == 0 ? 0 : strip_width - 1];
        if (ahead == 0) {
          std::memcpy(raw[row][0], p, sizeof raw[row][0]);
          std::memcpy(raw[row][1], p + 1, sizeof raw[row][1]);
        } else {
          for (int l = 0; l < strip_width; ++l) {
            raw[row][0][strip_width - 1 - l] = p[l];
            raw[row][1][strip_width - 1 - l] = p[l + 1];
          }
        }
      }
      blend(raw);
      return;
    }
  }
  if constexpr (sizeof(T) <= 2) {
    // Neighbours along x in one load.
    if (stride[2] == 1) {
      using pair = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint16_t>;
      using bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
      pair pairs[4][strip_width];
      for (int l = 0; l < strip_width; ++l) {
        const T* p = data + offset[l];
        for (int row = 0; row < 4; ++row) std::memcpy(&pairs[row][l], p + shift[row], sizeof(pair));
      }
      blend_pairs<I>(
          fraction, taps,
          [&](int row, int l, float(&v)[2]) {
            v[0] = storage<T>::load(__builtin_bit_cast(T, static_cast<bits>(pairs[row][l])));
            v[1] = storage<T>::load(__builtin_bit_cast(T, static_cast<bits>(pairs[row][l] >> (8 * sizeof(T)))));
          },
          out);
      return;
    }
  }
  for (int l = 0; l < strip_width; ++l) {
    const T* p = data + offset[l];
    for (int row = 0; row < 4; ++row) {
      raw[row][0][l] = p[shift[row]];
      raw[row][1][l] = p[shift[row] + stride[2]];
    }
  }
  blend(raw);
}

// Interpolated values of a strip whose taps all lie inside the source.
template <class Pipeline, class T, class Offset, class Pack>
SUTURE_INLINE void sample_inside(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                                 const Pack& taps, float (&out)[strip_width]) {
  using I = typename Pipeline::interpolation_type;
  Offset offset[strip_width];
  const Offset step[3] = {static_cast<Offset>(stride[0]), static_cast<Offset>(stride[1]),
                          static_cast<Offset>(stride[2])};
  for (int l = 0; l < strip_width; ++l)
    offset[l] = (I::first({s.base[0][l], s.fraction_of[0][l]}) + Pipeline::padding) * step[0] +
                (I::first({s.base[1][l], s.fraction_of[1][l]}) + Pipeline::padding) * step[1] +
                (I::first({s.base[2][l], s.fraction_of[2][l]}) + Pipeline::padding) * step[2];
  if constexpr (I::taps == 2) {
    sample_pairs<I, T, Offset>(data, offset, stride, s.fraction_of, taps, out);
  } else {
    combine_lanes<I>(s.fraction_of, out, [&](int a, int b, float(&v)[I::taps][strip_width]) {
      for (int j = 0; j < I::taps; ++j) {
        T raw[strip_width];
        const T* p = data + (a * stride[0] + b * stride[1] + j * stride[2]);
        for (int l = 0; l < strip_width; ++l) raw[l] = p[offset[l]];
        for (int l = 0; l < strip_width; ++l) v[j][l] = storage<T>::load(raw[l]);
        apply_lanes(taps, v[j], nowhere{}, [](const float(&)[strip_width]) {});
      }
    });
  }
}

// The same where some taps lie outside.
template <class Pipeline, class T, class Offset, class Pack>
void sample_border(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3], const std::int32_t (&n)[3],
                   const Pack& taps, const typename Pipeline::border_type& border, float (&out)[strip_width]) {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  Offset offset[3][I::taps][strip_width];
  std::int32_t in[3][I::taps][strip_width];
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < I::taps; ++j) {
      const auto step = static_cast<Offset>(stride[k]);
      const std::int32_t extent = n[k];
      for (int l = 0; l < strip_width; ++l) {
        const std::int32_t index =
            B::index(I::first({s.base[k][l], s.fraction_of[k][l]}) + Pipeline::padding + j, extent);
        in[k][j][l] = index >= 0;
        offset[k][j][l] = std::max(index, 0) * step;
      }
    }
  combine_lanes<I>(s.fraction_of, out, [&](int a, int b, float(&v)[I::taps][strip_width]) {
    for (int j = 0; j < I::taps; ++j) {
      T raw[strip_width];
      for (int l = 0; l < strip_width; ++l) raw[l] = data[offset[0][a][l] + offset[1][b][l] + offset[2][j][l]];
      for (int l = 0; l < strip_width; ++l) v[j][l] = storage<T>::load(raw[l]);
      apply_lanes(taps, v[j], nowhere{}, [](const float(&)[strip_width]) {});
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l)
          v[j][l] = (in[0][a][l] & in[1][b][l] & in[2][j][l]) != 0 ? v[j][l] : border.value;
    }
  });
}

// The labels of a strip by a one-tap interpolation L.
template <class L, class Pipeline, class T, class Offset>
SUTURE_INLINE void take_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  using B = typename Pipeline::border_type;
  const Offset step[3] = {static_cast<Offset>(stride[0]), static_cast<Offset>(stride[1]),
                          static_cast<Offset>(stride[2])};
  const std::int32_t extent[3] = {n[0], n[1], n[2]};
  Offset offset[strip_width];
  if (s.within(n, 0, 1)) {
    for (int l = 0; l < strip_width; ++l)
      offset[l] = L::first({s.base[0][l], s.fraction_of[0][l]}) * step[0] +
                  L::first({s.base[1][l], s.fraction_of[1][l]}) * step[1] +
                  L::first({s.base[2][l], s.fraction_of[2][l]}) * step[2];
    for (int l = 0; l < strip_width; ++l) out[l] = data[offset[l]];
    return;
  }
  std::int32_t in[strip_width];
  for (int l = 0; l < strip_width; ++l) {
    const std::int32_t z = B::index(L::first({s.base[0][l], s.fraction_of[0][l]}), extent[0]);
    const std::int32_t y = B::index(L::first({s.base[1][l], s.fraction_of[1][l]}), extent[1]);
    const std::int32_t x = B::index(L::first({s.base[2][l], s.fraction_of[2][l]}), extent[2]);
    in[l] = (z | y | x) >= 0;
    offset[l] = std::max(z, 0) * step[0] + std::max(y, 0) * step[1] + std::max(x, 0) * step[2];
  }
  for (int l = 0; l < strip_width; ++l) out[l] = data[offset[l]];
  if constexpr (B::has_value)
    for (int l = 0; l < strip_width; ++l) out[l] = in[l] != 0 ? out[l] : outside;
}

// The labels of a strip by vote. Where every voxel of the strip lies on one of the source, the others have no weight;
// where its eight neighbours agree, there is nothing to count.
template <class Pipeline, class T, class Offset>
SUTURE_INLINE void vote_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  using B = typename Pipeline::border_type;
  float most = 0;
  for (int k = 0; k < 3; ++k)
    for (int l = 0; l < strip_width; ++l) most = std::max(most, s.fraction_of[k][l]);
  if (most == 0) {
    take_labels<nearest, Pipeline, T, Offset>(s, data, stride, n, outside, out);
    return;
  }
  T tap[8][strip_width];
  const Offset step[3] = {static_cast<Offset>(stride[0]), static_cast<Offset>(stride[1]),
                          static_cast<Offset>(stride[2])};
  if (s.within(n, 0, 1)) {
    Offset offset[strip_width];
    for (int l = 0; l < strip_width; ++l)
      offset[l] = s.base[0][l] * step[0] + s.base[1][l] * step[1] + s.base[2][l] * step[2];
    for (int i = 0; i < 8; ++i) {
      const T* const p = data + ((i >> 2) * stride[0] + (i >> 1 & 1) * stride[1] + (i & 1) * stride[2]);
      for (int l = 0; l < strip_width; ++l) tap[i][l] = p[offset[l]];
    }
  } else {
    for (int i = 0; i < 8; ++i)
      for (int l = 0; l < strip_width; ++l) {
        const std::int32_t z = B::index(s.base[0][l] + (i >> 2), n[0]);
        const std::int32_t y = B::index(s.base[1][l] + (i >> 1 & 1), n[1]);
        const std::int32_t x = B::index(s.base[2][l] + (i & 1), n[2]);
        const Offset at = std::max(z, 0) * step[0] + std::max(y, 0) * step[1] + std::max(x, 0) * step[2];
        tap[i][l] = data[at];
        if constexpr (B::has_value) tap[i][l] = (z | y | x) < 0 ? outside : tap[i][l];
      }
  }
  std::int32_t differs[strip_width] = {};
  for (int i = 1; i < 8; ++i)
    for (int l = 0; l < strip_width; ++l) differs[l] |= tap[i][l] != tap[0][l] ? 1 : 0;
  for (int l = 0; l < strip_width; ++l) out[l] = tap[0][l];
  for (int l = 0; l < strip_width; ++l) {
    if (differs[l] == 0) continue;
    T labels[8];
    for (int i = 0; i < 8; ++i) labels[i] = tap[i][l];
    out[l] = vote_label(labels, {s.fraction_of[0][l], s.fraction_of[1][l], s.fraction_of[2][l]});
  }
}

// The same by the label interpolation of the pipeline.
template <class Pipeline, class T, class Offset>
SUTURE_INLINE void pick_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  if constexpr (std::is_same_v<typename Pipeline::label_type, vote>)
    vote_labels<Pipeline, T, Offset>(s, data, stride, n, outside, out);
  else
    take_labels<typename Pipeline::label_type, Pipeline, T, Offset>(s, data, stride, n, outside, out);
}

// Offsets inside one channel fit 32 bits.
inline bool is_compact(const source_tensor& s) {
  std::int64_t reach = 0;
  for (int k = 0; k < 3; ++k) reach += (s.extents[k] - 1) * (s.stride[k] < 0 ? -s.stride[k] : s.stride[k]);
  return reach < 2147483648;
}

// Interpolated values of a strip.
template <class Pipeline, class In, class Offset>
void sample_strip(const strip<Pipeline>& s, const source_tensor& in, std::int32_t channel,
                  const typename Pipeline::taps& taps, const typename Pipeline::border_type& border,
                  float (&v)[strip_width]) {
  using I = typename Pipeline::interpolation_type;
  // Coefficients are floats that have passed the value operations.
  using T = std::conditional_t<Pipeline::prefiltered, float, In>;
  const auto& functors = [&]() -> const auto& {
    if constexpr (Pipeline::prefiltered) {
      static constexpr pack<> none{};
      return none;
    } else {
      return taps;
    }
  }
  ();
  const T* data = static_cast<const T*>(in.data) + channel * in.channel_stride;
  constexpr std::int32_t before = I::taps > 2 ? -1 : 0, after = I::taps > 2 ? 2 : 1;
  if (s.within(in.extents, Pipeline::padding + before, Pipeline::padding + after))
    sample_inside<Pipeline, T, Offset>(s, data, in.stride, functors, v);
  else
    sample_border<Pipeline, T, Offset>(s, data, in.stride, in.extents, functors, border, v);
}

}  // namespace suture::detail
