// SPDX-License-Identifier: Apache-2.0
// Reads a source at a continuous index: combines border, taps and interpolation.
#pragma once

#include <concepts>

#include "../base/numeric.hpp"
#include "../base/pixel.hpp"
#include "interpolation.hpp"
#include "sampling.hpp"

namespace suture {

namespace detail {
// A value, or a pixel with the value in every channel.
template <class V>
SUTURE_FN V uniform(float value) {
  if constexpr (std::is_same_v<V, rgb>)
    return {{value, value, value}};
  else
    return value;
}

// Combines taps by their weights; pixels are combined channel by channel.
template <class Interpolation, int N>
SUTURE_FN float combine(const float (&v)[N], const float (&w)[N]) {
  return Interpolation::combine(v, w);
}
template <class Interpolation, int N>
SUTURE_FN rgb combine(const rgb (&v)[N], const float (&w)[N]) {
  rgb result;
  SUTURE_UNROLL
  for (int channel = 0; channel < 3; ++channel) {
    float taps[N];
    SUTURE_UNROLL
    for (int j = 0; j < N; ++j) taps[j] = v[j].c[channel];
    result.c[channel] = Interpolation::combine(taps, w);
  }
  return result;
}

// Interpolates along x, then y, in a plane; tap(b, j) is the voxel b rows and j columns after the first.
template <class V, class Interpolation, class Tap>
SUTURE_FN V combine_plane(const coordinate (&c)[3], const Tap& tap) {
  constexpr int taps = Interpolation::taps;
  float w[2][taps];
  SUTURE_UNROLL
  for (int k = 0; k < 2; ++k) Interpolation::weights(c[k + 1].fraction, w[k]);
  V rows[taps];
  SUTURE_UNROLL
  for (int b = 0; b < taps; ++b) {
    V v[taps];
    SUTURE_UNROLL
    for (int j = 0; j < taps; ++j) v[j] = tap(b, j);
    rows[b] = combine<Interpolation>(v, w[1]);
  }
  return combine<Interpolation>(rows, w[0]);
}

// Interpolates along x, then y, then z; tap(a, b, j) is the voxel at offset (a, b, j) from the first.
template <class V, class Interpolation, class Tap>
SUTURE_FN V combine_taps(const coordinate (&c)[3], const Tap& tap) {
  constexpr int taps = Interpolation::taps;
  float w[3][taps];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) Interpolation::weights(c[k].fraction, w[k]);
  V planes[taps];
  SUTURE_UNROLL
  for (int a = 0; a < taps; ++a) {
    V rows[taps];
    SUTURE_UNROLL
    for (int b = 0; b < taps; ++b) {
      V v[taps];
      SUTURE_UNROLL
      for (int j = 0; j < taps; ++j) v[j] = tap(a, b, j);
      rows[b] = combine<Interpolation>(v, w[2]);
    }
    planes[a] = combine<Interpolation>(rows, w[1]);
  }
  return combine<Interpolation>(planes, w[0]);
}
}  // namespace detail

// Taps of one neighborhood are addressed relative to its first voxel. Only a wrapped neighborhood can reach from
// one end of a volume to the other; the others stay within a few strides, which are checked to fit 32 bits.
template <class Border>
using tap_offset = std::conditional_t<std::is_same_v<Border, wrap>, std::int64_t, std::int32_t>;

namespace detail {
// a * b. For 32-bit numbers this is one instruction on a GPU, which nvcc does not find if b was cut from 64 bits.
SUTURE_FN std::int64_t product(std::int32_t a, std::int32_t b) {
#if defined(__CUDA_ARCH__)
  std::int64_t result;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(result) : "r"(a), "r"(b));
  return result;
#else
  return static_cast<std::int64_t>(a) * b;
#endif
}
SUTURE_FN std::int64_t product(std::int32_t a, std::int64_t b) { return a * b; }

// Returns the same offset behind an optimizer fence. The compiler takes it for a new value in every iteration of a
// loop, and so keeps it in 32 bits instead of widening it before the loop.
SUTURE_FN std::int32_t opaque_offset(std::int32_t offset) {
#if defined(__CUDA_ARCH__)
  asm("" : "+r"(offset));
#endif
  return offset;
}
SUTURE_FN std::int64_t opaque_offset(std::int64_t offset) { return offset; }
}  // namespace detail

// The voxels around a continuous index in a volume of extents n at `data`: `Taps` along each axis, from first on.
template <int Taps, class Border, class T>
struct neighborhood {
  const T* voxel;  // the first tap, in or out of the volume
  tap_offset<Border> offset[3][Taps];
  bool in[3][Taps];  // all true unless the border is a constant

  SUTURE_FN neighborhood(const std::int32_t (&first)[3], const T* data, const std::int64_t (&stride)[3],
                         const std::int32_t (&n)[3])
      : voxel(data) {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const auto step = static_cast<tap_offset<Border>>(stride[k]);
      std::int32_t origin = first[k];
      if constexpr (!Border::has_value) origin = Border::index(first[k], n[k]);
      voxel += detail::product(origin, step);
      SUTURE_UNROLL
      for (int j = 0; j < Taps; ++j) {
        if constexpr (Border::has_value) {
          in[k][j] = inside(first[k] + j, n[k]);
          offset[k][j] = j * step;
        } else {
          in[k][j] = true;
          offset[k][j] = j == 0 ? 0 : (Border::index(first[k] + j, n[k]) - origin) * step;
        }
      }
    }
  }

  SUTURE_FN bool has(int a, int b, int j) const { return in[0][a] && in[1][b] && in[2][j]; }
  SUTURE_FN T at(int a, int b, int j) const { return voxel[offset[0][a] + offset[1][b] + offset[2][j]]; }
};

namespace detail {
// Counts along each axis the positions of which both taps are inside; 0 unless voxels along x are neighbors in memory.
SUTURE_FN void count_pairs(const std::int64_t (&stride)[3], const std::int32_t (&n)[3], std::int32_t (&pairs)[3]) {
  for (int k = 0; k < 3; ++k) pairs[k] = stride[2] == 1 ? n[k] - 1 : 0;
}

// Tests whether both taps from `first` on are inside along every axis, which is nearly always so.
SUTURE_FN bool pairs_inside(const std::int32_t (&first)[3], const std::int32_t (&pairs)[3]) {
  const bool along_z = inside(first[0], pairs[0]), along_y = inside(first[1], pairs[1]),
             along_x = inside(first[2], pairs[2]);
  return along_z & along_y & along_x;  // without a branch between them
}

// Taps inside the volume: at(a, b) is a pair along x. Offsets are in bytes, so that an address is one multiply-add per
// axis.
template <class T, class Offset>
struct inside_pairs {
  const char* first;
  Offset z, y;

  SUTURE_FN inside_pairs(const std::int32_t (&index)[3], const T* data, const std::int64_t (&stride)[3])
      : z(static_cast<Offset>(stride[0]) * size), y(static_cast<Offset>(stride[1]) * size) {
    first = reinterpret_cast<const char*>(data) + product(index[0], z) + product(index[1], y) + product(index[2], size);
  }
  SUTURE_FN const T* at(int a, int b) const { return reinterpret_cast<const T*>(first + (a * z + b * y)); }

private:
  static constexpr auto size = static_cast<std::int32_t>(sizeof(T));
};
}  // namespace detail

// The taps around a continuous index c in a volume of extents n; `pairs` as count_pairs computes them. They have the
// same positions in every channel.
template <class Interpolation, class Border>
class interpolation_taps {
public:
  SUTURE_FN interpolation_taps(const coordinate (&c)[3], const std::int64_t (&stride)[3], const std::int32_t (&n)[3],
                               const std::int32_t (&pairs)[3], const Border& border)
      : c_(c), stride_(stride), n_(n), border_(border) {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) first_[k] = Interpolation::first(c[k]);
    inside_ = taps == 2 && detail::pairs_inside(first_, pairs);
  }

  // The interpolated value of the channel that starts at `data`; convert(T) is the value of a stored voxel.
  template <class T, class Convert>
  SUTURE_FN float value(const T* data, const Convert& convert) const {
    if constexpr (taps == 2) {
      if (inside_) {
        const detail::inside_pairs<T, offset> rows(first_, data, stride_);
        return detail::combine_taps<float, Interpolation>(
            c_, [&](int a, int b, int j) -> float { return convert(rows.at(a, b)[j]); });
      }
    }
    return from_neighborhood(data, convert);
  }

  // Interpolates several channels: use(value, channel) is called for each in turn.
  template <class T, class Convert, class Use>
  SUTURE_FN void each_channel(const T* data, std::int64_t channel_stride, std::int32_t channels, const Convert& convert,
                              const Use& use) const {
    if constexpr (taps == 2) {
      if (inside_) {
        const T* voxel = detail::inside_pairs<T, offset>(first_, data, stride_).at(0, 0);
        offset z = static_cast<offset>(stride_[0]), y = static_cast<offset>(stride_[1]), both = z + y;
        SUTURE_NO_UNROLL
        for (std::int32_t channel = 0; channel < channels; ++channel, voxel += channel_stride) {
          // Row addresses from one base and 32-bit offsets take one instruction each; two 64-bit addresses would take
          // more.
          z = detail::opaque_offset(z), y = detail::opaque_offset(y), both = detail::opaque_offset(both);
          use(detail::combine_taps<float, Interpolation>(
                  c_,
                  [&](int a, int b, int j) -> float {
                    return convert((voxel + (a == 0 ? b == 0 ? 0 : y : b == 0 ? z : both))[j]);
                  }),
              channel);
        }
        return;
      }
    }
    SUTURE_NO_UNROLL
    for (std::int32_t channel = 0; channel < channels; ++channel, data += channel_stride)
      use(from_neighborhood(data, convert), channel);
  }

  // Computes four channels that are neighbors in memory: one load of up to 8 bytes reads a tap of all four, or of two.
  template <class T, class Convert, class Use>
  SUTURE_FN void four_channels(const T* data, const Convert& convert, const Use& use) const {
    static_assert(takes_four<T>);
    constexpr int group = sizeof(T) <= 2 ? 4 : 2;
    struct alignas(group * sizeof(T)) several {
      T channel[group];
    };
    if (detail::pairs_inside(first_, {n_[0] - 1, n_[1] - 1, n_[2] - 1})) {
      const auto z = static_cast<offset>(stride_[0]), y = static_cast<offset>(stride_[1]);
      const T* const voxel = data + (detail::product(first_[0], z) + detail::product(first_[1], y)) +
                             detail::product(first_[2], offset{4});
      const offset rows[2][2] = {{0, y}, {z, z + y}};
      SUTURE_UNROLL
      for (int from = 0; from < 4; from += group) {
        several about[2][2][2];
        SUTURE_UNROLL
        for (int i = 0; i < 8; ++i) {
          const int a = i >> 2, b = i >> 1 & 1, j = i & 1;
          about[a][b][j] = *reinterpret_cast<const several*>(voxel + rows[a][b] + 4 * j + from);
        }
        SUTURE_UNROLL
        for (int channel = 0; channel < group; ++channel)
          use(detail::combine_taps<float, Interpolation>(
                  c_, [&](int a, int b, int j) -> float { return convert(about[a][b][j].channel[channel]); }),
              from + channel);
      }
    } else {
      SUTURE_NO_UNROLL
      for (int channel = 0; channel < 4; ++channel) use(from_neighborhood(data + channel, convert), channel);
    }
  }
  template <class T>
  static constexpr bool takes_four = Interpolation::taps == 2 && sizeof(T) <= 4;

private:
  static constexpr int taps = Interpolation::taps;
  using offset = tap_offset<Border>;

  // The interpolated value if the pairs are not known to be inside: the border rule applies to each tap.
  template <class T, class Convert>
  SUTURE_FN float from_neighborhood(const T* data, const Convert& convert) const {
    const neighborhood<taps, Border, T> about(first_, data, stride_, n_);
    return detail::combine_taps<float, Interpolation>(c_, [&](int a, int b, int j) -> float {
      if constexpr (Border::has_value)
        return about.has(a, b, j) ? convert(about.at(a, b, j)) : border_.value;
      else
        return convert(about.at(a, b, j));
    });
  }

  const coordinate (&c_)[3];
  const std::int64_t (&stride_)[3];
  const std::int32_t (&n_)[3];
  const Border& border_;
  std::int32_t first_[3];
  bool inside_;
};

// The interpolated value at c of the volume of extents n at `data`.
template <class Interpolation, class Border, class T, class Convert>
SUTURE_FN float interpolate(const coordinate (&c)[3], const T* data, const std::int64_t (&stride)[3],
                            const std::int32_t (&n)[3], const std::int32_t (&pairs)[3], const Border& border,
                            const Convert& convert) {
  return interpolation_taps<Interpolation, Border>(c, stride, n, pairs, border).value(data, convert);
}

// Interpolates taps that depend on their position: fetch(z, y, x) returns the tap, of type V, at a voxel of the source.
template <class V, class Interpolation, class Border, class Fetch>
SUTURE_FN V interpolate(const coordinate (&c)[3], const std::int32_t (&n)[3], const Border& border,
                        const Fetch& fetch) {
  constexpr int taps = Interpolation::taps;
  std::int32_t index[3][taps];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    const std::int32_t first = Interpolation::first(c[k]);
    SUTURE_UNROLL
    for (int j = 0; j < taps; ++j) index[k][j] = Border::index(first + j, n[k]);
  }
  return detail::combine_taps<V, Interpolation>(c, [&](int a, int b, int j) -> V {
    if constexpr (Border::has_value)
      if ((index[0][a] | index[1][b] | index[2][j]) < 0) return detail::uniform<V>(border.value);
    return fetch(index[0][a], index[1][b], index[2][j]);
  });
}

// Interpolates in the only plane of a source of one slice: fetch(y, x) returns a tap.
template <class V, class Interpolation, class Border, class Fetch>
SUTURE_FN V interpolate_plane(const coordinate (&c)[3], const std::int32_t (&n)[3], const Border& border,
                              const Fetch& fetch) {
  constexpr int taps = Interpolation::taps;
  std::int32_t index[2][taps];
  SUTURE_UNROLL
  for (int k = 0; k < 2; ++k) {
    const std::int32_t first = Interpolation::first(c[k + 1]);
    SUTURE_UNROLL
    for (int j = 0; j < taps; ++j) index[k][j] = Border::index(first + j, n[k + 1]);
  }
  return detail::combine_plane<V, Interpolation>(c, [&](int b, int j) -> V {
    if constexpr (Border::has_value)
      if ((index[0][b] | index[1][j]) < 0) return detail::uniform<V>(border.value);
    return fetch(index[0][b], index[1][j]);
  });
}

// The label at a continuous index of the label map of extents n at `data` by a one-tap interpolation.
template <class Interpolation, class Border, class T>
SUTURE_FN T pick_label(const coordinate (&c)[3], const T* data, const std::int64_t (&stride)[3],
                       const std::int32_t (&n)[3], T outside) {
  bool in = true;
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    std::int32_t i = Interpolation::first(c[k]);
    if constexpr (Border::has_value)
      in = in & inside(i, n[k]);
    else
      i = Border::index(i, n[k]);
    data += detail::product(i, static_cast<tap_offset<Border>>(stride[k]));
  }
  return in ? *data : outside;
}

// The labels at the eight corners of the cell of a continuous index, z slowest.
template <class Border, class T>
SUTURE_FN void corner_labels(const coordinate (&c)[3], const T* data, const std::int64_t (&stride)[3],
                             const std::int32_t (&n)[3], const std::int32_t (&pairs)[3], T outside, T (&labels)[8]) {
  const std::int32_t first[3] = {c[0].base, c[1].base, c[2].base};
  if (detail::pairs_inside(first, pairs)) {
    const detail::inside_pairs<T, tap_offset<Border>> rows(first, data, stride);
    SUTURE_UNROLL
    for (int i = 0; i < 8; ++i) labels[i] = rows.at(i >> 2, (i >> 1) & 1)[i & 1];
    return;
  }
  const neighborhood<2, Border, T> about(first, data, stride, n);
  SUTURE_UNROLL
  for (int i = 0; i < 8; ++i)
    labels[i] =
        !Border::has_value || about.has(i >> 2, (i >> 1) & 1, i & 1) ? about.at(i >> 2, (i >> 1) & 1, i & 1) : outside;
}

// Tests whether all labels are equal.
template <class T, int Count>
SUTURE_FN bool are_alike(const T (&labels)[Count]) {
  T differences = 0;
  SUTURE_UNROLL
  for (int i = 1; i < Count; ++i) differences = static_cast<T>(differences | (labels[i] ^ labels[0]));
  return differences == 0;
}

// The label with the largest sum among eight linear corner weights; ties go to the lowest label. `low` and `high` are
// the lowest and the highest of the eight labels.
template <class T>
SUTURE_FN T vote_label(const T (&labels)[8], T low, T high, const float (&t)[3]) {
  if (low == high) return low;
  const float wz[2] = {1.0f - t[0], t[0]}, wy[2] = {1.0f - t[1], t[1]}, wx[2] = {1.0f - t[2], t[2]};
  const auto add = [&](int j, float sum) { return fma(wz[j >> 2] * wy[(j >> 1) & 1], wx[j & 1], sum); };
  // More than two labels rarely meet.
  float sum_low = 0.0f, sum_high = 0.0f;
  bool two = true;
  SUTURE_UNROLL
  for (int j = 0; j < 8; ++j) {
    const bool is_low = labels[j] == low, is_high = labels[j] == high;
    if (is_low) sum_low = add(j, sum_low);
    if (is_high) sum_high = add(j, sum_high);
    two = two & (is_low | is_high);
  }
  if (two) return sum_high > sum_low ? high : low;
  T best = labels[0];
  float most = -1.0f;
  for (int i = 0; i < 8; ++i) {
    float sum = 0.0f;
    for (int j = 0; j < 8; ++j)
      if (labels[j] == labels[i]) sum = add(j, sum);
    if (sum > most || (sum == most && labels[i] < best)) {
      most = sum;
      best = labels[i];
    }
  }
  return best;
}

template <class T>
SUTURE_FN T vote_label(const T (&labels)[8], const float (&t)[3]) {
  if (are_alike(labels)) return labels[0];
  T low = labels[0], high = labels[0];
  SUTURE_UNROLL
  for (int i = 1; i < 8; ++i) {
    low = labels[i] < low ? labels[i] : low;
    high = labels[i] > high ? labels[i] : high;
  }
  return vote_label(labels, low, high, t);
}

// A label interpolation that chooses among the labels of the eight corners around a position.
template <class Labels>
concept chooses_among_corners = requires(const std::uint8_t (&labels)[8], const float (&t)[3]) {
  { Labels::label_among(labels, t) } -> std::same_as<std::uint8_t>;
};

template <class Labels, class Border, class T>
SUTURE_FN T sample_label(const coordinate (&c)[3], const T* data, const std::int64_t (&stride)[3],
                         const std::int32_t (&n)[3], const std::int32_t (&pairs)[3], T outside) {
  if constexpr (std::is_same_v<Labels, vote>) {
    T labels[8];
    corner_labels<Border>(c, data, stride, n, pairs, outside, labels);
    return vote_label(labels, {c[0].fraction, c[1].fraction, c[2].fraction});
  } else if constexpr (chooses_among_corners<Labels>) {
    T labels[8];
    corner_labels<Border>(c, data, stride, n, pairs, outside, labels);
    return Labels::label_among(labels, {c[0].fraction, c[1].fraction, c[2].fraction});
  } else {
    return pick_label<Labels, Border>(c, data, stride, n, outside);
  }
}

}  // namespace suture
