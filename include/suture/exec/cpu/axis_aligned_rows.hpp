// SPDX-License-Identifier: Apache-2.0
// Samples that keep the axes of their source, as resampling does: neighboring rows of the output read the same rows of
// the source, so that what taps give along x, and then along y, is worked out once for all that need it. Every value
// still comes from exactly the arithmetic of a lone voxel.
#pragma once

#include <limits>
#include <utility>

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

// One column of strips of one channel of an image whose lanes run along z or y. x is combined first and is one for all
// lanes: a run of source voxels along the lanes is combined as a whole, and lanes pick from the result. Where lanes run
// along z, rows along y share such runs; where they run along y, planes along z share lanes.
template <class Pipeline, class T>
class aligned_runs {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  static constexpr int taps = I::taps;
  static constexpr std::int32_t most = 4 * strip_width;  // source voxels of a run
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();

public:
  // Whether the run of the lanes from x0 on is short enough.
  static bool fits(const sample_parameters<Pipeline>& sample, std::int32_t x0) {
    const auto [low, high] = reach(sample, x0);
    return high - low + taps <= most;
  }

  aligned_runs(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel,
               const B& border, std::int32_t x0)
      : sample_(sample),
        border_(border),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        lanes_(loop_axes[sample.loops][2]),
        start_(reach(sample, x0).first),
        count_(reach(sample, x0).second + taps - start_) {
    const std::int32_t n = in.extents[lanes_];
    for (std::int32_t i = 0; i < count_; ++i) {
      inside_[i] = B::index(start_ + i, n) >= 0;
      offset_[i] = readable_index<B>(start_ + i, n) * in.stride[lanes_];
    }
    begin_ = std::clamp(0 - start_, 0, count_);
    end_ = std::clamp(n - start_, begin_, count_);
    for (int l = 0; l < strip_width; ++l) {
      const coordinate c = along_axis(sample, lanes_, std::min(x0 + l, sample.extents[2] - 1));
      place_[l] = first_tap(c) - start_;
      float w[taps];
      I::weights(c.fraction, w);
      for (int j = 0; j < taps; ++j) weights_[j][l] = w[j];
    }
  }

  // The interpolated values of the lanes at x and at index `other` of the axis that is neither x nor that of the lanes.
  void row(std::int32_t x, std::int32_t other, float (&v)[strip_width]) {
    if (x != x_) {
      x_ = x;
      const coordinate c = along_axis(sample_, 2, x);
      first_x_ = first_tap(c);
      I::weights(c.fraction, weight_x_);
      for (std::int32_t& i : held_) i = none;
    }
    const coordinate c = along_axis(sample_, 1 - lanes_, other);
    const std::int32_t first = first_tap(c);
    float w[taps];
    I::weights(c.fraction, w);
    const float* from[taps];
    for (int a = 0; a < taps; ++a) {
      hold(first + a);
      from[a] = rows_[(first + a) & (taps - 1)];
    }
    if (lanes_ == 0) {
      alignas(lane_alignment) float run[most];
      combine_run(from, w, count_, run);
      pick(run, v);
    } else {
      combine_run(from, w, strip_width, v);
    }
  }

private:
  static std::int32_t first_tap(const coordinate& c) { return I::first(c) + Pipeline::padding; }
  static constexpr auto functors_of(const sample_parameters<Pipeline>& sample) {
    if constexpr (Pipeline::prefiltered)
      return pack<>{};  // coefficients have passed the value operations
    else
      return sample.taps;
  }
  // The first taps of the lanes that are lowest and highest.
  static std::pair<std::int32_t, std::int32_t> reach(const sample_parameters<Pipeline>& sample, std::int32_t x0) {
    const int axis = loop_axes[sample.loops][2];
    const std::int32_t last = std::min(x0 + strip_width, sample.extents[2]) - 1;
    return std::minmax({first_tap(along_axis(sample, axis, x0)), first_tap(along_axis(sample, axis, last))});
  }

  // Calls use(first, std::integral_constant of how many) for numbers begin .. end - 1. A register full of them at a time
  // where there are that many, the last ones once more.
  template <class Use>
  static SUTURE_INLINE void by_registers(std::int32_t begin, std::int32_t end, const Use& use) {
    constexpr int step = lanes_by_turns;
    if (end - begin >= step) {
      std::int32_t i = begin;
      for (; i + step < end; i += step) use(i, std::integral_constant<int, step>{});
      use(end - step, std::integral_constant<int, step>{});
    } else {
      for (std::int32_t i = begin; i < end; ++i) use(i, std::integral_constant<int, 1>{});
    }
  }

  static SUTURE_INLINE void combine_run(const float* const (&from)[taps], const float (&w)[taps], std::int32_t count,
                                        float* out) {
    by_registers(0, count, [&]<int Count>(std::int32_t first, std::integral_constant<int, Count>) {
      for (std::int32_t i = first; i < first + Count; ++i) {
        float v[taps];
        SUTURE_UNROLL
        for (int j = 0; j < taps; ++j) v[j] = from[j][i];
        out[i] = I::combine(v, w);
      }
    });
  }

  // Interpolates along the lanes what they read of a run.
  void pick(const float (&run)[most], float (&out)[strip_width]) const {
    if constexpr (taps == 2) {
      alignas(lane_alignment) pair_of<float> pairs[1][strip_width];
      gather_rows<pair_of<float>>({&run[0]}, place_, pairs);
      for (int l = 0; l < strip_width; ++l) {
        const float v[2] = {first_of<float>(pairs[0][l]), second_of<float>(pairs[0][l])};
        const float w[2] = {weights_[0][l], weights_[1][l]};
        out[l] = I::combine(v, w);
      }
    } else {
      float v[taps][strip_width];
      for (int j = 0; j < taps; ++j)
        for (int l = 0; l < strip_width; ++l) v[j][l] = run[place_[l] + j];
      combine_axis<I>(v, weights_, out);
    }
  }

  // Index i of the source along the other axis: a run, or what lanes along y pick from it.
  void hold(std::int32_t i) {
    const int slot = i & (taps - 1);
    if (held_[slot] == i) return;
    held_[slot] = i;
    if (lanes_ == 0) {
      read(i, rows_[slot]);
    } else {
      alignas(lane_alignment) float run[most];
      read(i, run);
      float lanes[strip_width];
      pick(run, lanes);
      copy_strip(rows_[slot], lanes);
    }
  }

  // A run of the source, interpolated along x.
  void read(std::int32_t i, float (&out)[most]) const {
    const std::int32_t io = B::index(i, in_.extents[1 - lanes_]);
    const T* rows[taps];
    bool all_in = true;
    for (int j = 0; j < taps; ++j) {
      const std::int32_t ix = B::index(first_x_ + j, in_.extents[2]);
      const bool in = (ix | io) >= 0;
      rows[j] = in ? data_ + (ix * in_.stride[2] + io * in_.stride[1 - lanes_]) : nullptr;
      all_in = all_in && in;
    }
    const auto functors = functors_of(sample_);
    const auto one_by_one = [&](std::int32_t begin, std::int32_t end) {
      for (std::int32_t k = begin; k < end; ++k) {
        float v[taps];
        for (int j = 0; j < taps; ++j) {
          if constexpr (B::has_value) {
            v[j] = border_.value;
            if (rows[j] == nullptr || !inside_[k]) continue;
          }
          v[j] = apply(functors, storage<T>::load(rows[j][offset_[k]]), voxel{});
        }
        out[k] = I::combine(v, weight_x_);
      }
    };
    if (!all_in || in_.stride[lanes_] != 1) return one_by_one(0, count_);
    one_by_one(0, begin_);
    if (begin_ < end_) {
      const T* from[taps];
      for (int j = 0; j < taps; ++j) from[j] = rows[j] + (start_ + begin_) - begin_;
      float w[taps];
      for (int j = 0; j < taps; ++j) w[j] = weight_x_[j];
      const T* const next = from[taps - 1] + in_.stride[2];  // of the x to come
      for (std::int32_t k = begin_; k < end_; k += std::int32_t{64 / sizeof(T)}) __builtin_prefetch(next + k);
      by_registers(begin_, end_, [&]<int Count>(std::int32_t first, std::integral_constant<int, Count>) {
        for (std::int32_t k = first; k < first + Count; ++k) {
          float v[taps];
          SUTURE_UNROLL
          for (int j = 0; j < taps; ++j) v[j] = apply(functors, storage<T>::load(from[j][k]), voxel{});
          out[k] = I::combine(v, w);
        }
      });
    }
    one_by_one(end_, count_);
  }

  const sample_parameters<Pipeline>& sample_;
  const B& border_;
  const T* data_;
  const source_tensor& in_;
  int lanes_;                   // the axis that lanes run along
  std::int32_t start_, count_;  // the run along it
  std::int32_t begin_, end_;    // that part of the run that lies inside the source
  std::int32_t x_ = none, first_x_ = 0, held_[taps];
  float weight_x_[taps];
  bool inside_[most];
  std::int64_t offset_[most];  // in elements; of the nearest voxel outside
  std::int32_t place_[strip_width];
  alignas(lane_alignment) float weights_[taps][strip_width];
  alignas(lane_alignment) float rows_[taps][most];
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

// Rows of a label map by vote, y0 .. y0 + Rows - 1: pairs of neighbors along the lanes are kept for the rows and planes
// that need them again.
template <class Pipeline, class T, int Rows>
class aligned_votes {
  using B = typename Pipeline::border_type;
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();

public:
  aligned_votes(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel, T outside,
                std::int32_t y0, std::int32_t y1, std::int32_t x0)
      : sample_(sample),
        axes_(loop_axes[sample.loops]),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        outside_(outside),
        y0_(y0),
        y1_(y1) {
    const int lanes = axes_[2];
    for (int j = 0; j < 2; ++j)
      x_[j].template set<B>(sample, x0, in.extents[lanes], in.stride[lanes], [&](coordinate c) { return c.base + j; });
    pairs_ = x_[0].all_in && x_[1].all_in && in.stride[lanes] == 1;
    for (int l = 0; l < strip_width; ++l)
      fraction_[lanes][l] = along_axis(sample, lanes, std::min(x0 + l, sample.extents[2] - 1)).fraction;
  }

  void row(std::int32_t z, std::int32_t y, T (&out)[strip_width]) {
    const coordinate cz = along_axis(sample_, axes_[0], z), cy = along_axis(sample_, axes_[1], y);
    pair_of<T> pairs[4][strip_width];
    for (int a = 0; a < 2; ++a) {
      const std::int32_t plane = cz.fraction == 0 ? cz.base : cz.base + a;  // without weight any labels will do
      hold_plane(plane);
      for (int b = 0; b < 2; ++b) copy_strip(pairs[2 * a + b], planes_[plane & 1][y - y0_][b]);
    }
    float(&of_planes)[strip_width] = fraction_[axes_[0]], (&of_rows)[strip_width] = fraction_[axes_[1]];
    for (int l = 0; l < strip_width; ++l) {
      of_planes[l] = cz.fraction;
      of_rows[l] = cy.fraction;
    }
    if (all_agree<T>(pairs, out)) return;
    if (sample_.loops != 0) pair_along_x(pairs);
    vote_lanes<T>(pairs, fraction_, out);
  }

private:
  // Turns pairs along the lanes, z or y, into those along x, as rows (z, y), (z, y + 1), (z + 1, y), (z + 1, y + 1).
  void pair_along_x(pair_of<T> (&pairs)[4][strip_width]) const {
    const int next_x = axes_[0] == 2 ? 2 : 1, next_other = 3 - next_x;
    const int next_lane = axes_[2] == 0 ? 2 : 1;
    pair_of<T> along_x[4][strip_width];
    for (int other = 0; other < 2; ++other) {
      const auto &p = pairs[other * next_other], &q = pairs[other * next_other + next_x];
      auto &first = along_x[other * (3 - next_lane)], &second = along_x[other * (3 - next_lane) + next_lane];
      for (int l = 0; l < strip_width; ++l) cross_pairs<T>(p[l], q[l], first[l], second[l]);
    }
    for (int row = 0; row < 4; ++row) copy_strip(pairs[row], along_x[row]);
  }

  // The pairs of plane z of the source that each row reads.
  void hold_plane(std::int32_t z) {
    if (held_plane_[z & 1] == z) return;
    held_plane_[z & 1] = z;
    held_row_[0] = held_row_[1] = none;
    for (std::int32_t y = y0_; y < y1_; ++y) {
      const std::int32_t first = along_axis(sample_, axes_[1], y).base;
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
    const int planes = axes_[0], rows = axes_[1];
    const std::int32_t iz = B::index(z, in_.extents[planes]), iy = B::index(y, in_.extents[rows]);
    if ((iz | iy) < 0) {
      for (pair_of<T>& pair : pairs[0]) pair = make_pair_of(outside_, outside_);
      return;
    }
    const T* const p = data_ + (iz * in_.stride[planes] + iy * in_.stride[rows]);
    const T* const next = p + in_.stride[planes];  // of the plane to come
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
  const std::uint8_t (&axes_)[3];
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

// The values of a column of strips that runs along z or y, x by x: rows y[0] .. y[1] - 1 of planes z[0] .. z[1] - 1.
template <std::size_t B, class T, class Evaluator, class Stages>
void write_aligned_runs(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t sample_index,
                        Stages& stages, const std::int32_t (&z)[2], const std::int32_t (&y)[2], std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Out = typename Evaluator::template pair<B>::unit;
  const target_tensor& out = r.out[B];
  const bool planes_along_x = loop_axes[r.sample.loops][0] == 2;
  const std::int32_t(&of_x)[2] = planes_along_x ? z : y;
  const std::int32_t(&of_other)[2] = planes_along_x ? y : z;
  for (std::int32_t channel = 0; channel < r.in[B].channels; ++channel) {
    const Out* const to = static_cast<const Out*>(out.data) + channel * out.channel_stride + x0 * out.stride[2];
    aligned_runs<P, T> runs(r.sample, r.in[B], channel, e.rule.border, x0);
    for (std::int32_t x = of_x[0]; x < of_x[1]; ++x)
      for (std::int32_t other = of_other[0]; other < of_other[1]; ++other) {
        const std::int32_t iz = planes_along_x ? x : other, iy = planes_along_x ? other : x;
        prefetch_strip(
            to + (planes_along_x ? iz : iz + 2) * out.stride[0] + (planes_along_x ? iy + 2 : iy) * out.stride[1],
            out.stride[2]);
        alignas(lane_alignment) float v[strip_width];
        runs.row(x, other, v);
        finish_values<B>(e, r, sample_index, stages, v, channel, iz, iy, x0);
      }
  }
}

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
      using T = std::conditional_t<P::prefiltered, float, In>;
      using Out = typename Evaluator::template pair<B>::unit;
      const target_tensor& out = r.out[B];
      if (r.sample.loops != 0) {
        if (!aligned_runs<P, T>::fits(r.sample, x0)) return strip_by_strip();
        return write_aligned_runs<B, T>(e, r, sample_index, stages, z, y, x0);
      }
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
    // Lanes along x share sums with rows along y alone.
    return keeps_axes(sample) && (sample.loops == 0 || loop_axes[sample.loops][2] != 2);
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
