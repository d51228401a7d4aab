// SPDX-License-Identifier: Apache-2.0
// The stages after the fused part, on the CPU. A filter begins a pass over the patch, and so does what needs moments of
// what is before it; every other stage joins the pass before it, the fused part included, down to the store.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "cpu.hpp"
#include "fourier.hpp"
#include "strip_sums.hpp"
#include "strip_writer.hpp"

namespace suture::detail {

// The stages of one channel of one image.
template <class Out, class Pipeline>
class channel_stages {
  using S = staging<Pipeline>;
  static constexpr int count = S::count;
  using every_stage = std::make_integer_sequence<int, count>;

public:
  // Prepares the stages of a channel. With `with_last` false the last stage is not run and its input stays in the
  // buffer that it reads.
  channel_stages(const sample_parameters<Pipeline>& sample, const staged_tensor& t, std::int32_t sample_index,
                 std::int32_t channel, bool with_last)
      : sample_(sample),
        t_(t),
        n_(sample.extents),
        sample_index_(sample_index),
        channel_(channel),
        last_(with_last ? count : count - 1) {
    for (int k = 0; k < 3; ++k) place_[k] = t.data[k] + dense_offset(n_, channel, 0, 0, 0);
    from_ = to_ = place_[0];
    [&]<int... K>(std::integer_sequence<int, K...>) { (look_at<K>(), ...); }
    (every_stage{});
    for (int k = 0; k < last_; ++k) joins_[k] = !filters_[k] && (k == 0 || !(asked_[k - 1] || closes_[k - 1]));
    begin_pass(0, 0);
  }

  // The fused part hands over its strips here, says so of the sums of each of its parts, and then that it is done.
  void take(float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) const {
    leave<0>(v, z, y, x0, sums);
  }
  void give(strip_sums& part) {
    if (!emits_) return;
    const patch_sums& sums = part.finish();
    const std::lock_guard<std::mutex> lock(mutex_);
    settle(total_, sums);
  }
  void finish_pass() {
    if (emits_) t_.statistics[(end_ - 1) * t_.channels + channel_] = moments_of(total_);
    total_ = {};
  }

  // The passes behind the fused part.
  void run(const cpu& exec) {
    [&]<int... K>(std::integer_sequence<int, K...>) { (run_pass<K>(exec), ...); }
    (every_stage{});
  }

private:
  // The operations of a stage on what it reads, and on what its filter makes of that.
  template <int K>
  struct bound_stage {
    decltype(S::template taps<K>(std::declval<const sample_parameters<Pipeline>&>(),
                                 std::declval<const staged_tensor&>(), 0)) taps;
    decltype(S::template results<K>(std::declval<const sample_parameters<Pipeline>&>(),
                                    std::declval<const staged_tensor&>(), 0)) results;
  };
  template <class Stages>
  struct bound_stages;
  template <int... K>
  struct bound_stages<std::integer_sequence<int, K...>> {
    using type = std::tuple<std::optional<bound_stage<K>>...>;
  };

  template <int K>
  void look_at() {
    filters_[K] = closes_[K] = false;
    if constexpr (S::template filters<K>) {
      filters_[K] = S::template on<S::template filter<K>>(sample_, channel_);
      if constexpr (spectral_filter<typename S::template functor_t<S::template filter<K>>>) closes_[K] = filters_[K];
    }
    asked_[K] = S::template emits<K>(sample_, channel_);
    active_[K] = S::template changes_at<K>(sample_, channel_);
  }

  // Begins a pass over stages [first, end) and the stages that join them.
  void begin_pass(int first, int end) {
    while (joins_[end]) ++end;
    end_ = end;
    emits_ = end > 0 && end < count && asked_[end - 1];
    [&]<int... K>(std::integer_sequence<int, K...>) { (bind<K>(first <= K && K < end), ...); }
    (every_stage{});
  }
  template <int K>
  void bind(bool joined) {
    auto& stage = std::get<K>(stages_);
    stage.reset();
    if (joined)
      stage.emplace(
          bound_stage<K>{S::template taps<K>(sample_, t_, channel_), S::template results<K>(sample_, t_, channel_)});
  }
  template <int K>
  const bound_stage<K>& stage() const {
    return *std::get<K>(stages_);
  }

  along_x place(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return {voxel_at(n_, {sample_index_, channel_, z, y, x})};
  }

  // A strip through the stages of the pass from K on, and to where its results go.
  template <int K>
  void leave(float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) const {
    if constexpr (K + 1 < count) {
      if (K < end_ && active_[K]) apply_stage<K>(v, z, y, x0);
      leave<K + 1>(v, z, y, x0, sums);
    } else if (end_ == count) {
      apply_lanes(stage<K>().taps, v, place(z, y, x0), [](const float(&)[strip_width]) {});
      store(v, z, y, x0);
    } else {
      keep(v, z, y, x0, sums);
    }
  }
  // Passes on what the filter of stage K has made: to the output, or to the stages behind it.
  template <int K>
  void leave_filter(float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) const {
    if constexpr (K + 1 == count) {
      store(v, z, y, x0);
    } else {
      apply_lanes(stage<K>().results, v, place(z, y, x0), [](const float(&)[strip_width]) {});
      leave<K + 1>(v, z, y, x0, sums);
    }
  }
  template <int K>
  [[gnu::noinline]] void apply_stage(float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0) const {
    apply_lanes(stage<K>().taps, v, place(z, y, x0), [](const float(&)[strip_width]) {});
    apply_lanes(stage<K>().results, v, place(z, y, x0), [](const float(&)[strip_width]) {});
  }
  // The last operations, and out.
  void store(float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0) const {
    apply_lanes(stage<count - 1>().results, v, place(z, y, x0), [&]<class R>(const R(&finished)[strip_width]) {
      const target_tensor& out = t_.out;
      Out* const to = static_cast<Out*>(out.data) + channel_ * out.channel_stride + z * out.stride[0] +
                      y * out.stride[1] + x0 * out.stride[2];
      prefetch_strip(to + rows_ahead * out.stride[1], out.stride[2]);
      write_stored(to, out.stride[2], finished, std::min(strip_width, n_[2] - x0));
    });
  }
  void keep(const float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) const {
    const int width = std::min(strip_width, n_[2] - x0);
    float* const to = to_ + dense_offset(n_, 0, z, y, x0);
    prefetch_strip(to + std::int64_t{rows_ahead} * n_[2], 1);
    write_row(to, 1, v, width);
    if (emits_) sums.add(v, width);
  }

  template <int K>
  void run_pass(const cpu& exec) {
    if (K >= last_ || joins_[K]) return;
    begin_pass(K, K + 1);
    if (filters_[K]) to_ = from_ == place_[0] ? place_[1] : place_[0];
    if constexpr (S::template filters<K>) {
      if (filters_[K]) {
        run_filter<K>(exec, S::template functor<S::template filter<K>>(sample_));
        finish_pass();
        from_ = to_;
        return;
      }
    }
    run_rows(exec, [&](std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) {
      float v[strip_width];
      load_strip(from_ + dense_offset(n_, 0, z, y, x0), 1, n_[2] - x0, v);
      leave<K>(v, z, y, x0, sums);
    });
    finish_pass();
  }

  template <int K, class Filter>
  void run_filter(const cpu& exec, const Filter& filter) {
    if constexpr (separable_filter<Filter>) {
      run_separable<K>(exec, filter);
    } else if constexpr (pair_filter<Filter>) {
      run_pairs<K>(exec, filter);
    } else if constexpr (spectral_filter<Filter>) {
      run_spectral<K>(exec, filter);
    } else if constexpr (filters_rows<Filter>) {
      run_neighbors<K>(exec, filter);
    } else {
      using taps_type = decltype(stage<K>().taps);
      const tap_reader<std::remove_cvref_t<taps_type>> read{stage<K>().taps, from_, n_, sample_index_, channel_};
      run_rows(exec, [&](std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) {
        float v[strip_width];
        for (int l = 0; l < strip_width; ++l) v[l] = filter(read, n_, z, y, std::min(x0 + l, n_[2] - 1), channel_);
        leave_filter<K>(v, z, y, x0, sums);
      });
    }
  }

  // visit(z, y, x0, sums) for every strip.
  template <class Visit>
  void run_rows(const cpu& exec, const Visit& visit) {
    constexpr std::int32_t block = 128;
    const std::int64_t rows = static_cast<std::int64_t>(n_[0]) * n_[1];
    parallel_for(exec.threads, (rows + block - 1) / block, [&](std::int64_t b) {
      strip_sums sums;
      for (std::int64_t row = b * block; row < std::min(rows, (b + 1) * block); ++row)
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width)
          visit(static_cast<std::int32_t>(row / n_[1]), static_cast<std::int32_t>(row % n_[1]), x0, sums);
      give(sums);
    });
  }

  // A row as the filter of stage K sees it.
  template <int K>
  void read_row(std::int32_t z, std::int32_t y, float* row) const {
    const float* const from = from_ + dense_offset(n_, 0, z, y, 0);
    for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
      float v[strip_width];
      load_strip(from + x0, 1, n_[2] - x0, v);
      apply_lanes(stage<K>().taps, v, place(z, y, x0), [](const float(&)[strip_width]) {});
      write_row(row + x0, 1, v, std::min(strip_width, n_[2] - x0));
    }
  }
  std::size_t padded_row() const {
    return static_cast<std::size_t>((n_[2] + strip_width - 1) / strip_width) * strip_width;
  }

  // Applies the filter between neighbors along x, then y, then z, for few rows at a time, so that the intermediate rows
  // stay in the cache. A row or plane that two neighbors need is made once: `held` says which ones the two places hold.
  template <int K, class Filter>
  void run_pairs(const cpu& exec, const Filter& filter) {
    constexpr std::int32_t rows = 8;
    std::vector<voxel_pair> pairs[3];
    for (int axis = 0; axis < 3; ++axis)
      for (std::int32_t i = 0; i < n_[axis] || (axis == 2 && i % strip_width != 0); ++i)
        pairs[axis].push_back(filter.pair_at(axis, std::min(i, n_[axis] - 1), n_[axis], channel_));
    const std::size_t width = padded_row();
    std::vector<std::size_t> copied;  // along x: a few, which are put right after the others
    for (std::size_t x = 0; x < width; ++x)
      if (pairs[2][x].t == 0) copied.push_back(x);
    // The place that holds `wanted`, made by make(place) where none does, and not in the place of `other`.
    const auto find = [](std::int32_t(&held)[2], std::int32_t wanted, std::int32_t other, const auto& make) {
      if (held[0] == wanted || held[1] == wanted) return held[0] == wanted ? 0 : 1;
      const int free = held[0] == other ? 1 : 0;
      held[free] = wanted;
      make(free);
      return free;
    };
    const auto between_rows = [](const float* low, const float* high, float t, float* out) {
      for (int l = 0; l < strip_width; ++l) out[l] = between(low[l], high[l], t);
    };
    parallel_for(exec.threads, (n_[1] + rows - 1) / rows, [&](std::int64_t part) {
      const auto y0 = static_cast<std::int32_t>(part) * rows, y1 = std::min(y0 + rows, n_[1]);
      std::vector<float> memory((3 + 2 * rows) * width);
      float* const row = memory.data();
      float* const along_x[2] = {row + width, row + 2 * width};
      float* const planes[2] = {row + 3 * width, row + (3 + rows) * width};
      const auto make_row = [&](std::int32_t z, std::int32_t y, float* out) {
        read_row<K>(z, y, row);
        for (std::size_t x = 0; x < width; ++x) {
          const voxel_pair& p = pairs[2][x];
          out[x] = fma(p.t, row[p.second] - row[p.first], row[p.first]);
        }
        for (const std::size_t x : copied) out[x] = row[pairs[2][x].first];
      };
      const auto make_plane = [&](std::int32_t z, float* out) {
        std::int32_t held[2] = {-1, -1};
        for (std::int32_t y = y0; y < y1; ++y, out += width) {
          const voxel_pair& p = pairs[1][static_cast<std::size_t>(y)];
          const int low = find(held, p.first, p.second, [&](int i) { make_row(z, p.first, along_x[i]); });
          const int high = find(held, p.second, p.first, [&](int i) { make_row(z, p.second, along_x[i]); });
          for (std::size_t x = 0; x < width; x += strip_width)
            between_rows(along_x[low] + x, along_x[high] + x, p.t, out + x);
        }
      };
      strip_sums sums;
      std::int32_t held[2] = {-1, -1};
      for (std::int32_t z = 0; z < n_[0]; ++z) {
        const voxel_pair& p = pairs[0][static_cast<std::size_t>(z)];
        const float* const low = planes[find(held, p.first, p.second, [&](int i) { make_plane(p.first, planes[i]); })];
        const float* const high =
            planes[find(held, p.second, p.first, [&](int i) { make_plane(p.second, planes[i]); })];
        for (std::int32_t y = y0; y < y1; ++y)
          for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
            const auto at = static_cast<std::size_t>(y - y0) * width + static_cast<std::size_t>(x0);
            float v[strip_width];
            between_rows(low + at, high + at, p.t, v);
            leave_filter<K>(v, z, y, x0, sums);
          }
      }
      give(sums);
    });
  }

  // Applies a filter of the 27 voxels about each, for a few rows of a plane at a time. The rows about one are kept in
  // places that take turns along y, continued on both sides as the filter says.
  template <int K, class Filter>
  void run_neighbors(const cpu& exec, const Filter& filter) {
    constexpr std::int32_t rows_at_once = 32;
    const std::int32_t parts = (n_[1] + rows_at_once - 1) / rows_at_once;
    const std::size_t width = padded_row() + 2;
    parallel_for(exec.threads, std::int64_t{n_[0]} * parts, [&](std::int64_t part) {
      const auto z = static_cast<std::int32_t>(part / parts),
                 y0 = static_cast<std::int32_t>(part % parts) * rows_at_once;
      std::vector<float> memory(9 * width);
      const auto place_of = [&](std::int32_t plane, std::int32_t y) {  // y from -1 on
        return memory.data() + static_cast<std::size_t>(3 * plane + (y + 1) % 3) * width;
      };
      const auto read_rows = [&](std::int32_t y) {
        for (std::int32_t plane = 0; plane < 3; ++plane) {
          float* const row = place_of(plane, y) + 1;
          read_row<K>(filter.index(z + plane - 1, n_[0]), filter.index(y, n_[1]), row);
          row[-1] = row[filter.index(-1, n_[2])];
          row[n_[2]] = row[filter.index(n_[2], n_[2])];
        }
      };
      strip_sums sums;
      read_rows(y0 - 1);
      read_rows(y0);
      for (std::int32_t y = y0; y < std::min(y0 + rows_at_once, n_[1]); ++y) {
        read_rows(y + 1);
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          const float* rows[9];
          for (std::int32_t i = 0; i < 9; ++i) rows[i] = place_of(i / 3, y + i % 3 - 1) + x0;
          float v[strip_width];
          filter.filter_row(rows, v);
          leave_filter<K>(v, z, y, x0, sums);
        }
      }
      give(sums);
    });
  }

  // Applies the filter into the other buffer; no other step of the stage follows.
  template <int K, class Filter>
  void run_spectral(const cpu& exec, const Filter& filter) {
    const auto load_row = [&](std::int32_t z, std::int32_t y, float* row) { read_row<K>(z, y, row); };
    if constexpr (spectral_mask<Filter>)
      filter_spectrum(exec, filter, n_, channel_, load_row, to_, place_[2]);
    else
      add_spike(exec, filter, n_, channel_, load_row, to_, place_[2]);
  }

  // Filters along x into the other buffer and along y back, plane by plane, then along z.
  template <int K, class Filter>
  void run_separable(const cpu& exec, const Filter& filter) {
    float w[3][2 * largest_radius + 1];
    std::int32_t r[3];
    for (int k = 0; k < 3; ++k) {
      r[k] = filter.radius(k, channel_);
      filter.weights_along(k, channel_, w[k]);
    }
    const std::int64_t plane = static_cast<std::int64_t>(n_[1]) * n_[2];
    float* const sums_along_y = blending_filter<Filter> ? place_[2] : from_;
    parallel_for(exec.threads, n_[0], [&](std::int64_t z) {
      std::vector<float> row(padded_row() + 2 * static_cast<std::size_t>(r[2]));
      float* const inner = row.data() + r[2];
      float* const along_x = to_ + z * plane;
      for (std::int32_t y = 0; y < n_[1]; ++y) {
        read_row<K>(static_cast<std::int32_t>(z), y, inner);
        for (std::int32_t x = 1; x <= r[2]; ++x) {
          const std::int32_t before = filter.index(-x, n_[2]), after = filter.index(n_[2] - 1 + x, n_[2]);
          inner[-x] = before < 0 ? 0.0f : inner[before];
          inner[n_[2] - 1 + x] = after < 0 ? 0.0f : inner[after];
        }
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          const float* taps[2 * largest_radius + 1];
          for (std::int32_t c = 0; c <= 2 * r[2]; ++c) taps[c] = inner + x0 + c - r[2];
          float sum[strip_width];
          weighted_sum(w[2], taps, 2 * r[2] + 1, sum);
          write_row(along_x + y * n_[2] + x0, 1, sum, std::min(strip_width, n_[2] - x0));
        }
      }
      for (std::int32_t y = 0; y < n_[1]; ++y)
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          float sum[strip_width];
          sum_rows(w[1], r[1], filter, y, n_[1], along_x, n_[2], x0, sum);
          write_row(sums_along_y + z * plane + y * n_[2] + x0, 1, sum, std::min(strip_width, n_[2] - x0));
        }
    });
    run_rows(exec, [&](std::int32_t z, std::int32_t y, std::int32_t x0, strip_sums& sums) {
      float v[strip_width];
      sum_rows(w[0], r[0], filter, z, n_[0], sums_along_y + y * n_[2], plane, x0, v);
      if constexpr (blending_filter<Filter>) {
        float center[strip_width];
        load_strip(from_ + dense_offset(n_, 0, z, y, x0), 1, n_[2] - x0, center);
        apply_lanes(stage<K>().taps, center, place(z, y, x0), [](const float(&)[strip_width]) {});
        for (int l = 0; l < strip_width; ++l) v[l] = filter.blend(center[l], v[l], channel_);
      }
      leave_filter<K>(v, z, y, x0, sums);
    });
  }

  // Adds N taps in one loop over the lanes, so that their sums stay in registers.
  template <int N>
  static void add_weighted(const float* w, const float* const* taps, float (&sum)[strip_width]) {
    for (int l = 0; l < strip_width; ++l) {
      float s = sum[l];
      SUTURE_UNROLL
      for (int k = 0; k < N; ++k) s = fma(w[k], taps[k][l], s);
      sum[l] = s;
    }
  }
  static void weighted_sum(const float* w, const float* const* taps, std::int32_t tap_count,
                           float (&sum)[strip_width]) {
    for (int l = 0; l < strip_width; ++l) sum[l] = 0;
    for (; tap_count >= 4; tap_count -= 4, w += 4, taps += 4) add_weighted<4>(w, taps, sum);
    if (tap_count == 3) add_weighted<3>(w, taps, sum);
    if (tap_count == 2) add_weighted<2>(w, taps, sum);
    if (tap_count == 1) add_weighted<1>(w, taps, sum);
  }
  // The weighted sum of rows i - r .. i + r of those that lie `step` apart.
  template <class Filter>
  void sum_rows(const float* w, std::int32_t r, const Filter& filter, std::int32_t i, std::int32_t extent,
                const float* rows, std::int64_t step, std::int32_t x0, float (&sum)[strip_width]) const {
    const float* taps[2 * largest_radius + 1];
    float weights[2 * largest_radius + 1];
    std::int32_t tap_count = 0;
    for (std::int32_t k = -r; k <= r; ++k) {
      const std::int32_t j = filter.index(i + k, extent);
      if (j < 0) continue;
      weights[tap_count] = w[k + r];
      taps[tap_count++] = rows + j * step + x0;
    }
    if (x0 + strip_width <= n_[2]) {
      weighted_sum(weights, taps, tap_count, sum);
      return;
    }
    for (int l = 0; l < strip_width; ++l) {
      sum[l] = 0;
      for (std::int32_t k = 0; k < tap_count; ++k)
        sum[l] = fma(weights[k], taps[k][std::min(l, n_[2] - x0 - 1)], sum[l]);
    }
  }

  static constexpr std::int32_t rows_ahead = 2;  // of those that stores would wait for

  const sample_parameters<Pipeline>& sample_;
  const staged_tensor& t_;
  const std::int32_t (&n_)[3];
  const std::int32_t sample_index_, channel_;
  const int last_;  // behind the last stage to be done
  float* place_[3];
  float *from_, *to_;  // where the pass reads and where it keeps its results
  // Flags of each stage: filters, lets nothing join it, must leave the moments of its results, does anything, joins the
  // pass before.
  bool filters_[count], closes_[count], asked_[count], active_[count], joins_[count + 1] = {};
  int end_ = 0;  // behind the last stage of the pass
  bool emits_ = false;
  typename bound_stages<every_stage>::type stages_;  // those of the pass
  patch_sums total_{};
  std::mutex mutex_;
};

// The stages of every image of a batch.
template <class Evaluator>
class batch_stages {
  using P = typename Evaluator::pipeline_type;
  template <std::size_t B>
  using stages_of = channel_stages<typename Evaluator::template binding_type<B>::output, P>;
  template <std::size_t... B>
  static std::tuple<std::deque<stages_of<B>>...> lists(std::index_sequence<B...>);
  using every_pair = std::make_index_sequence<Evaluator::pairs>;

public:
  batch_stages(const Evaluator& e, std::size_t samples, bool with_last) {
    each_pair([&]<std::size_t B>(auto& list) {
      for (std::size_t i = 0; i < samples; ++i) {
        const auto& r = e.records[i];
        first_[B].push_back(list.size());
        for (std::int32_t channel = 0; channel < r.staged[B].channels; ++channel)
          list.emplace_back(r.sample, r.staged[B], static_cast<std::int32_t>(i), channel, with_last);
      }
    });
  }

  // Part of the fused work on one sample, which it splits into strips.
  class part {
  public:
    part(batch_stages& all, std::size_t sample) : all_(all), sample_(sample) {
      all.each_pair([&]<std::size_t B>(auto& list) {
        const std::size_t first = all.first_[B][sample];
        const std::size_t end = sample + 1 < all.first_[B].size() ? all.first_[B][sample + 1] : list.size();
        sums_[B] = std::vector<strip_sums>(end - first);
      });
    }
    template <std::size_t B>
    void take(float (&v)[strip_width], std::int32_t channel, std::int32_t z, std::int32_t y, std::int32_t x0) {
      const auto k = static_cast<std::size_t>(channel);
      std::get<B>(all_.lists_)[all_.first_[B][sample_] + k].take(v, z, y, x0, sums_[B][k]);
    }
    void finish() {
      all_.each_pair([&]<std::size_t B>(auto& list) {
        for (std::size_t k = 0; k < sums_[B].size(); ++k) list[all_.first_[B][sample_] + k].give(sums_[B][k]);
      });
    }

  private:
    batch_stages& all_;
    std::size_t sample_;
    std::vector<strip_sums> sums_[Evaluator::pairs];
  };

  // Runs everything that follows the fused part.
  void run(const cpu& exec) {
    each_pair([&]<std::size_t B>(auto& list) {
      for (auto& stages : list) {
        stages.finish_pass();
        stages.run(exec);
      }
    });
  }

private:
  // f.operator()<B>(list) for the images among the bound pairs.
  template <class F>
  void each_pair(const F& f) {
    const auto one = [&]<std::size_t B>() {
      if constexpr (!Evaluator::template binding_type<B>::is_label) f.template operator()<B>(std::get<B>(lists_));
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
    (every_pair{});
  }

  decltype(lists(every_pair{})) lists_;
  std::vector<std::size_t> first_[Evaluator::pairs];  // of each sample in the lists
};

// Stages of a pipeline that has none.
struct no_batch_stages {
  struct part {
    part(no_batch_stages&, std::size_t) {}
    void finish() {}
  };
};

}  // namespace suture::detail
