// SPDX-License-Identifier: Apache-2.0
// Reinhard's normalization to a target drawn from the colors of a data set.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../rng/draw.hpp"
#include "reinhard.hpp"

namespace suture {

// Spread of the mean and the deviation of a channel over the tiles of a data set, in the units of the space.
template <class Space>
struct color_table {
  struct spread {
    double mean, standard_deviation;
  };
  spread mean[3];
  spread standard_deviation[3];
};

// Colorectal cancer (nine tissue classes), as published with RandStainNA in the units of OpenCV, here in those of lab.
inline constexpr color_table<lab> crc_lab{
    {{158.033 / 2.55, 48.792 / 2.55}, {151.187 - 128, 10.958}, {116.812 - 128, 6.643}},
    {{36.899 / 2.55, 14.383 / 2.55}, {8.134, 2.822}, {6.129, 2.013}}};

// The published tables of a color space, chosen by name.
template <class Space>
struct named_color_table {
  std::string_view name;
  color_table<Space> table;
};
template <class Space>
constexpr std::array<named_color_table<Space>, 0> choices_of(const color_table<Space>*) {
  return {};
}
constexpr std::array<named_color_table<lab>, 1> choices_of(const color_table<lab>*) { return {{{"crc_lab", crc_lab}}}; }

enum class stain_na_law { normal, laplace, uniform };

// RandStainNA: reinhard to a target whose means and deviations are drawn from `table`, each on its own, by a law about
// its mean: normal or laplace with its standard deviation (as the scale of laplace) times 1 + widen, or uniform within
// three of them. A deviation drawn below 0 counts by its magnitude. For hed and hsv there is no published table, and
// the stretch of hed to the whole range that the original adds is left out.
// Errors: a table that is not finite or of negative deviations, widen not above -1; those of reinhard.
// Source: Shen et al. 2022, RandStainNA.
template <class Space>
struct random_stain_na {
  std::span<const color_moments<Space>> fitted;
  color_table<Space> table;
  stain_na_law law = stain_na_law::normal;
  double widen = 0;
  float white = 255;
  float probability = 1;

  static constexpr std::string_view name = "random_stain_na";
  static constexpr std::uint16_t kind = 73;
  static constexpr auto parameters =
      named("fitted", required(&random_stain_na::fitted), "table", required(&random_stain_na::table), "law",
            &random_stain_na::law, "widen", &random_stain_na::widen, "white", &random_stain_na::white, "probability",
            &random_stain_na::probability);

  void check_sample(const site& where) const { detail::check_results(fitted, where); }

  reinhard<Space> draw(draws& random, const site& where) const {
    require(widen > -1 && widen <= 500, where, "widen ", widen, " must be in (-1, 500]");
    reinhard<Space> result{
        .fitted = fitted, .target = {.status = fit_status::stated}, .rule = reinhard_rule::plain, .white = white};
    for (int k = 0; k < 3; ++k) {
      result.target.mean[k] = draw_from(table.mean[k], random, where);
      const double deviation = draw_from(table.standard_deviation[k], random, where);
      result.target.standard_deviation[k] = deviation < 0 ? -deviation : deviation;
    }
    return result;
  }

private:
  // Draws from the table; takes two slots whatever the law.
  double draw_from(const typename color_table<Space>::spread& of, draws& random, const site& where) const {
    require(std::abs(of.mean) <= 1e5, where, "mean ", of.mean, " of the table must be within 1e5");
    require(of.standard_deviation >= 0 && of.standard_deviation <= 1e2, where, "standard deviation ",
            of.standard_deviation, " of the table must be in [0, 100]");
    const auto mean = static_cast<float>(of.mean);
    const auto scale = static_cast<float>(of.standard_deviation * (1 + widen));
    if (law == stain_na_law::normal) return static_cast<double>(random.normal(mean, scale));
    if (law == stain_na_law::uniform) {
      const float value = random.uniform(fma(-3.0f, scale, mean), fma(3.0f, scale, mean));
      random.skip();
      return static_cast<double>(value);
    }
    const bool below = random.bernoulli(.5f);
    const float distance = -math::log(1 - random.uniform(0, 1));
    return static_cast<double>(fma(below ? -scale : scale, distance, mean));
  }
};

}  // namespace suture
