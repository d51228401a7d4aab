// SPDX-License-Identifier: Apache-2.0
// Samples that keep the axes of their source, as resampling does: neighboring rows of the output read the same rows of
// the source, so that what taps give along x, and then along y, is worked out once for all that need it. Every value
// still comes from exactly the arithmetic of a lone voxel.
#pragma once

#include <limits>

#include "path.hpp"

namespace suture::detail {

// Label interpolations that read one voxel.
template <class L>
concept picks_a_voxel = requires {
  requires L::taps == 1;
};

template <class Pipeline>
bool keeps_axes(const sample_parameters<Pipeline>& sample) {
  if (strip<Pipeline>::deformed(sample)) return false;
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < 3; ++j)
      if (loop_axes[sample.loops][j] != k && sample.map.linear[k][j] != 0) return false;
  return true;
}

// Returns the source position along one axis for output index i, where the axes are kept.
template <class Pipeline>
coordinate along_axis(const sample_parameters<Pipeline>& sample, int axis, std::int32_t i) {
  return split(sample.map.offset[axis] + scaled(sample.map.linear[axis][loop_along(sample.loops, axis)], i));
}

// A tap for every lane, along the axis of the lanes.
struct lane_taps {
  std::int64_t offset[strip_width];  // in elements; of the nearest voxel outside
  std::int32_t in[strip_width];
  bool all_in = true;

  template <class Border, class Pipeline, class First>
  void set(const sample_parameters<Pipeline>& sample, std::int32_t x0, std::int32_t n, std::int64_t stride,
           const First& first) {
    for (int l = 0; l < strip_width; ++l) {
      const std::int32_t i =
          first(along_axis(sample, loop_axes[sample.loops][2], std::min(x0 + l, sample.extents[2] - 1)));
      all_in = all_in && inside(i, n);
      in[l] = Border::index(i, n) >= 0;
      offset[l] = readable_index<Border>(i, n) * stride;
    }
  }
};

// One column of strips of one channel of an image, in rows y0 .. y0 + Rows - 1.
template <class Pipeline, class T, int Rows>
class aligned_values {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  static constexpr int taps = I::taps;
  static_assert((taps & (taps - 1)) == 0);
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();
  // Slot of a row or plane in the ring that holds the last `taps` of them.
  static constexpr std::int32_t place_of(std::int32_t i) { return i & (taps - 1); }

public:
  aligned_values(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel,
                 const B& border, std::int32_t y0, std::int32_t y1, std::int32_t x0)
      : sample_(sample),
        border_(border),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        y0_(y0),
        y1_(y1) {
    bool all_in = true;
    for (int j = 0; j < taps; ++j) {
      x_[j].template set<B>(sample, x0, in.extents[2], in.stride[2], [&](coordinate c) { return first_tap(c) + j; });
      all_in = all_in && x_[j].all_in;
      held_plane_[j] = held_row_[j] = none;
    }
    pairs_ = taps == 2 && all_in && in.stride[2] == 1;
    for (int l = 0; l < strip_width; ++l) {
      float w[taps];
      I::weights(along_axis(sample, 2, std::min(x0 + l, sample.extents[2] - 1)).fraction, w);
      for (int j = 0; j < taps; ++j) weights_[j][l] = w[j];
    }
  }

  // The interpolated values of row (z, y).
  void row(std::int32_t z, std::int32_t y, float (&v)[strip_width]) {
    const coordinate c = along_axis(sample_, 0, z);
    const std::int32_t first = first_tap(c);
    for (int a = 0; a < taps; ++a) hold_plane(first + a);
    combine(
        c.fraction, v, [&](int a) -> const auto& { return planes_[place_of(first + a)][y - y0_]; });
  }

private:
  static std::int32_t first_tap(const coordinate& c) { return I::first(c) + Pipeline::padding; }
  static constexpr auto functors_of(const sample_parameters<Pipeline>& sample) {
    if constexpr (Pipeline::prefiltered)
      return pack<>{};  // coefficients have passed the value operations
    else
      return sample.taps;
  }

  // of(tap): values of the lanes.
  template <class Of>
  static void combine(float fraction, float (&out)[strip_width], const Of& of) {
    float w[taps];
    I::weights(fraction, w);
    const float* from[taps];
    for (int j = 0; j < taps; ++j) from[j] = of(j);
    for (int l = 0; l < strip_width; ++l) {
      float v[taps];
      SUTURE_UNROLL
      for (int j = 0; j < taps; ++j) v[j] = from[j][l];
      out[l] = I::combine(v, w);
    }
  }

  // Plane z of the source, interpolated along x and y, for every row.
  void hold_plane(std::int32_t z) {
    if (held_plane_[place_of(z)] == z) return;
    held_plane_[place_of(z)] = z;
    for (std::int32_t& row : held_row_) row = none;
    for (std::int32_t y = y0_; y < y1_; ++y) {
      const coordinate c = along_axis(sample_, 1, y);
      const std::int32_t first = first_tap(c);
      for (int b = 0; b < taps; ++b) hold_row(z, first + b);
      combine(
          c.fraction, planes_[place_of(z)][y - y0_], [&](int b) -> const auto& { return rows_[place_of(first + b)]; });
    }
  }

  // Row (z, y) of the source, interpolated along x.
  void hold_row(std::int32_t z, std::int32_t y) {
    if (held_row_[place_of(y)] == y) return;
    held_row_[place_of(y)] = y;
    float(&out)[strip_width] = rows_[place_of(y)];
    const std::int32_t iz = B::index(z, in_.extents[0]), iy = B::index(y, in_.extents[1]);
    const auto functors = functors_of(sample_);
    if ((iz | iy) >= 0) {
      const T* const p = data_ + (iz * in_.stride[0] + iy * in_.stride[1]);
      const T* const next = p + in_.stride[0];  // of the plane to come
      for (int l = 0; l < strip_width; l += 8) __builtin_prefetch(next + x_[0].offset[l]);
      if constexpr (taps == 2)
        if (pairs_) {
          alignas(lane_alignment) pair_of<T> pairs[1][strip_width];
          gather_rows<pair_of<T>>({p}, x_[0].offset, pairs);
          for (int l = 0; l < strip_width; ++l) {
            const float v[2] = {apply(functors, first_value_of<T>(pairs[0][l]), voxel{}),
                                apply(functors, second_value_of<T>(pairs[0][l]), voxel{})};
            const float w[2] = {weights_[0][l], weights_[1][l]};
            out[l] = I::combine(v, w);
          }
          return;
        }
      float v[taps][strip_width];
      for (int j = 0; j < taps; ++j) {
        alignas(lane_alignment) T raw[1][strip_width];
        gather_rows<bits_of<T>>({p}, x_[j].offset, raw);
        for (int l = 0; l < strip_width; ++l) v[j][l] = storage<T>::load(raw[0][l]);
        apply_lanes(functors, v[j], nowhere{}, [](const float(&)[strip_width]) {});
        if constexpr (B::has_value)
          for (int l = 0; l < strip_width; ++l) v[j][l] = x_[j].in[l] != 0 ? v[j][l] : border_.value;
      }
      combine_axis<I>(v, weights_, out);
    } else if constexpr (B::has_value) {
      float v[taps][strip_width];
      for (int j = 0; j < taps; ++j)
        for (int l = 0; l < strip_width; ++l) v[j][l] = border_.value;
      combine_axis<I>(v, weights_, out);
    }
  }

  const sample_parameters<Pipeline>& sample_;
  const B& border_;
  const T* data_;
  const source_tensor& in_;
  std::int32_t y0_, y1_;
  lane_taps x_[taps];
  bool pairs_;
  std::int32_t held_plane_[taps], held_row_[taps];
  alignas(lane_alignment) float weights_[taps][strip_width];
  alignas(lane_alignment) float rows_[taps][strip_width];
  alignas(lane_alignment) float planes_[taps][Rows][strip_width];
};

// Rows of a label map, by a one-tap interpolation L.
template <class L, class Pipeline, class T>
class aligned_labels {
  using B = typename Pipeline::border_type;

public:
  aligned_labels(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel, T outside,
                 std::int32_t x0)
      : sample_(sample),
        axes_(loop_axes[sample.loops]),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        outside_(outside) {
    const int axis = axes_[2];
    x_.set<B>(sample, x0, in.extents[axis], in.stride[axis], [](coordinate c) { return L::first(c); });
  }

  void row(std::int32_t z, std::int32_t y, T (&out)[1][strip_width]) const {
    const int planes = axes_[0], rows = axes_[1];
    const std::int32_t iz = B::index(L::first(along_axis(sample_, planes, z)), in_.extents[planes]);
    const std::int32_t iy = B::index(L::first(along_axis(sample_, rows, y)), in_.extents[rows]);
    if ((iz | iy) >= 0) {
      const T* const p = data_ + (iz * in_.stride[planes] + iy * in_.stride[rows]);
      const T* const next = p + in_.stride[planes];
      for (int l = 0; l < strip_width; l += 16) __builtin_prefetch(next + x_.offset[l]);
      gather_rows<bits_of<T>>({p}, x_.offset, out);
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l) out[0][l] = x_.in[l] != 0 ? out[0][l] : outside_;
    } else {
      for (int l = 0; l < strip_width; ++l) out[0][l] = outside_;
    }
  }

private:
  const sample_parameters<Pipeline>& sample_;
  const std::uint8_t (&axes_)[3];
  const T* data_;
  const source_tensor& in_;
  T outside_;
  lane_taps x_;
};

// Rows of a label map by vote, y0 .. y0 + Rows - 1: pairs of neighbors along x are kept for the rows and planes that
// need them again.
template <class Pipeline, class T, int Rows>
class aligned_votes {
  using B = typename Pipeline::border_type;
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();

public:
  aligned_votes(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel, T outside,
                std::int32_t y0, std::int32_t y1, std::int32_t x0)
      : sample_(sample),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        outside_(outside),
        y0_(y0),
        y1_(y1) {
    for (int j = 0; j < 2; ++j)
      x_[j].template set<B>(sample, x0, in.extents[2], in.stride[2], [&](coordinate c) { return c.base + j; });
    pairs_ = x_[0].all_in && x_[1].all_in && in.stride[2] == 1;
    for (int l = 0; l < strip_width; ++l)
      fraction_[2][l] = along_axis(sample, 2, std::min(x0 + l, sample.extents[2] - 1)).fraction;
  }

  void row(std::int32_t z, std::int32_t y, T (&out)[strip_width]) {
    const coordinate cz = along_axis(sample_, 0, z), cy = along_axis(sample_, 1, y);
    pair_of<T> pairs[4][strip_width];
    for (int a = 0; a < 2; ++a) {
      const std::int32_t plane = cz.fraction == 0 ? cz.base : cz.base + a;  // without weight any labels will do
      hold_plane(plane);
      for (int b = 0; b < 2; ++b) copy_strip(pairs[2 * a + b], planes_[plane & 1][y - y0_][b]);
    }
    for (int l = 0; l < strip_width; ++l) {
      fraction_[0][l] = cz.fraction;
      fraction_[1][l] = cy.fraction;
    }
    vote_of_pairs<T>(pairs, fraction_, out);
  }

private:
  // The pairs of plane z of the source that each row reads.
  void hold_plane(std::int32_t z) {
    if (held_plane_[z & 1] == z) return;
    held_plane_[z & 1] = z;
    held_row_[0] = held_row_[1] = none;
    for (std::int32_t y = y0_; y < y1_; ++y) {
      const std::int32_t first = along_axis(sample_, 1, y).base;
      for (int b = 0; b < 2; ++b) {
        hold_row(z, first + b);
        copy_strip(planes_[z & 1][y - y0_][b], rows_[(first + b) & 1][0]);
      }
    }
  }

  void hold_row(std::int32_t z, std::int32_t y) {
    if (held_row_[y & 1] == y) return;
    held_row_[y & 1] = y;
    pair_of<T>(&pairs)[1][strip_width] = rows_[y & 1];
    const std::int32_t iz = B::index(z, in_.extents[0]), iy = B::index(y, in_.extents[1]);
    if ((iz | iy) < 0) {
      for (pair_of<T>& pair : pairs[0]) pair = make_pair_of(outside_, outside_);
      return;
    }
    const T* const p = data_ + (iz * in_.stride[0] + iy * in_.stride[1]);
    const T* const next = p + in_.stride[0];  // of the plane to come
    for (int l = 0; l < strip_width; l += 16) __builtin_prefetch(next + x_[0].offset[l]);
    if (pairs_) {
      gather_rows<pair_of<T>>({p}, x_[0].offset, pairs);
      return;
    }
    alignas(lane_alignment) T t[2][1][strip_width];
    for (int j = 0; j < 2; ++j) {
      gather_rows<bits_of<T>>({p}, x_[j].offset, t[j]);
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l) t[j][0][l] = x_[j].in[l] != 0 ? t[j][0][l] : outside_;
    }
    for (int l = 0; l < strip_width; ++l) pairs[0][l] = make_pair_of(t[0][0][l], t[1][0][l]);
  }

  const sample_parameters<Pipeline>& sample_;
  const T* data_;
  const source_tensor& in_;
  T outside_;
  std::int32_t y0_, y1_;
  lane_taps x_[2];
  bool pairs_;
  std::int32_t held_plane_[2] = {none, none}, held_row_[2] = {none, none};  // even and odd ones
  alignas(lane_alignment) float fraction_[3][strip_width];
  alignas(lane_alignment) pair_of<T> rows_[2][1][strip_width];
  alignas(lane_alignment) pair_of<T> planes_[2][Rows][2][strip_width];
};

// A column of strips of a sample that keeps its axes: rows y0 .. y1 - 1 of planes z0 .. z1 - 1.
template <int Rows, bool WithLabels, class Evaluator, class Strip, class Stages>
void write_aligned_column(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t sample_index,
                          Strip& s, Stages& stages, const std::int32_t (&z)[2], const std::int32_t (&y)[2],
                          std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  const auto each = [&](const auto& write) {
    for (std::int32_t iz = z[0]; iz < z[1]; ++iz)
      for (std::int32_t iy = y[0]; iy < y[1]; ++iy) write(iz, iy);
  };
  const auto one = [&]<std::size_t B>() {
    using Binding = typename Evaluator::template binding_type<B>;
    using In = typename Binding::input;
    const source_tensor& in = r.in[B];
    [[maybe_unused]] const auto strip_by_strip = [&] {
      each([&](std::int32_t iz, std::int32_t iy) {
        s.locate(iz, iy);
        write_strip<B>(e, r, sample_index, s, stages, iz, iy, x0);
      });
    };
    if constexpr (Binding::is_label && !WithLabels) {
      return;
    } else if constexpr (ends_at_rim<typename P::border_type>) {
      strip_by_strip();
    } else if constexpr (Binding::is_label && picks_a_voxel<typename P::label_type>) {
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        const aligned_labels<typename P::label_type, P, In> labels(r.sample, in, channel,
                                                                   static_cast<In>(e.rule.label_outside), x0);
        each([&](std::int32_t iz, std::int32_t iy) {
          In v[1][strip_width];
          labels.row(iz, iy, v);
          finish_labels<B>(e, r, v[0], channel, iz, iy, x0);
        });
      }
    } else if constexpr (Binding::is_label && std::is_same_v<typename P::label_type, vote>) {
      if (r.sample.loops != 0) return strip_by_strip();
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        aligned_votes<P, In, Rows> votes(r.sample, in, channel, static_cast<In>(e.rule.label_outside), y[0], y[1], x0);
        each([&](std::int32_t iz, std::int32_t iy) {
          In v[strip_width];
          votes.row(iz, iy, v);
          finish_labels<B>(e, r, v, channel, iz, iy, x0);
        });
      }
    } else if constexpr (!Binding::is_label && !P::is_color && P::interpolation_type::taps > 1 &&
                         (P::prefiltered || !any_needs_voxel<typename P::taps>)) {
      // Rows and planes share sums where lanes run along x, the first axis that is combined.
      if (r.sample.loops != 0) return strip_by_strip();
      using T = std::conditional_t<P::prefiltered, float, In>;
      using Out = typename Evaluator::template pair<B>::unit;
      const target_tensor& out = r.out[B];
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        const Out* const to = static_cast<const Out*>(out.data) + channel * out.channel_stride + x0 * out.stride[2];
        aligned_values<P, T, Rows> values(r.sample, in, channel, e.rule.border, y[0], y[1], x0);
        each([&](std::int32_t iz, std::int32_t iy) {
          alignas(lane_alignment) float v[strip_width];
          s.expect_output(iy, y);
          prefetch_output(s, to + iz * out.stride[0] + iy * out.stride[1], out.stride);
          values.row(iz, iy, v);
          finish_values<B>(e, r, sample_index, stages, v, channel, iz, iy, x0);
        });
      }
    } else {
      strip_by_strip();
    }
  };
  [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

struct axis_aligned_rows {
  static constexpr std::string_view name = "axis_aligned_rows";

  template <class Evaluator>
  static constexpr bool possible = Evaluator::pipeline_type::has_geometry;
  static constexpr bool serves_all = false;

  template <class Parameters>
  static bool serves(const Parameters& sample) {
    return keeps_axes(sample);
  }
  template <class Parameters>
  static brick_shape shape(const Parameters&, std::int32_t depth) {
    return {depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    for (std::int32_t x0 = 0; x0 < work.r.sample.extents[2]; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
      walk.expect(2, 0, 0);
      write_aligned_column<brick_rows, WithLabels>(work.evaluate, work.r, work.sample_index, walk, stages,
                                                   {work.z0, work.z1}, {work.y0, work.y1}, x0);
    }
    return true;
  }
};

}  // namespace suture::detail
