// SPDX-License-Identifier: Apache-2.0
// The stages after the fused part, on the CPU. A filter begins a pass over the patch, and so does a stage that needs
// the moments of its input or follows a filter of k-space. Every other stage runs within the pass before it, which may
// be the fused part.
// Variables z, y and x number planes, rows and lanes of the loops of the sample (loop_order.hpp), whichever axes these
// run along. Filters act along the axes x, then y, then z in every order of loops.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "cpu.hpp"
#include "fourier.hpp"
#include "lane_positions.hpp"
#include "pair_rows.hpp"
#include "separable_sums.hpp"
#include "strip_sums.hpp"
#include "strip_writer.hpp"
#include "tuning.hpp"

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
        axes_(loop_axes[sample.loops]),
        sample_index_(sample_index),
        channel_(channel),
        last_(with_last ? count : count - 1) {
    for (int k = 0; k < 3; ++k) {
      buffers_[k] = t.data[k] + dense_offset(n_, channel, 0, 0, 0);
      extents_[axes_[k]] = n_[k];
    }
    from_ = to_ = buffers_[0];
    each_stage([&]<int K>() {
      filters_[K] = false;
      if constexpr (S::template filters<K>) filters_[K] = S::template on<S::template filter<K>>(sample_, channel_);
      closes_[K] = filters_[K] && spectral_filter<typename S::template filter_t<K>>;
      needs_moments_[K] = S::template emits<K>(sample_, channel_);
      active_[K] = S::template changes_at<K>(sample_, channel_);
    });
    for (int k = 0; k < last_; ++k) joins_[k] = !filters_[k] && (k == 0 || !(needs_moments_[k - 1] || closes_[k - 1]));
    begin_pass(0, 0);
  }

  // The fused part calls receive() for each strip and add_sums() with the sums of each of its parts. finish_pass() ends
  // it.
  void receive(float (&v)[strip_width], const voxel_index& at, strip_sums& sums) const { pass_on<0>(v, at, sums); }
  void add_sums(strip_sums& part) {
    if (!emits_) return;
    const patch_sums& sums = part.finish();
    const std::lock_guard<std::mutex> lock(mutex_);
    merge(total_, sums);
  }
  void finish_pass() {
    if (emits_) t_.statistics[(end_ - 1) * t_.channels + channel_] = moments_of(total_);
    total_ = {};
  }

  bool is_small() const { return std::int64_t{n_[0]} * n_[1] * n_[2] <= small_channel; }

  // Runs the passes after the fused part.
  void run(const cpu& exec) {
    each_stage([&]<int K>() { run_pass<K>(exec); });
  }

private:
  // The operations of a stage on its input, and on the result of its filter.
  template <int K>
  struct bound_stage {
    decltype(S::template before_filter<K>(std::declval<const sample_parameters<Pipeline>&>(),
                                          std::declval<const staged_tensor&>(), 0)) before_filter;
    decltype(S::template after_filter<K>(std::declval<const sample_parameters<Pipeline>&>(),
                                         std::declval<const staged_tensor&>(), 0)) after_filter;
  };
  template <int... K>
  static std::tuple<std::optional<bound_stage<K>>...> bound_stages(std::integer_sequence<int, K...>);
  // Calls use.operator()<K>() for every stage.
  template <class Use>
  static void each_stage(const Use& use) {
    [&]<int... K>(std::integer_sequence<int, K...>) { (use.template operator()<K>(), ...); }
    (every_stage{});
  }

  // Begins a pass over stages [first, end) and the stages that join them.
  void begin_pass(int first, int end) {
    while (joins_[end]) ++end;
    end_ = end;
    emits_ = end > 0 && end < count && needs_moments_[end - 1];
    each_stage([&]<int K>() {
      auto& stage = std::get<K>(stages_);
      stage.reset();
      if (first <= K && K < end)
        stage.emplace(bound_stage<K>{S::template before_filter<K>(sample_, t_, channel_),
                                     S::template after_filter<K>(sample_, t_, channel_)});
    });
  }
  template <int K>
  const bound_stage<K>& stage() const {
    return *std::get<K>(stages_);
  }

  int loop_of(int axis) const { return loop_along(sample_.loops, axis); }
  int lanes_from(std::int32_t x0) const { return std::min(strip_width, n_[2] - x0); }
  voxel_index index(std::int32_t z, std::int32_t y, std::int32_t x0) const {
    return {sample_index_, channel_, z, y, x0};
  }
  // The offset of a strip in a buffer between stages.
  std::int64_t offset_of(const voxel_index& at) const { return dense_offset(n_, 0, at.z, at.y, at.x); }
  void load(const voxel_index& at, float (&v)[strip_width]) const {
    load_strip(from_ + offset_of(at), 1, n_[2] - at.x, v);
  }

  // Applies the functors of a pack to a strip; `done` receives the result.
  template <class Pack, class Done>
  SUTURE_INLINE void apply_at(const Pack& functors, float (&v)[strip_width], const voxel_index& at,
                              const Done& done) const {
    with_place<Pack>(sample_, at, [&](const auto& place) { apply_lanes(functors, v, place, done); });
  }
  template <class Pack>
  SUTURE_INLINE void apply_at(const Pack& functors, float (&v)[strip_width], const voxel_index& at) const {
    apply_at(functors, v, at, [](const float(&)[strip_width]) {});
  }

  // Passes a strip through the stages of the pass from K on, and stores the result.
  template <int K>
  void pass_on(float (&v)[strip_width], const voxel_index& at, strip_sums& sums) const {
    if constexpr (K + 1 < count) {
      if (K < end_ && active_[K]) apply_stage<K>(v, at);
      pass_on<K + 1>(v, at, sums);
    } else if (end_ == count) {
      apply_at(stage<K>().before_filter, v, at);
      store(v, at);
    } else {
      keep(v, at, sums);
    }
  }
  // Passes on the result of the filter of stage K: to the output, or to the stages after it.
  template <int K>
  void pass_on_filtered(float (&v)[strip_width], const voxel_index& at, strip_sums& sums) const {
    if constexpr (K + 1 == count) {
      store(v, at);
    } else {
      apply_at(stage<K>().after_filter, v, at);
      pass_on<K + 1>(v, at, sums);
    }
  }
  template <int K>
  [[gnu::noinline]] void apply_stage(float (&v)[strip_width], const voxel_index& at) const {
    apply_at(stage<K>().before_filter, v, at);
    apply_at(stage<K>().after_filter, v, at);
  }
  // Applies the last operations and stores.
  void store(float (&v)[strip_width], const voxel_index& at) const {
    apply_at(stage<count - 1>().after_filter, v, at, [&]<class R>(const R(&finished)[strip_width]) {
      const target_tensor& out = t_.out;
      Out* const to = element_at<Out>(out, at);
      prefetch_strip(to + rows_ahead * out.stride[1], out.stride[2]);
      write_stored(to, out.stride[2], finished, lanes_from(at.x));
    });
  }
  void keep(const float (&v)[strip_width], const voxel_index& at, strip_sums& sums) const {
    const int width = lanes_from(at.x);
    float* const to = to_ + offset_of(at);
    prefetch_strip(to + std::int64_t{rows_ahead} * n_[2], 1);
    write_row(to, 1, v, width);
    if (emits_) sums.add(v, width);
  }

  template <int K>
  void run_pass(const cpu& exec) {
    if (K >= last_ || joins_[K]) return;
    begin_pass(K, K + 1);
    if (filters_[K]) to_ = from_ == buffers_[0] ? buffers_[1] : buffers_[0];
    if constexpr (S::template filters<K>) {
      if (filters_[K]) {
        run_filter<K>(exec, S::template functor<S::template filter<K>>(sample_));
        finish_pass();
        from_ = to_;
        return;
      }
    }
    run_rows(exec, [&](const voxel_index& at, strip_sums& sums) {
      float v[strip_width];
      load(at, v);
      pass_on<K>(v, at, sums);
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
    } else if constexpr (filters_runs<Filter>) {
      run_neighbors<K>(exec, filter);
    } else {
      using functors_type = std::remove_cvref_t<decltype(stage<K>().before_filter)>;
      const filter_input<functors_type> reader{stage<K>().before_filter, from_, extents_, sample_index_, channel_};
      const dense_patch patch(extents_, axes_);
      const auto read = [&](std::int32_t z, std::int32_t y, std::int32_t x) {
        return reader.applied(from_[z * patch.step[0] + y * patch.step[1] + x * patch.step[2]], z, y, x);
      };
      run_rows(exec, [&](const voxel_index& at, strip_sums& sums) {
        float v[strip_width];
        const along_loops lanes(sample_, at);
        const voxel& first = lanes.first;
        const std::int32_t last = n_[2] - 1 - at.x;
        if (axes_[2] == 2)  // a loop in which z and y stay the same
          for (int l = 0; l < strip_width; ++l)
            v[l] = filter(read, extents_, first.z, first.y, at.x + std::min(l, last), channel_);
        else
          for (int l = 0; l < strip_width; ++l) {
            const voxel i = lanes(std::min(l, last));
            v[l] = filter(read, extents_, i.z, i.y, i.x, channel_);
          }
        pass_on_filtered<K>(v, at, sums);
      });
    }
  }

  // Calls visit(place, sums) for every strip.
  template <class Visit>
  void run_rows(const cpu& exec, const Visit& visit) {
    constexpr std::int32_t block = rows_of_part;
    const std::int64_t rows = static_cast<std::int64_t>(n_[0]) * n_[1];
    parallel_for(exec.threads, (rows + block - 1) / block, [&](std::int64_t b) {
      strip_sums sums;
      for (std::int64_t row = b * block; row < std::min(rows, (b + 1) * block); ++row)
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width)
          visit(index(static_cast<std::int32_t>(row / n_[1]), static_cast<std::int32_t>(row % n_[1]), x0), sums);
      add_sums(sums);
    });
  }

  // Reads a row of the input and applies the operations of stage K before its filter.
  template <int K>
  void read_row(std::int32_t z, std::int32_t y, float* row) const {
    for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
      float v[strip_width];
      load(index(z, y, x0), v);
      apply_at(stage<K>().before_filter, v, index(z, y, x0));
      write_row(row + x0, 1, v, lanes_from(x0));
    }
  }
  std::size_t padded_row() const { return whole_strips(n_[2]); }

  // Interpolates along x, then y, then z, for few rows at a time, so that the rows between steps stay in the cache.
  template <int K, class Filter>
  void run_pairs(const cpu& exec, const Filter& filter) {
    constexpr std::int32_t rows = 8;
    const std::size_t width = padded_row();
    std::vector<voxel_pair> pairs[3];  // of planes, rows and lanes
    for (int j = 0; j < 3; ++j)
      for (std::int32_t i = 0; i < n_[j] || (j == 2 && i % strip_width != 0); ++i)
        pairs[j].push_back(filter.pair_at(axes_[j], std::min(i, n_[j] - 1), n_[j], channel_));
    parallel_for(exec.threads, (n_[1] + rows - 1) / rows, [&](std::int64_t part) {
      const auto y0 = static_cast<std::int32_t>(part) * rows, y1 = std::min(y0 + rows, n_[1]);
      pair_rows between_steps(pairs, {loop_of(2), loop_of(1), loop_of(0)}, y0, y1);
      const auto read = [&](std::int32_t z, std::int32_t y, float* row) { read_row<K>(z, y, row); };
      std::vector<float> row(width);
      strip_sums sums;
      for (std::int32_t z = 0; z < n_[0]; ++z)
        for (std::int32_t y = y0; y < y1; ++y) {
          between_steps.make(z, y, read, row.data());
          for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
            float v[strip_width];
            copy_strip(v, row.data() + x0);
            pass_on_filtered<K>(v, index(z, y, x0), sums);
          }
        }
      add_sums(sums);
    });
  }

  // Applies a filter of the 27 voxels around each voxel, for a few rows of a plane at a time. The nine rows around a
  // row are kept in buffers that rotate, extended by one voxel on both sides by the rule of the filter.
  template <int K, class Filter>
  void run_neighbors(const cpu& exec, const Filter& filter) {
    const std::int32_t parts = (n_[1] + rows_of_part - 1) / rows_of_part;
    const std::size_t width = padded_row() + 2;
    parallel_for(exec.threads, std::int64_t{n_[0]} * parts, [&](std::int64_t part) {
      const auto z = static_cast<std::int32_t>(part / parts),
                 y0 = static_cast<std::int32_t>(part % parts) * rows_of_part;
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
      for (std::int32_t y = y0; y < std::min(y0 + rows_of_part, n_[1]); ++y) {
        read_rows(y + 1);
        // The offset of a neighbor is the sum of those of its plane, row and lane, each of which is along z, y or x.
        const std::ptrdiff_t of_loops[3][3] = {
            {0, place_of(1, 0) - place_of(0, 0), place_of(2, 0) - place_of(0, 0)},
            {place_of(0, y - 1) - memory.data(), place_of(0, y) - memory.data(), place_of(0, y + 1) - memory.data()},
            {0, 1, 2}};
        const std::ptrdiff_t(&along_z)[3] = of_loops[loop_of(0)];
        const std::ptrdiff_t(&along_y)[3] = of_loops[loop_of(1)];
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          const float* rows[9];
          for (int i = 0; i < 9; ++i) rows[i] = memory.data() + along_z[i / 3] + along_y[i % 3] + x0;
          float v[strip_width];
          filter.filter_run(rows, of_loops[loop_of(2)], v);
          pass_on_filtered<K>(v, index(z, y, x0), sums);
        }
      }
      add_sums(sums);
    });
  }

  // Applies the filter from one buffer to the other. No operation of the stage follows a filter of k-space.
  template <int K, class Filter>
  void run_spectral(const cpu& exec, const Filter& filter) {
    const auto load_row = [&](std::int32_t z, std::int32_t y, float* row) { read_row<K>(z, y, row); };
    const dense_patch patch(extents_, axes_);
    if constexpr (spectral_mask<Filter>)
      filter_spectrum(exec, filter, patch, channel_, load_row, to_, buffers_[2]);
    else
      add_spike(exec, filter, patch, channel_, load_row, to_, buffers_[2]);
  }

  // Sums along x, then y, then z, in two passes: up to the sums across planes, and from these on.
  template <int K, class Filter>
  void run_separable(const cpu& exec, const Filter& filter) {
    const separable_sums<Filter> sums_of(filter, n_, axes_, channel_);
    const std::int64_t plane = static_cast<std::int64_t>(n_[1]) * n_[2];
    const auto comes_before = [&](int j, int other) { return axes_[j] > axes_[other]; };  // x, then y, then z
    const bool rows = comes_before(1, 0), lanes = comes_before(2, 0), lanes_first = comes_before(2, 1);
    const sums_in_plane before{rows, lanes && rows && lanes_first, lanes && !(rows && lanes_first)};
    const sums_in_plane behind{!rows, !lanes && !rows && lanes_first, !lanes && (rows || !lanes_first)};
    const auto pass_on_sum = [&](float(&v)[strip_width], const voxel_index& at, strip_sums& sums) {
      if constexpr (blending_filter<Filter>) {
        float center[strip_width];
        load(at, center);
        apply_at(stage<K>().before_filter, center, at);
        for (int l = 0; l < strip_width; ++l) v[l] = filter.blend(center[l], v[l], channel_);
      }
      pass_on_filtered<K>(v, at, sums);
    };
    if (n_[0] == 1 && rows && lanes) {  // one plane; each part also filters the rows around it
      const std::int32_t part_rows = thread_count(exec.threads) == 1 ? n_[1] : rows_of_part;
      parallel_for(exec.threads, (n_[1] + part_rows - 1) / part_rows, [&](std::int64_t part) {
        const auto y0 = static_cast<std::int32_t>(part) * part_rows;
        strip_sums sums;
        sums_of.plane(
            before, y0, std::min(y0 + part_rows, n_[1]), [&](std::int32_t y, float* row) { read_row<K>(0, y, row); },
            [&](const float(&sum)[strip_width], std::int32_t y, std::int32_t x0) {
              float v[strip_width];
              sums_of.across(0, 0, sum, 0, 0, v, true);
              pass_on_sum(v, index(0, y, x0), sums);
            });
        add_sums(sums);
      });
      return;
    }
    const float* sums_of_planes = from_;
    if (rows || lanes || S::template changes_before_filter<K>(sample_, channel_)) {
      float* const to = blending_filter<Filter> ? buffers_[2] : from_;
      parallel_for(exec.threads, n_[0], [&](std::int64_t z) {
        sums_of.plane(
            before, 0, n_[1], [&](std::int32_t y, float* row) { read_row<K>(static_cast<std::int32_t>(z), y, row); },
            [&](const float(&sum)[strip_width], std::int32_t y, std::int32_t x0) {
              write_row(to + z * plane + std::int64_t{y} * n_[2] + x0, 1, sum, lanes_from(x0));
            });
      });
      sums_of_planes = to;
    }
    const auto sum_planes = [&](std::int32_t z, std::int32_t y, std::int32_t x0, float(&v)[strip_width]) {
      sums_of.across(0, z, sums_of_planes + std::int64_t{y} * n_[2], plane, x0, v);
    };
    if (rows && lanes) {
      run_rows(exec, [&](const voxel_index& at, strip_sums& sums) {
        float v[strip_width];
        sum_planes(at.z, at.y, at.x, v);
        pass_on_sum(v, at, sums);
      });
      return;
    }
    parallel_for(exec.threads, n_[0], [&](std::int64_t i) {
      const auto z = static_cast<std::int32_t>(i);
      strip_sums sums;
      sums_of.plane(
          behind, 0, n_[1],
          [&](std::int32_t y, float* row) {
            for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
              float v[strip_width];
              sum_planes(z, y, x0, v);
              copy_strip(row + x0, v);
            }
          },
          [&](float(&v)[strip_width], std::int32_t y, std::int32_t x0) { pass_on_sum(v, index(z, y, x0), sums); });
      add_sums(sums);
    });
  }

  const sample_parameters<Pipeline>& sample_;
  const staged_tensor& t_;
  const std::int32_t (&n_)[3];     // planes, rows and lanes
  const std::uint8_t (&axes_)[3];  // the axes that they run along
  std::int32_t extents_[3] = {};   // of z, y and x
  const std::int32_t sample_index_, channel_;
  const int last_;  // one past the last stage
  float* buffers_[3];
  float *from_, *to_;  // input and results of the pass
  // Flags of each stage: it has a filter, no stage may join it, its moments are needed, it is active, it joins the pass
  // before.
  bool filters_[count], closes_[count], needs_moments_[count], active_[count], joins_[count + 1] = {};
  int end_ = 0;  // one past the last stage of the pass
  bool emits_ = false;
  decltype(bound_stages(every_stage{})) stages_;  // those of the pass
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

public:
  batch_stages(const Evaluator& e, std::size_t samples, bool with_last) {
    each_pair<Evaluator, false>([&]<std::size_t B>() {
      auto& list = std::get<B>(lists_);
      for (std::size_t i = 0; i < samples; ++i) {
        const auto& r = e.records[i];
        first_[B].push_back(list.size());
        for (std::int32_t channel = 0; channel < r.staged[B].channels; ++channel)
          list.emplace_back(r.sample, r.staged[B], static_cast<std::int32_t>(i), channel, with_last);
      }
    });
  }

  // Receives the strips of one brick of the fused part, and sums them by itself; finish() adds its sums to the others.
  class part {
  public:
    part(batch_stages& all, std::size_t sample) : all_(all), sample_(sample) {
      each_pair<Evaluator, false>([&]<std::size_t B>() {
        const std::size_t first = all.first_[B][sample];
        const std::size_t end =
            sample + 1 < all.first_[B].size() ? all.first_[B][sample + 1] : std::get<B>(all.lists_).size();
        sums_[B] = std::vector<strip_sums>(end - first);
      });
    }
    template <std::size_t B>
    void receive(float (&v)[strip_width], const voxel_index& at) {
      const auto k = static_cast<std::size_t>(at.channel);
      std::get<B>(all_.lists_)[all_.first_[B][sample_] + k].receive(v, at, sums_[B][k]);
    }
    void finish() {
      each_pair<Evaluator, false>([&]<std::size_t B>() {
        for (std::size_t k = 0; k < sums_[B].size(); ++k)
          std::get<B>(all_.lists_)[all_.first_[B][sample_] + k].add_sums(sums_[B][k]);
      });
    }

  private:
    batch_stages& all_;
    std::size_t sample_;
    std::vector<strip_sums> sums_[Evaluator::pairs];
  };

  // Runs everything after the fused part. If there are many small channels, one thread processes each of them.
  void run(const cpu& exec) {
    each_pair<Evaluator, false>([&]<std::size_t B>() {
      auto& list = std::get<B>(lists_);
      const auto count = static_cast<std::int64_t>(list.size());
      const bool whole = count >= channels_for_thread * thread_count(exec.threads) &&
                         std::all_of(list.begin(), list.end(), [](const auto& c) { return c.is_small(); });
      parallel_for(whole ? exec.threads : 1, count, [&](std::int64_t k) {
        auto& stages = list[static_cast<std::size_t>(k)];
        stages.finish_pass();
        stages.run(whole ? cpu{.threads = 1} : exec);
      });
    });
  }

private:
  decltype(lists(std::make_index_sequence<Evaluator::pairs>{})) lists_;
  std::vector<std::size_t> first_[Evaluator::pairs];  // the first channel of each sample in the lists
};

// Stages of a pipeline that has none.
struct no_batch_stages {
  struct part {
    part(no_batch_stages&, std::size_t) {}
    void finish() {}
  };
};

}  // namespace suture::detail
