// SPDX-License-Identifier: Apache-2.0
// Mean and standard deviation of colors in a color space, as Reinhard's normalization and its relatives use them.
#pragma once

#include <algorithm>

#include "../color/color_range.hpp"
#include "../stats/color_moments.hpp"
#include "moments.hpp"

namespace suture {

namespace detail {

template <class Space>
SUTURE_HD inline color_moments<Space> make_color_moments(const exact_sums (&sums)[3], const fit_tally& tally,
                                                         std::int32_t ddof) {
  color_moments<Space> m;
  m.tally = tally;
  m.ddof = ddof;
  m.status = tally.count == 0 ? fit_status::empty : fit_status::ok;
  if (tally.count == 0) return m;
  const double unit = power_of_two(-Space::fraction_bits);
  const auto n = static_cast<double>(tally.count);
  const std::int64_t degrees_of_freedom = static_cast<std::int64_t>(tally.count) - ddof;
  for (int k = 0; k < 3; ++k) {
    const central_sums s = central_sums_of(sums[k], tally.count, true);
    m.mean[k] = math::detail::divide(s.sum, n) * unit;
    const double square = degrees_of_freedom > 0
                              ? math::detail::divide(math::detail::divide(s.count_times_squared_deviations, n),
                                                     static_cast<double>(degrees_of_freedom))
                              : 0;
    m.standard_deviation[k] = math::sqrt(square) * unit;
    m.center[k] = static_cast<float>(m.mean[k]);
    m.deviation[k] = static_cast<float>(m.standard_deviation[k]);
    m.reciprocal[k] = color_moments<Space>::reciprocal_of(m.standard_deviation[k]);
    if (!(m.standard_deviation[k] > Space::resolution)) m.status = fit_status::constant;
  }
  return m;
}

// Sums of the three channels of a color, all zero to begin with.
struct color_totals {
  exact_sums sums[3] = {};
  fit_tally tally{};

  SUTURE_HD void propagate_carries() {
    for (exact_sums& s : sums) s.propagate_carries();
  }
  void merge(const color_totals& other) {
    for (int k = 0; k < 3; ++k) sums[k].merge(other.sums[k]);
    tally.merge(other.tally);
  }
};

// Converts a color to fixed point.
template <class Space>
SUTURE_FN void to_fixed_color(const color_range& range, const rgb& x, std::int32_t (&out)[3]) {
  constexpr auto scale = static_cast<float>(1 << Space::fraction_bits);
  const rgb v = Space::from_rgb(range.to_unit(x));
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) out[k] = nearest_int32(v.c[k] * scale);
}

SUTURE_FN bool all_finite(const rgb& x) {
  return counted<float>::finite(x.c[0]) && counted<float>::finite(x.c[1]) && counted<float>::finite(x.c[2]);
}

template <class T, class Selection>
void check_color_image(std::string_view name, const view<const T>& image, const Selection& selection,
                       std::size_t sample) {
  check_color_selection<Selection>();
  check_sample(name, image, selection, sample);
  require(image.channels == 3, {name, static_cast<std::int64_t>(sample)},
          "3 channels are needed (red, green, blue), the image has ", image.channels);
}

}  // namespace detail

// Sums of colors that merge, over the tiles of a slide, a scanner or a data set. They are integers, so any division of
// the pixels and any order gives the same bits.
template <class Space>
class color_sums : public detail::color_totals {
public:
  float white = 255;

  // Adds the selected pixels of an image of three channels. Errors: white not positive; those of the views.
  template <class T, class Selection = everything>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection = {}, std::size_t sample = 0) {
    detail::check_color_image("color_sums", image, selection, sample);
    const rows zero{{}, detail::make_color_range(white, {"color_sums"}), image.channel_stride};
    rows total = zero;
    detail::reduce_rows(exec, "color_sums", image, selection, sample, 0, zero, total);
    color_totals::merge(total);
  }
  void merge(const color_sums& other) {
    require(white == other.white, {"color_sums"}, "white ", other.white, " merged into white ", white);
    color_totals::merge(other);
  }

  color_moments<Space> moments(std::int32_t ddof = 0) const {
    return detail::make_color_moments<Space>(sums, tally, ddof);
  }

private:
  // Sums of one thread.
  struct rows : detail::color_totals {
    detail::color_range range;
    std::int64_t channel_stride;

    template <class T, class Map, class Selector>
    void row(const detail::voxel_row<T, Map>& r, const Selector& select) {
      const auto [values, stride, map, map_stride, count] = r;
      constexpr int width = 64;  // pixels whose sums fit 64 bits: squares are below 2^55
      int128 sum[3] = {};
      uint128 square[3] = {};
      for (std::int64_t begin = 0; begin < count; begin += width) {
        const int n = static_cast<int>(std::min<std::int64_t>(width, count - begin));
        float v[3][width];
        std::int32_t fixed[3][width];
        std::uint32_t used[width];
        for (int i = 0; i < width; ++i) {
          const std::int64_t x = begin + std::min(i, n - 1);
          const T* const p = values + x * stride;
          const rgb pixel{
              {storage<T>::load(p[0]), storage<T>::load(p[channel_stride]), storage<T>::load(p[2 * channel_stride])}};
          const detail::verdict verdict = i < n ? select(p[0], map[x * map_stride]) : detail::verdict::rejected;
          const bool finite = detail::all_finite(pixel);
          tally.undeclared += verdict == detail::verdict::undeclared ? 1u : 0u;
          tally.excluded += verdict == detail::verdict::selected && !finite ? 1u : 0u;
          tally.count += verdict == detail::verdict::selected && finite ? 1u : 0u;
          used[i] = verdict == detail::verdict::selected && finite ? ~0u : 0u;
          for (int k = 0; k < 3; ++k) v[k][i] = pixel.c[k];
        }
        for (int i = 0; i < width; ++i) {
          std::int32_t color[3];
          detail::to_fixed_color<Space>(range, {{v[0][i], v[1][i], v[2][i]}}, color);
          for (int k = 0; k < 3; ++k)
            fixed[k][i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(color[k]) & used[i]);
        }
        for (int k = 0; k < 3; ++k) {
          std::int64_t linear = 0, quadratic = 0;
          for (int i = 0; i < width; ++i) {
            linear += fixed[k][i];
            quadratic += static_cast<std::int64_t>(fixed[k][i]) * fixed[k][i];
          }
          sum[k] += linear;
          square[k] += static_cast<std::uint64_t>(quadratic);
        }
      }
      for (int k = 0; k < 3; ++k) sums[k].add(sum[k], 0, square[k], 0);
      this->propagate_carries();
    }
  };
};

// Mean and deviation of the selected pixels in a color space, one result per sample. The space is lab, ruderman, hsv
// or hed; values are those of white `white`, limited to [0, white].
// Errors: ddof not 0 or 1, white not positive, images without three channels; those of the views.
// Source: Reinhard et al. 2001; torchstain (ddof 0, its PyTorch backend 1), TIAToolbox, HistomicsTK (ruderman).
template <class Space>
struct fit_color_moments {
  std::int32_t ddof = 0;
  float white = 255;

  static constexpr std::string_view name = "fit_color_moments";
  static constexpr auto parameters = named("ddof", &fit_color_moments::ddof, "white", &fit_color_moments::white);
  using result = color_moments<Space>;

  void check() const {
    require(ddof == 0 || ddof == 1, {name}, "ddof ", ddof, " must be 0 or 1");
    detail::make_color_range(white, {name});
  }
  SUTURE_HD result finish(const detail::color_totals& counted) const {
    return detail::make_color_moments<Space>(counted.sums, counted.tally, ddof);
  }
};

namespace detail {

// Checks images against selection and results, before anything is written.
template <class T, class Selection>
void check_color_fit(std::string_view name, std::span<const view<const T>> images, const Selection& selection,
                     std::size_t results) {
  check_map_count(name, images.size(), selection);
  for (std::size_t i = 0; i < images.size(); ++i) check_color_image(name, images[i], selection, i);
  require(results == images.size(), {name}, results, " results given, ", images.size(), " needed: one per sample");
}

}  // namespace detail

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit.
template <class Space, class T, class Selection>
void fit_on_cpu(const cpu& exec, const fit_color_moments<Space>& settings, std::span<const view<const T>> images,
                const Selection& selection, std::span<color_moments<Space>> results) {
  settings.check();
  detail::check_color_fit(settings.name, images, selection, results.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    color_sums<Space> sums;
    sums.white = settings.white;
    sums.add(exec, images[i], selection, i);
    results[i] = settings.finish(sums);
  }
}

}  // namespace suture
