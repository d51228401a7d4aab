// SPDX-License-Identifier: Apache-2.0
// The stages after the fused part, on the CPU.
#pragma once

#include <mutex>
#include <vector>

#include "fourier.hpp"
#include "parallel.hpp"
#include "strip_writer.hpp"

namespace suture::detail {

inline void settle(patch_sums& to, const patch_sums& part) {
  to.sums.merge(part.sums);
  to.count += part.count;
  to.excluded += part.excluded;
  to.least_complement = std::max(to.least_complement, part.least_complement);
  to.greatest = std::max(to.greatest, part.greatest);
}

inline void add_alone(patch_sums& to, float value) {
  partial_sums p;
  add_value(p, value, to.sums);
  to.sums.take(p);
}

// Any values, one by one.
inline void add_each(patch_sums& to, const float* values, int count) {
  for (int l = 0; l < count; ++l) {
    if (!counted<float>::finite(values[l])) {
      ++to.excluded;
      continue;
    }
    ++to.count;
    const std::uint32_t key = counted<float>::key(values[l]);
    to.least_complement = std::max(to.least_complement, ~key);
    to.greatest = std::max(to.greatest, key);
    add_alone(to, values[l]);
  }
}

// A strip of values at once, as multiples of 2^-40 of the power of two above the largest: their sum, and the sums of
// the products of their upper and lower 20 bits, fit doubles without rounding. A strip that holds a value which is no
// such multiple is added value by value.
inline void add_row(patch_sums& to, const float* values, int count) {
  if (count < strip_width) return add_each(to, values, count);
  std::uint32_t largest = 0, least_complement = 0, greatest = 0;
  for (int l = 0; l < strip_width; ++l) {
    const std::uint32_t u = float_bits(values[l] + 0.0f);
    const std::uint32_t key = u ^ (static_cast<std::uint32_t>(static_cast<std::int32_t>(u) >> 31) | 0x80000000u);
    largest = std::max(largest, u & 0x7fffffffu);
    least_complement = std::max(least_complement, ~key);
    greatest = std::max(greatest, key);
  }
  if (largest >= 0x7f800000u) return add_each(to, values, count);

  // Units of 2^(place - 149), where 2^-149 is the least subnormal.
  const std::int32_t place = std::max(static_cast<std::int32_t>(largest >> 23) - 17, 0);
  const double scale = power_of_two(149 - place);
  constexpr double whole_numbers = 0x1.8p52, upper = 0x1p20;
  double sum = 0, high_high = 0, high_low = 0, low_low = 0, fractions = 0;
  for (int l = 0; l < strip_width; ++l) {
    const double units = static_cast<double>(values[l]) * scale;
    const double whole = (units + whole_numbers) - whole_numbers;
    const double high = (units * (1 / upper) + whole_numbers) - whole_numbers;
    const double low = fma(high, -upper, whole);
    fractions += whole == units ? 0.0 : 1.0;
    sum += whole;
    high_high = fma(high, high, high_high);
    high_low = fma(high, low, high_low);
    low_low = fma(low, low, low_low);
  }
  if (fractions != 0) return add_each(to, values, count);
  to.count += strip_width;
  to.least_complement = std::max(to.least_complement, least_complement);
  to.greatest = std::max(to.greatest, greatest);
  const auto exact = [](double d) { return static_cast<int128>(static_cast<std::int64_t>(d)); };
  const int128 squares = exact(high_high) * (int128{1} << 40) + exact(high_low) * (1 << 21) + exact(low_low);
  to.sums.take(exact(sum) * (int128{1} << (place & 31)), place >> 5, static_cast<uint128>(squares) << (2 * place & 31),
               2 * place >> 5);
}

// Stage K of one channel of one image.
template <int K, class Out, class Pipeline>
class channel_stage {
  using S = staging<Pipeline>;
  static constexpr bool is_last = K + 1 == S::count;

public:
  channel_stage(const item<Pipeline>& sample, const staged_tensor& t, std::int32_t number, std::int32_t channel)
      : sample_(sample), t_(t), n_(sample.extents), number_(number), channel_(channel) {
    const std::int64_t offset = dense_offset(n_, channel, 0, 0, 0);
    const int side = S::template side<K>(sample, channel);
    from_ = t.data[side] + offset;
    to_ = from_;
    if constexpr (S::template filters<K>) {
      filters_ = S::template on<S::template filter<K>>(sample, channel);
      to_ = filters_ ? t.data[1 - side] + offset : from_;
    }
  }

  void run(const cpu& exec) {
    if constexpr (S::template filters<K>) {
      constexpr int f = S::template filter<K>;
      if (filters_) {
        const auto& filter = S::template functor<f>(sample_);
        using F = typename S::template functor_t<f>;
        if constexpr (separable_filter<F>)
          run_separable(exec, filter);
        else if constexpr (pair_filter<F>)
          run_pairs(exec, filter);
        else if constexpr (spectral_filter<F>)
          run_spectral(exec, filter);
        else
          run_rows(exec,
                   [&](const auto& taps, std::int32_t z, std::int32_t y, std::int32_t x0, float(&v)[strip_width]) {
                     const auto read = reader(taps);
                     for (int l = 0; l < strip_width; ++l)
                       v[l] = filter(read, n_, z, y, std::min(x0 + l, n_[2] - 1), channel_);
                   });
        finish();
        return;
      }
    }
    run_rows(exec, [&](const auto& taps, std::int32_t z, std::int32_t y, std::int32_t x0, float(&v)[strip_width]) {
      load_strip(from_ + dense_offset(n_, 0, z, y, x0), 1, n_[2] - x0, v);
      apply_lanes(taps, v, along_x{at(z, y, x0)}, [](const float(&)[strip_width]) {});
    });
    finish();
  }

private:
  voxel at(std::int32_t z, std::int32_t y, std::int32_t x) const { return voxel_at(n_, number_, channel_, z, y, x); }

  // make(taps, z, y, x0, v) gives what the filter, if there is one, makes of a strip.
  template <class Make>
  void run_rows(const cpu& exec, const Make& make) {
    constexpr std::int32_t block = 32;
    const std::int64_t rows = static_cast<std::int64_t>(n_[0]) * n_[1];
    parallel_for(exec.threads, (rows + block - 1) / block, [&](std::int64_t b) {
      const auto taps = S::template taps<K>(sample_, t_, channel_);
      const auto results = S::template results<K>(sample_, t_, channel_);
      patch_sums sums{};
      for (std::int64_t row = b * block; row < std::min(rows, (b + 1) * block); ++row) {
        const auto z = static_cast<std::int32_t>(row / n_[1]), y = static_cast<std::int32_t>(row % n_[1]);
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          float v[strip_width];
          make(taps, z, y, x0, v);
          leave(results, v, z, y, x0, sums);
        }
      }
      give(sums);
    });
  }

  // The operations right of the filter, and where their results go.
  template <class Results>
  void leave(const Results& results, float (&v)[strip_width], std::int32_t z, std::int32_t y, std::int32_t x0,
             patch_sums& sums) const {
    const int count = std::min(strip_width, n_[2] - x0);
    apply_lanes(results, v, along_x{at(z, y, x0)}, [&]<class R>(const R(&finished)[strip_width]) {
      if constexpr (is_last) {
        const target_tensor& out = t_.out;
        Out* const to = static_cast<Out*>(out.data) + channel_ * out.channel_stride + z * out.stride[0] +
                        y * out.stride[1] + x0 * out.stride[2];
        write_stored(to, out.stride[2], finished, count);
      } else {
        write_row(to_ + dense_offset(n_, 0, z, y, x0), 1, finished, count);
        if (emits_) add_row(sums, finished, count);
      }
    });
  }

  void give(const patch_sums& part) {
    if (!emits_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    settle(total_, part);
  }
  void finish() {
    if (emits_) t_.statistics[K * t_.channels + channel_] = moments_of(total_);
  }

  template <class Taps>
  tap_reader<Taps> reader(const Taps& taps) const {
    return {taps, from_, n_, number_, channel_};
  }

  template <class Filter>
  void run_pairs(const cpu& exec, const Filter& filter) {
    std::vector<voxel_pair> pairs[3];
    for (int axis = 0; axis < 3; ++axis)
      for (std::int32_t i = 0; i < n_[axis] || (axis == 2 && i % strip_width != 0); ++i)
        pairs[axis].push_back(filter.pair_at(axis, std::min(i, n_[axis] - 1), n_[axis], channel_));
    run_rows(exec, [&](const auto& taps, std::int32_t z, std::int32_t y, std::int32_t x0, float(&v)[strip_width]) {
      const auto read = reader(taps);
      const voxel_pair along_z = pairs[0][static_cast<std::size_t>(z)], along_y = pairs[1][static_cast<std::size_t>(y)];
      const voxel_pair* const along_x = pairs[2].data() + x0;
      for (int l = 0; l < strip_width; ++l) v[l] = interpolated(read, along_z, along_y, along_x[l]);
    });
  }

  // Into the other place; nothing of the stage follows.
  template <class Filter>
  void run_spectral(const cpu& exec, const Filter& filter) {
    const auto taps = S::template taps<K>(sample_, t_, channel_);
    const auto load_row = [&](std::int32_t z, std::int32_t y, float* row) {
      for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
        float v[strip_width];
        load(from_ + dense_offset(n_, 0, z, y, x0), n_[2] - x0, v);
        apply_lanes(taps, v, along_x{at(z, y, x0)}, [](const float(&)[strip_width]) {});
        write_row(row + x0, 1, v, std::min(strip_width, n_[2] - x0));
      }
    };
    float* const work = t_.data[2] + dense_offset(n_, channel_, 0, 0, 0);
    if constexpr (spectral_mask<Filter>)
      filter_spectrum(exec, filter, n_, channel_, load_row, to_, work);
    else
      add_spike(exec, filter, n_, channel_, load_row, to_, work);
  }

  // Along x into the other place, along y back, along z and on.
  template <class Filter>
  void run_separable(const cpu& exec, const Filter& filter) {
    float w[3][2 * largest_radius + 1];
    std::int32_t r[3];
    for (int k = 0; k < 3; ++k) {
      r[k] = filter.radius(k, channel_);
      filter.weights_along(k, channel_, w[k]);
    }
    parallel_for(exec.threads, n_[0], [&](std::int64_t z) {
      const auto taps = S::template taps<K>(sample_, t_, channel_);
      std::vector<float> row(
          static_cast<std::size_t>((n_[2] + strip_width - 1) / strip_width * strip_width + 2 * r[2]));
      for (std::int32_t y = 0; y < n_[1]; ++y) {
        const std::int64_t begin = dense_offset(n_, 0, static_cast<std::int32_t>(z), y, 0);
        float* const inner = row.data() + r[2];
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          float v[strip_width];
          load_strip(from_ + begin + x0, 1, n_[2] - x0, v);
          apply_lanes(taps, v, along_x{at(static_cast<std::int32_t>(z), y, x0)}, [](const float(&)[strip_width]) {});
          copy_strip(inner + x0, v);
        }
        for (std::int32_t x = 1; x <= r[2]; ++x) {
          const std::int32_t before = filter.index(-x, n_[2]), after = filter.index(n_[2] - 1 + x, n_[2]);
          inner[-x] = before < 0 ? 0.0f : inner[before];
          inner[n_[2] - 1 + x] = after < 0 ? 0.0f : inner[after];
        }
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          float sum[strip_width] = {};
          for (std::int32_t c = -r[2]; c <= r[2]; ++c) add_weighted(w[2][c + r[2]], inner + x0 + c, sum);
          write_row(to_ + begin + x0, 1, sum, std::min(strip_width, n_[2] - x0));
        }
      }
    });
    const std::int64_t plane = static_cast<std::int64_t>(n_[1]) * n_[2];
    float* const sums = blending_filter<Filter> ? t_.data[2] + dense_offset(n_, channel_, 0, 0, 0) : from_;
    parallel_for(exec.threads, n_[0], [&](std::int64_t z) {
      for (std::int32_t y = 0; y < n_[1]; ++y)
        for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
          float sum[strip_width];
          sum_rows(w[1], r[1], filter, y, n_[1], to_ + z * plane, n_[2], x0, sum);
          write_row(sums + z * plane + static_cast<std::int64_t>(y) * n_[2] + x0, 1, sum,
                    std::min(strip_width, n_[2] - x0));
        }
    });
    run_rows(exec, [&](const auto& taps, std::int32_t z, std::int32_t y, std::int32_t x0, float(&v)[strip_width]) {
      sum_rows(w[0], r[0], filter, z, n_[0], sums + static_cast<std::int64_t>(y) * n_[2], plane, x0, v);
      if constexpr (blending_filter<Filter>) {
        float center[strip_width];
        load_strip(from_ + dense_offset(n_, 0, z, y, x0), 1, n_[2] - x0, center);
        apply_lanes(taps, center, along_x{at(z, y, x0)}, [](const float(&)[strip_width]) {});
        for (int l = 0; l < strip_width; ++l) v[l] = filter.blend(center[l], v[l], channel_);
      }
    });
  }

  static void add_weighted(float weight, const float* values, float (&sum)[strip_width]) {
    for (int l = 0; l < strip_width; ++l) sum[l] = fma(weight, values[l], sum[l]);
  }
  // The weighted sum of rows i - r .. i + r of those that lie `step` apart.
  template <class Filter>
  void sum_rows(const float* w, std::int32_t r, const Filter& filter, std::int32_t i, std::int32_t extent,
                const float* rows, std::int64_t step, std::int32_t x0, float (&sum)[strip_width]) const {
    for (int l = 0; l < strip_width; ++l) sum[l] = 0;
    for (std::int32_t k = -r; k <= r; ++k) {
      const std::int32_t j = filter.index(i + k, extent);
      if (j < 0) continue;
      float v[strip_width];
      load_strip(rows + j * step + x0, 1, n_[2] - x0, v);
      add_weighted(w[k + r], v, sum);
    }
  }

  const item<Pipeline>& sample_;
  const staged_tensor& t_;
  const std::int32_t (&n_)[3];
  std::int32_t number_, channel_;
  float *from_, *to_;
  bool filters_ = false;
  const bool emits_ = S::template emits<K>(sample_, channel_);
  patch_sums total_{};
  std::mutex mutex_;
};

// Stages [First, Last) of every image of the batch.
template <int First, int Last, class Evaluator>
void run_stages(const cpu& exec, const Evaluator& e, std::size_t samples) {
  using P = typename Evaluator::pipeline_type;
  const auto pair = [&]<std::size_t B, int K>() {
    using Binding = typename Evaluator::template binding_type<B>;
    if constexpr (!Binding::is_label) {
      for (std::size_t i = 0; i < samples; ++i) {
        const auto& r = e.records[i];
        for (std::int32_t channel = 0; channel < r.staged[B].channels; ++channel)
          if (!staging<P>::template idle<K>(r.sample, channel))
            channel_stage<K, typename Binding::output, P>(r.sample, r.staged[B], static_cast<std::int32_t>(i), channel)
                .run(exec);
      }
    }
  };
  const auto stage = [&]<int K>() {
    [&]<std::size_t... B>(std::index_sequence<B...>) { (pair.template operator()<B, K>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  };
  [&]<int... K>(std::integer_sequence<int, K...>) { (stage.template operator()<First + K>(), ...); }
  (std::make_integer_sequence<int, Last - First>{});
}

}  // namespace suture::detail
