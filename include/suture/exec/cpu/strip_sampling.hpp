// SPDX-License-Identifier: Apache-2.0
// Reads the source for a strip: interpolated values of one channel, and labels.
#pragma once

#include <cstring>

#include "../../evaluate/evaluator.hpp"
#include "strip.hpp"

namespace suture::detail {

// The positions of lanes for functors that do not use them.
struct nowhere {
  SUTURE_INLINE voxel operator()(int) const { return {}; }
  SUTURE_INLINE nowhere in_channel(std::int32_t) const { return {}; }
};

// Returns the operations to apply to voxels before interpolation. For B-spline coefficients it is an empty pack: they
// were computed after these operations.
template <class Pipeline>
SUTURE_INLINE const auto& source_functors_of(const sample_parameters<Pipeline>& sample) {
  if constexpr (Pipeline::prefiltered) {
    static constexpr pack<> none{};
    return none;
  } else {
    return sample.source_functors;
  }
}

// Interpolates along one axis between the neighbors v with their weights w, lane by lane.
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

// Interpolates along x, then y, then z. row(a, b, v) fills v with the neighbors along x in row b of plane a.
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

// Unsigned integers of the size of two neighboring elements, which one load reads, and of one element.
template <class T>
using pair_of =
    std::conditional_t<sizeof(T) == 1, std::uint16_t, std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>>;
template <class T>
using bits_of =
    std::conditional_t<sizeof(T) == 1, std::uint8_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>>;
template <class T>
SUTURE_INLINE T first_of(pair_of<T> pair) {
  return __builtin_bit_cast(T, static_cast<bits_of<T>>(pair));
}
template <class T>
SUTURE_INLINE T second_of(pair_of<T> pair) {
  return __builtin_bit_cast(T, static_cast<bits_of<T>>(pair >> (8 * sizeof(T))));
}
// The elements of a pair, converted to float.
template <class T>
SUTURE_INLINE float first_value_of(pair_of<T> pair) {
  if constexpr (std::is_same_v<T, std::int16_t>)  // in 32 bits, where vectors stay as wide as those of float
    return static_cast<float>(static_cast<std::int32_t>(pair << 16) >> 16);
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return static_cast<float>(static_cast<std::int32_t>(pair & 0xffffu));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return float_from_bits(pair << 16);
  else
    return storage<T>::load(first_of<T>(pair));
}
template <class T>
SUTURE_INLINE float second_value_of(pair_of<T> pair) {
  if constexpr (std::is_same_v<T, std::int16_t>)
    return static_cast<float>(static_cast<std::int32_t>(pair) >> 16);
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return static_cast<float>(static_cast<std::int32_t>(pair >> 16));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return float_from_bits(pair & 0xffff0000u);
  else
    return storage<T>::load(second_of<T>(pair));
}
template <class T>
SUTURE_INLINE pair_of<T> make_pair_of(T first, T second) {
  return static_cast<pair_of<T>>(
      pair_of<T>{__builtin_bit_cast(bits_of<T>, first)} |
      static_cast<pair_of<T>>(pair_of<T>{__builtin_bit_cast(bits_of<T>, second)} << (8 * sizeof(T))));
}

// Loads elements U at p[row] + offset for the `Count` lanes from `begin` on. Offsets are in elements T.
template <class U, int Count = strip_width, std::size_t Rows, class T, class Offset, class To>
SUTURE_INLINE void gather_rows(const T* const (&p)[Rows], const Offset (&offsets)[strip_width],
                               To (&out)[Rows][strip_width], int begin = 0) {
#if defined(SUTURE_HAS_SIMD)
  simd::gather<U, Count>(p, offsets, out, begin);
#else
  for (int l = begin; l < begin + Count; ++l)
    for (std::size_t row = 0; row < Rows; ++row) std::memcpy(&out[row][l], p[row] + offsets[l], sizeof(U));
#endif
}

// Converts p and q, pairs along y or z that are neighbors along x, to pairs along x: that of their first elements, and
// that of their second ones.
template <class T>
SUTURE_INLINE void cross_pairs(pair_of<T> p, pair_of<T> q, pair_of<T>& first, pair_of<T>& second) {
  constexpr int bits = 8 * sizeof(T);
  using pair = pair_of<T>;
  constexpr auto low = static_cast<pair>(static_cast<bits_of<T>>(-1));
  first = static_cast<pair>((p & low) | static_cast<pair>(q << bits));
  second = static_cast<pair>(static_cast<pair>(p >> bits) | (q & static_cast<pair>(~low)));
}

// Loads the 2 x 2 (two rows) or 2 x 2 x 2 neighbors (four rows) of each lane as pairs along x; the first is at data +
// offset. Rows are (z, y), (z, y + 1), (z + 1, y) and (z + 1, y + 1). One load reads two neighbors along the axis of
// stride 1, whichever it is.
template <class T, class Offset, std::size_t Rows>
SUTURE_INLINE void load_pairs(const T* data, const Offset (&offset)[strip_width], const std::int64_t (&stride)[3],
                              pair_of<T> (&pairs)[Rows][strip_width]) {
  const T* rows[Rows];
  for (std::size_t row = 0; row < Rows; ++row)
    rows[row] = data + ((row & 1) != 0 ? stride[1] : 0) + (row > 1 ? stride[0] : 0);
  if (stride[2] == 1) return gather_rows<pair_of<T>>(rows, offset, pairs);
  if (stride[1] == 1 || (Rows == 4 && stride[0] == 1)) {
    // Bit 0 of `row` is a step along x, bit 1 a step along the axis that is neither x nor that of stride 1.
    const bool along_y = stride[1] == 1;
    for (std::size_t row = 0; row < Rows; ++row)
      rows[row] = data + ((row & 1) != 0 ? stride[2] : 0) + (row > 1 ? stride[along_y ? 0 : 1] : 0);
    gather_rows<pair_of<T>>(rows, offset, pairs);
    if (along_y) {
      for (std::size_t a = 0; a < Rows; a += 2)
        for (int l = 0; l < strip_width; ++l)
          cross_pairs<T>(pairs[a][l], pairs[a + 1][l], pairs[a][l], pairs[a + 1][l]);
    } else if constexpr (Rows == 4) {
      for (int l = 0; l < strip_width; ++l) {
        pair_of<T> c[4];
        for (int b = 0; b < 2; ++b) cross_pairs<T>(pairs[2 * b][l], pairs[2 * b + 1][l], c[b], c[2 + b]);
        for (int row = 0; row < 4; ++row) pairs[row][l] = c[row];
      }
    }
    return;
  }
  for (int l = 0; l < strip_width; ++l)
    for (std::size_t row = 0; row < Rows; ++row)
      pairs[row][l] = make_pair_of(rows[row][offset[l]], rows[row][offset[l] + stride[2]]);
}

// Prefetches the voxels that a later strip reads first.
template <int Step, class Pipeline, class T, class Offset>
SUTURE_INLINE void prefetch_ahead(const strip<Pipeline>& s, const T* data, const Offset (&offsets)[strip_width],
                                  const std::int64_t (&stride)[3]) {
  const T* const p = data + (s.ahead(stride) + s.leading_corner(stride));
#if defined(SUTURE_HAS_SIMD)
  const Offset* const offset = simd::stays_in_memory(offsets);
#else
  const Offset* const offset = offsets;
#endif
  for (int l = 0; l < strip_width; l += Step) __builtin_prefetch(p + offset[l]);
}

// Interpolates the pairs of the `Count` lanes from `begin` on in one loop; with two rows, along x and y alone.
template <class I, class T, int Count, std::size_t Rows, class Pack>
SUTURE_INLINE void blend_pairs(const float (&fraction)[3][strip_width], const Pack& source_functors,
                               const pair_of<T> (&pairs)[Rows][strip_width], float (&out)[strip_width], int begin) {
  const Pack functors = source_functors;
  for (int l = begin; l < begin + Count; ++l) {
    float wy[2], wx[2], planes[Rows / 2];
    I::weights(fraction[1][l], wy);
    I::weights(fraction[2][l], wx);
    SUTURE_UNROLL
    for (int a = 0; a < static_cast<int>(Rows / 2); ++a) {
      float rows[2];
      SUTURE_UNROLL
      for (int b = 0; b < 2; ++b) {
        const pair_of<T> pair = pairs[2 * a + b][l];
        const float v[2] = {apply(functors, first_value_of<T>(pair), voxel{}),
                            apply(functors, second_value_of<T>(pair), voxel{})};
        rows[b] = I::combine(v, wx);
      }
      planes[a] = I::combine(rows, wy);
    }
    if constexpr (Rows == 2) {
      out[l] = planes[0];
    } else {
      float wz[2];
      I::weights(fraction[0][l], wz);
      out[l] = I::combine(planes, wz);
    }
  }
}

// Computes the interpolated values of a strip that reads no voxel outside the source.
template <class Pipeline, class T, class Offset, class Pack>
SUTURE_INLINE void sample_inside(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                                 const Pack& source_functors, float (&out)[strip_width]) {
  using I = typename Pipeline::interpolation_type;
  alignas(lane_alignment) Offset offset[strip_width];
  const Offset step[3] = {static_cast<Offset>(stride[0]), static_cast<Offset>(stride[1]),
                          static_cast<Offset>(stride[2])};
  for (int l = 0; l < strip_width; ++l)
    offset[l] = (I::first({s.base[0][l], s.fraction_of[0][l]}) + Pipeline::padding) * step[0] +
                (I::first({s.base[1][l], s.fraction_of[1][l]}) + Pipeline::padding) * step[1] +
                (I::first({s.base[2][l], s.fraction_of[2][l]}) + Pipeline::padding) * step[2];
  if constexpr (I::taps == 2) {
    alignas(lane_alignment) pair_of<T> pairs[4][strip_width];
    prefetch_ahead<4>(s, data, offset, stride);
    // 16-bit voxels are processed in blocks, so that the processor loads some pairs while it blends others.
    constexpr int count = sizeof(T) == 2 ? lanes_at_once : strip_width;
    if (count == strip_width || stride[2] != 1) {
      load_pairs(data, offset, stride, pairs);
      blend_pairs<I, T, strip_width>(s.fraction_of, source_functors, pairs, out, 0);
      return;
    }
    const T* const rows[4] = {data, data + stride[1], data + stride[0], data + (stride[0] + stride[1])};
    SUTURE_KEEP_LOOP
    for (int begin = 0; begin < strip_width; begin += count) {
      gather_rows<pair_of<T>, count>(rows, offset, pairs, begin);
      blend_pairs<I, T, count>(s.fraction_of, source_functors, pairs, out, begin);
    }
  } else {
    combine_lanes<I>(s.fraction_of, out, [&](int a, int b, float(&v)[I::taps][strip_width]) {
      for (int j = 0; j < I::taps; ++j) {
        T raw[strip_width];
        const T* p = data + (a * stride[0] + b * stride[1] + j * stride[2]);
        for (int l = 0; l < strip_width; ++l) raw[l] = p[offset[l]];
        for (int l = 0; l < strip_width; ++l) v[j][l] = storage<T>::load(raw[l]);
        apply_lanes(source_functors, v[j], nowhere{}, [](const float(&)[strip_width]) {});
      }
    });
  }
}

// Computes the values of a strip of a sample of one plane by linear interpolation along x and y: voxels of the next
// plane have no weight.
template <class Pipeline, class T, class Offset, class Pack>
void sample_plane(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3], const Pack& source_functors,
                  float (&out)[strip_width]) {
  alignas(lane_alignment) Offset offset[strip_width];
  const auto step_y = static_cast<Offset>(stride[1]), step_x = static_cast<Offset>(stride[2]);
  for (int l = 0; l < strip_width; ++l) offset[l] = s.base[1][l] * step_y + s.base[2][l] * step_x;
  alignas(lane_alignment) pair_of<T> pairs[2][strip_width];
  load_pairs(data, offset, stride, pairs);
  blend_pairs<linear, T, strip_width>(s.fraction_of, source_functors, pairs, out, 0);
}

// Computes the interpolated values of a strip that also reads voxels outside the source.
template <class Pipeline, class T, class Offset, class Pack>
void sample_border(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3], const std::int32_t (&n)[3],
                   const Pack& source_functors, const typename Pipeline::border_type& border,
                   float (&out)[strip_width]) {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  Offset offset[3][I::taps][strip_width];
  std::int32_t in[3][I::taps][strip_width];
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < I::taps; ++j) {
      const auto step = static_cast<Offset>(stride[k]);
      const std::int32_t extent = n[k];
      for (int l = 0; l < strip_width; ++l) {
        const std::int32_t tap = I::first({s.base[k][l], s.fraction_of[k][l]}) + Pipeline::padding + j;
        in[k][j][l] = B::index(tap, extent) >= 0;
        offset[k][j][l] = readable_index<B>(tap, extent) * step;
      }
    }
  combine_lanes<I>(s.fraction_of, out, [&](int a, int b, float(&v)[I::taps][strip_width]) {
    for (int j = 0; j < I::taps; ++j) {
      T raw[strip_width];
      for (int l = 0; l < strip_width; ++l) raw[l] = data[offset[0][a][l] + offset[1][b][l] + offset[2][j][l]];
      for (int l = 0; l < strip_width; ++l) v[j][l] = storage<T>::load(raw[l]);
      apply_lanes(source_functors, v[j], nowhere{}, [](const float(&)[strip_width]) {});
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l)
          v[j][l] = (in[0][a][l] & in[1][b][l] & in[2][j][l]) != 0 ? v[j][l] : border.value;
    }
  });
}

// Reads the labels of a strip by a label interpolation L that picks one voxel.
template <class L, class Pipeline, class T, class Offset>
SUTURE_INLINE void read_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  using B = typename Pipeline::border_type;
  const Offset step[3] = {static_cast<Offset>(stride[0]), static_cast<Offset>(stride[1]),
                          static_cast<Offset>(stride[2])};
  const std::int32_t extent[3] = {n[0], n[1], n[2]};
  alignas(lane_alignment) Offset offset[strip_width];
  if (s.within(n, 0, 1)) {
    for (int l = 0; l < strip_width; ++l)
      offset[l] = L::first({s.base[0][l], s.fraction_of[0][l]}) * step[0] +
                  L::first({s.base[1][l], s.fraction_of[1][l]}) * step[1] +
                  L::first({s.base[2][l], s.fraction_of[2][l]}) * step[2];
    prefetch_ahead<8>(s, data, offset, stride);
    gather_rows<bits_of<T>>({data}, offset, reinterpret_cast<T(&)[1][strip_width]>(out));
    return;
  }
  std::int32_t in[strip_width];
  for (int l = 0; l < strip_width; ++l) {
    const std::int32_t z = L::first({s.base[0][l], s.fraction_of[0][l]});
    const std::int32_t y = L::first({s.base[1][l], s.fraction_of[1][l]});
    const std::int32_t x = L::first({s.base[2][l], s.fraction_of[2][l]});
    in[l] = (B::index(z, extent[0]) | B::index(y, extent[1]) | B::index(x, extent[2])) >= 0;
    offset[l] = readable_index<B>(z, extent[0]) * step[0] + readable_index<B>(y, extent[1]) * step[1] +
                readable_index<B>(x, extent[2]) * step[2];
  }
  for (int l = 0; l < strip_width; ++l) out[l] = data[offset[l]];
  if constexpr (B::has_value)
    for (int l = 0; l < strip_width; ++l) out[l] = in[l] != 0 ? out[l] : outside;
}

// Computes vote_label for every lane. Two different labels need only two sums; the few lanes with more of them are
// voted for one by one. Labels are compared in their own type, of which a register holds the most.
template <class T>
void vote_lanes(const pair_of<T> (&pairs)[4][strip_width], const float (&fraction)[3][strip_width],
                T (&out)[strip_width]) {
  using bits = std::make_unsigned_t<T>;
  T label[8][strip_width], low[strip_width], high[strip_width], others[strip_width];
  bits is_high[strip_width];  // bit i: label i is the greatest
  for (int row = 0; row < 4; ++row)
    for (int l = 0; l < strip_width; ++l) {
      label[2 * row][l] = first_of<T>(pairs[row][l]);
      label[2 * row + 1][l] = second_of<T>(pairs[row][l]);
    }
  for (int l = 0; l < strip_width; ++l) {
    T least = label[0][l], greatest = label[0][l];
    SUTURE_UNROLL
    for (int i = 1; i < 8; ++i) {
      least = label[i][l] < least ? label[i][l] : least;
      greatest = label[i][l] > greatest ? label[i][l] : greatest;
    }
    low[l] = least;
    high[l] = greatest;
  }
  for (int l = 0; l < strip_width; ++l) {
    T other = 0;
    bits equal = 0;
    SUTURE_UNROLL
    for (int i = 0; i < 8; ++i) {
      const T greatest = label[i][l] == high[l] ? static_cast<T>(-1) : T{0};
      const T least = label[i][l] == low[l] ? static_cast<T>(-1) : T{0};
      equal = static_cast<bits>(equal | (static_cast<bits>(greatest) & (1u << i)));
      other = static_cast<T>(other | ~(greatest | least));
    }
    is_high[l] = equal;
    others[l] = other;
  }
  std::uint32_t which[strip_width];
  std::int32_t picks_high[strip_width] = {};
  for (int l = 0; l < strip_width; ++l) which[l] = is_high[l];
  constexpr int block = 8;
  for (int first = 0; first < strip_width; first += block) {
    if (std::memcmp(low + first, high + first, sizeof(T[block])) == 0) continue;
    SUTURE_KEEP_LOOP
    for (int l = first; l < first + block; ++l) {
      const float tz = fraction[0][l], ty = fraction[1][l], tx = fraction[2][l];
      const float wz[2] = {1.0f - tz, tz}, wy[2] = {1.0f - ty, ty}, wx[2] = {1.0f - tx, tx};
      float sum_low = 0, sum_high = 0;
      SUTURE_UNROLL
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t weight = float_bits(wz[i >> 2] * wy[i >> 1 & 1]);
        const auto mask = static_cast<std::uint32_t>(static_cast<std::int32_t>(which[l] << (31 - i)) >> 31);
        sum_low = fma(float_from_bits(weight & ~mask), wx[i & 1], sum_low);
        sum_high = fma(float_from_bits(weight & mask), wx[i & 1], sum_high);
      }
      picks_high[l] = -(sum_high > sum_low);
    }
  }
  T any = 0;
  for (int l = 0; l < strip_width; ++l) {
    const auto mask = static_cast<T>(picks_high[l]);
    out[l] = static_cast<T>((high[l] & mask) | (low[l] & ~mask));
    any = static_cast<T>(any | others[l]);
  }
  if (any == 0) return;
  for (int l = 0; l < strip_width; ++l) {
    if (others[l] == 0) continue;
    T labels[8];
    for (int i = 0; i < 8; ++i) labels[i] = label[i][l];
    out[l] = vote_label(labels, {fraction[0][l], fraction[1][l], fraction[2][l]});
  }
}

// Tests whether all neighbors of all lanes have one label, which is then that of every lane.
template <class T>
SUTURE_INLINE bool all_agree(const pair_of<T> (&pairs)[4][strip_width], T (&out)[strip_width]) {
  const T first = first_of<T>(pairs[0][0]);
  const pair_of<T> same = make_pair_of(first, first);
  pair_of<T> difference = 0;
  for (int row = 0; row < 4; ++row)
    for (int l = 0; l < strip_width; ++l) difference = static_cast<pair_of<T>>(difference | (pairs[row][l] ^ same));
  if (difference != 0) return false;
  for (int l = 0; l < strip_width; ++l) out[l] = first;
  return true;
}

// Computes the labels of a strip by vote.
template <class Pipeline, class T, class Offset>
SUTURE_INLINE void vote_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  using B = typename Pipeline::border_type;
  const Offset step[3] = {static_cast<Offset>(stride[0]), static_cast<Offset>(stride[1]),
                          static_cast<Offset>(stride[2])};
  pair_of<T> pairs[4][strip_width];
  if (s.within(n, 0, 1)) {
    Offset offset[strip_width];
    for (int l = 0; l < strip_width; ++l)
      offset[l] = s.base[0][l] * step[0] + s.base[1][l] * step[1] + s.base[2][l] * step[2];
    prefetch_ahead<4>(s, data, offset, stride);
    load_pairs(data, offset, stride, pairs);
  } else if (s.within_plane(n)) {
    // Labels beyond the plane have no weight; repeating these labels has no effect.
    Offset offset[strip_width];
    for (int l = 0; l < strip_width; ++l) offset[l] = s.base[1][l] * step[1] + s.base[2][l] * step[2];
    pair_of<T> rows[2][strip_width];
    load_pairs(data, offset, stride, rows);
    for (int row = 0; row < 4; ++row)
      for (int l = 0; l < strip_width; ++l) pairs[row][l] = rows[row & 1][l];
  } else {
    Offset offset[3][2][strip_width];
    std::int32_t in[3][2][strip_width];
    for (int k = 0; k < 3; ++k)
      for (int j = 0; j < 2; ++j) {
        const std::int32_t extent = n[k];
        for (int l = 0; l < strip_width; ++l) {
          const std::int32_t tap = s.base[k][l] + j;
          in[k][j][l] = B::index(tap, extent) >= 0;
          offset[k][j][l] = readable_index<B>(tap, extent) * step[k];
        }
      }
    for (int row = 0; row < 4; ++row)
      for (int l = 0; l < strip_width; ++l) {
        T t[2];
        for (int j = 0; j < 2; ++j) {
          t[j] = data[offset[0][row >> 1][l] + offset[1][row & 1][l] + offset[2][j][l]];
          if constexpr (B::has_value)
            t[j] = (in[0][row >> 1][l] & in[1][row & 1][l] & in[2][j][l]) != 0 ? t[j] : outside;
        }
        pairs[row][l] = make_pair_of(t[0], t[1]);
      }
  }
  // If all neighbors agree, there is nothing to count.
  if (!all_agree<T>(pairs, out)) vote_lanes<T>(pairs, s.fraction_of, out);
}

// Calls use(lane, coordinate) for each lane.
template <class Pipeline, class Use>
SUTURE_INLINE void each_lane(const strip<Pipeline>& s, const Use& use) {
  for (int l = 0; l < strip_width; ++l) {
    coordinate c[3];
    s.lane(l, c);
    use(l, c);
  }
}

// Computes the labels of a strip lane by lane.
template <class Pipeline, class T>
void choose_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3], const std::int32_t (&n)[3],
                   T outside, T (&out)[strip_width]) {
  std::int32_t pairs[3];
  count_pairs(stride, n, pairs);
  each_lane(s, [&](int l, const coordinate(&c)[3]) {
    out[l] =
        sample_label<typename Pipeline::label_type, typename Pipeline::border_type>(c, data, stride, n, pairs, outside);
  });
}

// Computes the labels of a strip by the label interpolation of the pipeline.
template <class Pipeline, class T, class Offset>
SUTURE_INLINE void pick_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  if constexpr (std::is_same_v<typename Pipeline::label_type, vote>)
    vote_labels<Pipeline, T, Offset>(s, data, stride, n, outside, out);
  else if constexpr (chooses_among_corners<typename Pipeline::label_type>)
    choose_labels<Pipeline>(s, data, stride, n, outside, out);
  else
    read_labels<typename Pipeline::label_type, Pipeline, T, Offset>(s, data, stride, n, outside, out);
}

// Tests whether offsets inside one channel fit 32 bits.
inline bool is_compact(const source_tensor& s) {
  std::int64_t reach = 0;
  for (int k = 0; k < 3; ++k) reach += (s.extents[k] - 1) * (s.stride[k] < 0 ? -s.stride[k] : s.stride[k]);
  return reach < 2147483648;
}

// Computes the interpolated values of a strip. `functors` are applied to the voxels before interpolation.
template <class Pipeline, class In, class Offset, class Functors>
void sample_strip(strip<Pipeline>& s, const source_tensor& in, std::int32_t channel, const Functors& functors,
                  const typename Pipeline::border_type& border, float (&v)[strip_width]) {
  using I = typename Pipeline::interpolation_type;
  // B-spline coefficients are floats.
  using T = std::conditional_t<Pipeline::prefiltered, float, In>;
  const T* data = static_cast<const T*>(in.data) + channel * in.channel_stride;
  constexpr std::int32_t before = I::taps > 2 ? -1 : 0, after = I::taps > 2 ? 2 : 1;
  if (s.within(in.extents, Pipeline::padding + before, Pipeline::padding + after))
    sample_inside<Pipeline, T, Offset>(s, data, in.stride, functors, v);
  else if (std::is_same_v<I, linear> && s.within_plane(in.extents))
    sample_plane<Pipeline, T, Offset>(s, data, in.stride, functors, v);
  else
    sample_border<Pipeline, T, Offset>(s, data, in.stride, in.extents, functors, border, v);
}

}  // namespace suture::detail
