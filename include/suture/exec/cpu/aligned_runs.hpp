// SPDX-License-Identifier: Apache-2.0
// Interpolated values of samples that keep their axes, where lanes run along z or y.
#pragma once

#include <limits>
#include <utility>

#include "kept_axes.hpp"

namespace suture::detail {

// One column of strips of one channel of an image whose lanes run along z or y. Interpolation along x comes first, with
// the same weights for all lanes. So a run, the consecutive source voxels that the lanes read, is interpolated as a
// whole, and lanes pick from the result. Lanes along z keep such runs for neighboring y; lanes along y keep what they
// picked for neighboring z.
template <class Pipeline, class T>
class aligned_runs {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  static constexpr int taps = I::taps;
  static constexpr std::int32_t most = 4 * strip_width;  // source voxels of the longest run
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();

public:
  // Tests whether the run of the lanes from x0 on is short enough.
  static bool fits(const sample_parameters<Pipeline>& sample, std::int32_t x0) {
    const auto [low, high] = reach(sample, x0);
    return high - low + taps <= most;
  }

  aligned_runs(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel,
               const B& border, const std::int32_t (&x)[2], std::int32_t x0)
      : sample_(sample),
        border_(border),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        lanes_(loop_axes[sample.loops][2]),
        start_(reach(sample, x0).first),
        count_(reach(sample, x0).second + taps - start_),
        begin_x_(x[0]),
        end_x_(x[1]) {
    const std::int32_t next = x0 + strip_width < sample.extents[2] ? x0 + strip_width : 0;
    has_next_column_ = next > 0;
    to_next_column_ = reach(sample, next).first - start_;
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

  // Computes the strip at index x of the output and at index `other` of the axis that is neither x nor that of lanes.
  void row(std::int32_t x, std::int32_t other, float (&v)[strip_width]) {
    if (x != x_) {
      x_ = x;
      const coordinate c = along_axis(sample_, 2, x);
      first_x_ = first_tap(c);
      look_ahead(x);
      I::weights(c.fraction, weight_x_);
      for (std::int32_t& i : index_in_slot_) i = none;
    }
    const coordinate c = along_axis(sample_, 1 - lanes_, other);
    const std::int32_t first = first_tap(c);
    float w[taps];
    I::weights(c.fraction, w);
    const float* from[taps];
    for (int a = 0; a < taps; ++a) {
      keep(first + a);
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
  // Returns the lowest and the highest of the first voxels that lanes read.
  static std::pair<std::int32_t, std::int32_t> reach(const sample_parameters<Pipeline>& sample, std::int32_t x0) {
    const int axis = loop_axes[sample.loops][2];
    const std::int32_t last = std::min(x0 + strip_width, sample.extents[2]) - 1;
    return std::minmax({first_tap(along_axis(sample, axis, x0)), first_tap(along_axis(sample, axis, last))});
  }

  // Calls use(first, std::integral_constant<int, count>) for blocks that cover begin to end - 1: of `Step` indices if
  // there are that many, and the last block then overlaps the one before.
  template <int Step, class Use>
  static SUTURE_INLINE void by_registers(std::int32_t begin, std::int32_t end, const Use& use) {
    if (end - begin >= Step) {
      std::int32_t i = begin;
      for (; i + Step < end; i += Step) use(i, std::integral_constant<int, Step>{});
      use(end - Step, std::integral_constant<int, Step>{});
    } else if constexpr (Step > lanes_at_once) {
      by_registers<Step / 2>(begin, end, use);
    } else {
      for (std::int32_t i = begin; i < end; ++i) use(i, std::integral_constant<int, 1>{});
    }
  }

  static SUTURE_INLINE void combine_run(const float* const (&from)[taps], const float (&w)[taps], std::int32_t count,
                                        float* out) {
    by_registers<lanes_at_once>(0, count, [&]<int Count>(std::int32_t first, std::integral_constant<int, Count>) {
      for (std::int32_t i = first; i < first + Count; ++i) {
        float v[taps];
        SUTURE_UNROLL
        for (int j = 0; j < taps; ++j) v[j] = from[j][i];
        out[i] = I::combine(v, w);
      }
    });
  }

  // Interpolates a run at the positions of the lanes.
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

  // Computes what is kept at source index i along the other axis: a run or, for lanes along y, what they pick from it.
  void keep(std::int32_t i) {
    const int slot = i & (taps - 1);
    if (index_in_slot_[slot] == i) return;
    index_in_slot_[slot] = i;
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

  // Finds the rows of the source that are read after those of this x, for prefetching: those of the next x. After the
  // last x of a column they belong to the next column, after the last column to the first one of the next brick.
  void look_ahead(std::int32_t x) {
    const bool ends_column = x + 1 == end_x_;
    const std::int32_t first = first_tap(along_axis(sample_, 2, ends_column && has_next_column_ ? begin_x_ : x + 1));
    ahead_count_ = 0;
    for (std::int32_t j = 0; j < taps; ++j) {
      const std::int32_t apart = first + j - first_x_;
      if (ends_column || apart < 0 || apart >= taps)
        ahead_[ahead_count_++] = apart * in_.stride[2] + (ends_column ? to_next_column_ * in_.stride[lanes_] : 0);
    }
  }

  // Reads the run at source index i along the other axis, and interpolates it along x.
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
    const auto functors = source_functors_of(sample_);
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
      constexpr std::int32_t line = 64 / sizeof(T);
      for (int j = 0; j < ahead_count_; ++j) {
        const T* const next = from[0] + ahead_[j];
        for (std::int32_t k = begin_; k < end_; k += line) __builtin_prefetch(next + k);
        __builtin_prefetch(next + (end_ - 1));
      }
      // The step fills a register: compilers use narrower registers for fewer voxels.
      constexpr int step = std::min(strip_width, int{lanes_at_once * 4 / sizeof(T)});
      by_registers<step>(begin_, end_, [&]<int Count>(std::int32_t first, std::integral_constant<int, Count>) {
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
  int lanes_;                     // the axis that lanes run along
  std::int32_t start_, count_;    // the source voxels of the run
  std::int32_t begin_, end_;      // the part of the run inside the source
  std::int32_t begin_x_, end_x_;  // the range of x of this column
  bool has_next_column_;
  std::int32_t to_next_column_;  // along the lanes, in voxels of the source
  std::int64_t ahead_[taps];     // from this row of the source to the next ones, in elements
  int ahead_count_ = 0;
  std::int32_t x_ = none, first_x_ = 0, index_in_slot_[taps];
  float weight_x_[taps];
  bool inside_[most];
  std::int64_t offset_[most];        // in elements; for voxels outside, of a readable one
  std::int32_t place_[strip_width];  // of the first voxel of each lane in the run
  alignas(lane_alignment) float weights_[taps][strip_width];
  alignas(lane_alignment) float rows_[taps][most];
};

}  // namespace suture::detail
