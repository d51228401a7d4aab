// SPDX-License-Identifier: Apache-2.0
// The CPU's walking form of the evaluator: a strip of 32 columns side by side along x, walking along z together.
// Each step is a short loop over the lanes (coordinates, gather, blend, value operations) that compilers vectorise;
// every lane does exactly the arithmetic of a lone voxel.
#pragma once

#include <algorithm>
#include <cstring>

#include "../core/evaluator.hpp"

namespace suture::detail {

inline constexpr int strip_width = 32;

// Value functors that can treat a run of voxels along x at once, e.g. noise, whose random blocks span four of them.
template <class F>
concept applies_to_rows = requires(const F& f, float (&values)[strip_width], const voxel& first) {
  f.apply_row(values, first);
};
template <class F, class R>
concept converts_rows = requires(const F& f, const float (&values)[strip_width], R (&out)[strip_width]) {
  f.convert_row(values, out);
};

template <class F>
bool is_on(const F&) {
  return true;
}
template <class F>
bool is_on(const switched<F>& s) {
  return s.on != 0;
}
template <class F>
const F& bare(const F& f) {
  return f;
}
template <class F>
const F& bare(const switched<F>& s) {
  return s.functor;
}

// Functors I.. of a pack over the lanes of a row, one after the other; `done` receives the finished row.
template <std::size_t I = 0, class Pack, class T, class Done>
SUTURE_INLINE void apply_lanes(const Pack& functors, T (&v)[strip_width], const voxel& first, const Done& done) {
  if constexpr (I == Pack::size) {
    done(v);
  } else {
    using F = typename unswitched<element_t<I, Pack>>::type;
    const F f = bare(get<I>(functors));
    using R = decltype(call(f, v[0], first));
    if constexpr (std::is_same_v<R, T>) {
      if (is_on(get<I>(functors))) {
        if constexpr (applies_to_rows<F>) {
          f.apply_row(v, first);
        } else if constexpr (applies_with_voxel<F, T>) {
          for (int l = 0; l < strip_width; ++l) {
            voxel at = first;
            at.x += l;
            at.element += static_cast<std::uint64_t>(l);
            v[l] = f(v[l], at);
          }
        } else {
          for (int l = 0; l < strip_width; ++l) v[l] = f(v[l]);
        }
      }
      apply_lanes<I + 1>(functors, v, first, done);
    } else {
      R r[strip_width];
      if constexpr (converts_rows<F, R>) {
        f.convert_row(v, r);
      } else {
        for (int l = 0; l < strip_width; ++l) {
          voxel at = first;
          at.x += l;
          at.element += static_cast<std::uint64_t>(l);
          r[l] = call(f, v[l], at);
        }
      }
      apply_lanes<I + 1>(functors, r, first, done);
    }
  }
}

// 32 columns; lanes past the end of the row repeat its last voxel.
template <class Pipeline>
class strip {
public:
  static constexpr int width = strip_width;

  std::int32_t base[3][width];
  float fraction_of[3][width];
  std::int32_t lowest[3], highest[3];  // of base, over the lanes

  strip(const item<Pipeline>& sample, std::int32_t z, std::int32_t y, std::int32_t x0) : sample_(sample), z_(z), y_(y) {
    for (int l = 0; l < width; ++l) x_[l] = std::min(x0 + l, sample.extents[2] - 1);
    for (int k = 0; k < 3; ++k) {
      position_[k] = along(sample.map, k, z, y, 0);
      const std::uint64_t step_x = sample.map.linear[k][2];
      for (int l = 0; l < width; ++l) lane_offset_[k][l] = scaled(step_x, x_[l]);
    }
    if constexpr (Pipeline::separable_deformation) {
      const control_grid& g = sample.controls;
      if (!g.on) return;
      cell_y_ = cell_of(g.to_control.offset[1] + scaled(g.to_control.linear[1][1], y), g.drawn.control_points[1]);
      for (int l = 0; l < width; ++l) {
        const control_cell cx =
            cell_of(g.to_control.offset[2] + scaled(g.to_control.linear[2][2], x_[l]), g.drawn.control_points[2]);
        float w[4];
        bspline_weights(cx.t, w);
        cell_x_[l] = cx.index;
        for (int j = 0; j < 4; ++j) weight_x_[j][l] = w[j];
      }
    }
  }

  void step() {
    for (int k = 0; k < 3; ++k) position_[k] += sample_.map.linear[k][0];
    ++z_;
  }

  void locate() {
    if constexpr (Pipeline::has_deformation) {
      if (sample_.controls.on)
        locate_deformed();
      else
        locate_affine();
    } else {
      locate_affine();
    }
    for (int k = 0; k < 3; ++k) {
      std::int32_t low = base[k][0], high = base[k][0];
      for (int l = 0; l < width; ++l) {
        low = std::min(low, base[k][l]);
        high = std::max(high, base[k][l]);
      }
      lowest[k] = low;
      highest[k] = high;
    }
  }

  // Taps first .. last around every lane's base lie inside extents n.
  bool within(const std::int32_t (&n)[3], std::int32_t first, std::int32_t last) const {
    bool in = true;
    for (int k = 0; k < 3; ++k) in = in && lowest[k] + first >= 0 && highest[k] + last < n[k];
    return in;
  }

  void lane(int l, coordinate (&c)[3]) const {
    for (int k = 0; k < 3; ++k) c[k] = {base[k][l], fraction_of[k][l]};
  }

private:
  void locate_affine() {
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t row = position_[k];
      for (int l = 0; l < width; ++l) {
        const coordinate c = split(row + lane_offset_[k][l]);
        base[k][l] = c.base;
        fraction_of[k][l] = c.fraction;
      }
    }
  }

  void locate_deformed() {
    const control_grid& g = sample_.controls;
    if constexpr (Pipeline::separable_deformation) {
      const control_cell cz =
          cell_of(g.to_control.offset[0] + scaled(g.to_control.linear[0][0], z_), g.drawn.control_points[0]);
      if (cz.index != cell_z_) {
        cell_z_ = cz.index;
        set_cell(g);
      }
      const float t = cz.t;
      for (int k = 0; k < 3; ++k) {
        const std::uint64_t row = position_[k];
        for (int l = 0; l < width; ++l) {
          const float c[4] = {cubic_[k][0][l], cubic_[k][1][l], cubic_[k][2][l], cubic_[k][3][l]};
          const coordinate m = moved(split(row + lane_offset_[k][l]), polynomial(c, t));
          base[k][l] = m.base;
          fraction_of[k][l] = m.fraction;
        }
      }
    } else {
      locate_affine();
      for (int l = 0; l < width; ++l) {
        const control_cell cz = cell_of(along(g.to_control, 0, z_, y_, x_[l]), g.drawn.control_points[0]);
        displacement_column d;
        d.set(g, cz.index, cell_of(along(g.to_control, 1, z_, y_, x_[l]), g.drawn.control_points[1]),
              cell_of(along(g.to_control, 2, z_, y_, x_[l]), g.drawn.control_points[2]));
        for (int k = 0; k < 3; ++k) {
          const coordinate m = moved({base[k][l], fraction_of[k][l]}, d.at(k, cz.t));
          base[k][l] = m.base;
          fraction_of[k][l] = m.fraction;
        }
      }
    }
  }

  // displacement_column::set over the lanes, in runs that share a cell along x and so the control vectors.
  void set_cell(const control_grid& g) {
    const std::int32_t ny = g.drawn.control_points[1], nx = g.drawn.control_points[2];
    float wy[4];
    bspline_weights(cell_y_.t, wy);
    for (int begin = 0, end = 0; begin < width; begin = end) {
      while (end < width && cell_x_[end] == cell_x_[begin]) ++end;
      float p[3][4][width];
      for (int a = 0; a < 4; ++a) {
        for (int k = 0; k < 3; ++k)
          for (int l = begin; l < end; ++l) p[k][a][l] = 0.0f;
        for (int b = 0; b < 4; ++b) {
          const control_vector* row = g.vectors + ((cell_z_ + a) * ny + cell_y_.index + b) * nx + cell_x_[begin];
          const control_vector v0 = row[0], v1 = row[1], v2 = row[2], v3 = row[3];
          const float w = wy[b];
          for (int l = begin; l < end; ++l) {
            const float x0 = weight_x_[0][l], x1 = weight_x_[1][l], x2 = weight_x_[2][l], x3 = weight_x_[3][l];
            p[0][a][l] = fma(w, fma(x3, v3.z, fma(x2, v2.z, fma(x1, v1.z, x0 * v0.z))), p[0][a][l]);
            p[1][a][l] = fma(w, fma(x3, v3.y, fma(x2, v2.y, fma(x1, v1.y, x0 * v0.y))), p[1][a][l]);
            p[2][a][l] = fma(w, fma(x3, v3.x, fma(x2, v2.x, fma(x1, v1.x, x0 * v0.x))), p[2][a][l]);
          }
        }
      }
      for (int k = 0; k < 3; ++k)
        for (int l = begin; l < end; ++l) {
          const float q[4] = {p[k][0][l], p[k][1][l], p[k][2][l], p[k][3][l]};
          float c[4];
          bspline_polynomial(q, c);
          for (int j = 0; j < 4; ++j) cubic_[k][j][l] = c[j];
        }
    }
  }

  const item<Pipeline>& sample_;
  std::int32_t z_, y_;
  std::int32_t x_[width];
  std::uint64_t position_[3];            // of x = 0
  std::uint64_t lane_offset_[3][width];  // from there to each lane
  control_cell cell_y_{};
  std::int32_t cell_z_ = -1;
  std::int32_t cell_x_[Pipeline::separable_deformation ? width : 1];
  float weight_x_[4][Pipeline::separable_deformation ? width : 1];
  float cubic_[3][4][Pipeline::separable_deformation ? width : 1];
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
  if constexpr (sizeof(T) <= 2) {
    // Neighbours along x in one load.
    if (stride[2] == 1) {
      using pair = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint16_t>;
      using bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
      pair raw[4][strip_width];
      const std::int64_t shift[4] = {0, stride[1], stride[0], stride[0] + stride[1]};
      for (int l = 0; l < strip_width; ++l) {
        const T* p = data + offset[l];
        for (int row = 0; row < 4; ++row) std::memcpy(&raw[row][l], p + shift[row], sizeof(pair));
      }
      blend_pairs<I>(
          fraction, taps,
          [&](int row, int l, float(&v)[2]) {
            v[0] = storage<T>::load(__builtin_bit_cast(T, static_cast<bits>(raw[row][l])));
            v[1] = storage<T>::load(__builtin_bit_cast(T, static_cast<bits>(raw[row][l] >> (8 * sizeof(T)))));
          },
          out);
      return;
    }
  }
  T raw[4][2][strip_width];
  const std::int64_t shift[4] = {0, stride[1], stride[0], stride[0] + stride[1]};
  for (int l = 0; l < strip_width; ++l) {
    const T* p = data + offset[l];
    for (int row = 0; row < 4; ++row) {
      raw[row][0][l] = p[shift[row]];
      raw[row][1][l] = p[shift[row] + stride[2]];
    }
  }
  blend_pairs<I>(
      fraction, taps,
      [&](int row, int l, float(&v)[2]) {
        v[0] = storage<T>::load(raw[row][0][l]);
        v[1] = storage<T>::load(raw[row][1][l]);
      },
      out);
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
        apply_lanes(taps, v[j], voxel{}, [](const float(&)[strip_width]) {});
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
      apply_lanes(taps, v[j], voxel{}, [](const float(&)[strip_width]) {});
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l)
          v[j][l] = (in[0][a][l] & in[1][b][l] & in[2][j][l]) != 0 ? v[j][l] : border.value;
    }
  });
}

// The labels of a strip by a one-tap interpolation.
template <class Pipeline, class T, class Offset>
SUTURE_INLINE void pick_labels(const strip<Pipeline>& s, const T* data, const std::int64_t (&stride)[3],
                               const std::int32_t (&n)[3], T outside, T (&out)[strip_width]) {
  using L = typename Pipeline::label_type;
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

template <class T>
SUTURE_INLINE void write_row(T* to, std::int64_t stride, const T (&v)[strip_width], int count) {
  if (stride == 1 && count == strip_width)
    std::memcpy(to, v, sizeof(v));
  else
    for (int l = 0; l < count; ++l) to[l * stride] = v[l];
}

// Writes every channel of one bound pair for the strip at (z, y, x0).
template <std::size_t B, class Evaluator, class Strip>
void write_strip(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t number, const Strip& s,
                 std::int32_t z, std::int32_t y, std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Binding = typename Evaluator::template binding_type<B>;
  using pair = typename Evaluator::template pair<B>;
  using In = typename Binding::input;
  using Out = typename Binding::output;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const int count = std::min(strip_width, r.sample.extents[2] - x0);
  Out* to = static_cast<Out*>(out.data) + z * out.stride[0] + y * out.stride[1] + x0 * out.stride[2];
  for (std::int32_t channel = 0; channel < in.channels; ++channel, to += out.channel_stride) {
    if constexpr (Binding::is_label) {
      In v[strip_width];
      if constexpr (!P::has_geometry) {
        for (int l = 0; l < count; ++l) v[l] = read<In>(in, channel, z, y, x0 + l);
      } else if constexpr (!std::is_same_v<typename P::label_type, vote>) {
        const In* data = static_cast<const In*>(in.data) + channel * in.channel_stride;
        const In outside = static_cast<In>(e.rule.label_outside);
        if (is_compact(in))
          pick_labels<P, In, std::int32_t>(s, data, in.stride, in.extents, outside, v);
        else
          pick_labels<P, In, std::int64_t>(s, data, in.stride, in.extents, outside, v);
      } else {
        for (int l = 0; l < count; ++l) {
          coordinate c[3];
          s.lane(l, c);
          v[l] = pair::at(r.sample, in, c, number, channel, z, y, x0 + l, e.rule);
        }
      }
      write_row(to, out.stride[2], v, count);
    } else {
      float v[strip_width];
      if constexpr (!P::has_geometry) {
        static_assert(P::taps::size == 0);
        if (in.stride[2] == 1 && count == strip_width) {
          const In* p =
              static_cast<const In*>(in.data) + channel * in.channel_stride + z * in.stride[0] + y * in.stride[1] + x0;
          for (int l = 0; l < strip_width; ++l) v[l] = storage<In>::load(p[l]);
        } else {
          for (int l = 0; l < strip_width; ++l)
            v[l] = storage<In>::load(read<In>(in, channel, z, y, x0 + std::min(l, count - 1)));
        }
      } else {
        if constexpr (!P::prefiltered && any_needs_voxel<typename P::taps>) {
          for (int l = 0; l < strip_width; ++l) {
            coordinate c[3];
            s.lane(l, c);
            v[l] = pair::sampled(r.sample, in, c, number, channel, e.rule.border);
          }
        } else if (is_compact(in)) {
          sample_strip<P, In, std::int32_t>(s, in, channel, r.sample.taps, e.rule.border, v);
        } else {
          sample_strip<P, In, std::int64_t>(s, in, channel, r.sample.taps, e.rule.border, v);
        }
      }
      const voxel first = voxel_at(r.sample.extents, number, channel, z, y, x0);
      apply_lanes(r.sample.outputs, v, first, [&]<class R>(const R(&finished)[strip_width]) {
        Out row[strip_width];
        for (int l = 0; l < strip_width; ++l) row[l] = stored<Out>(finished[l]);
        write_row(to, out.stride[2], row, count);
      });
    }
  }
}

template <class Evaluator, class Strip>
void write_strips(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t number, const Strip& s,
                  std::int32_t z, std::int32_t y, std::int32_t x0) {
  [&]<std::size_t... B>(std::index_sequence<B...>) { (write_strip<B>(e, r, number, s, z, y, x0), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

}  // namespace suture::detail
