// SPDX-License-Identifier: Apache-2.0
// Brightness, contrast, saturation and hue in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "../../base/fields.hpp"
#include "../../base/voxel.hpp"
#include "../../color/color_range.hpp"
#include "../../stats/statistics.hpp"
#include "../common/fitted.hpp"
#include "../common/interval.hpp"
#include "grayscale.hpp"

namespace suture {

enum class color_step : std::uint8_t { brightness, contrast, saturation, hue };
constexpr std::array<std::string_view, 4> names_of(color_step) {
  return {"brightness", "contrast", "saturation", "hue"};
}

// The four steps of torchvision's ColorJitter, in `order`, each limited to [0, white]:
//   brightness   x brightness
//   contrast     x contrast + (1 - contrast) g, with one gray g for all pixels
//   saturation   x saturation + (1 - saturation) gray(x)
//   hue          turned by `hue` of a full turn; grays stay
// gray is .299 R + .587 G + .114 B. Torchvision's g is the mean gray of the image as the step finds it. Here it is
// `pivot` or, where `fitted` holds any, the mean gray by what fit_moments left for the three channels of each sample
// (results as for z_score with 3 channels; an empty fit counts as `pivot`); times `brightness` if that step came first.
// That is torchvision's g unless a step before contrast met the limits or was a turn of the hue.
// Values outside of [0, white] are brought to its ends first, NaN to 0.
// Errors: results for some samples only, a factor below 0, hue outside of [-1/2, 1/2], a step twice in the order,
// white not positive. Source: torchvision adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue.
struct color_jitter {
  float brightness = 1;
  float contrast = 1;
  float saturation = 1;
  float hue = 0;
  float pivot = 128;  // in the units of the image
  std::span<const moments> fitted = {};
  color_step order[4] = {color_step::brightness, color_step::contrast, color_step::saturation, color_step::hue};
  float white = 255;

  static constexpr std::string_view name = "color_jitter";
  static constexpr auto fields =
      named("brightness", &color_jitter::brightness, "contrast", &color_jitter::contrast, "saturation",
            &color_jitter::saturation, "hue", &color_jitter::hue, "order", &color_jitter::order);
  static constexpr auto parameters =
      named("brightness", &color_jitter::brightness, "contrast", &color_jitter::contrast, "saturation",
            &color_jitter::saturation, "hue", &color_jitter::hue, "pivot", &color_jitter::pivot, "fitted",
            &color_jitter::fitted, "order", &color_jitter::order, "white", &color_jitter::white);

  // Computes x factor + gray(x) of_gray + g of_pivot, the common form of all steps except hue.
  struct blend {
    float factor = 1, of_gray = 0, of_pivot = 0;

    template <class Unit>
    SUTURE_FN rgb operator()(const rgb& v, float g, const Unit& unit) const {
      const float added = fma(detail::itu601_weights()(v), of_gray, fma(g, of_pivot, 0.0f));
      return scaled(v, added, unit);
    }

    // The same for pixels side by side in [0, 1]; steps that change no bit are skipped.
    template <int N, class Unit>
    SUTURE_INLINE void apply_lanes(float (&v)[3][N], float g, Unit unit) const {
      const blend b = *this;
      const float of_all = fma(g, b.of_pivot, 0.0f);
      if (b.of_gray != 0)
        detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return b(x, g, unit); });
      else if (b.factor != 1 || of_all != 0)
        detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return b.scaled(x, of_all, unit); });
    }

  private:
    template <class Unit>
    SUTURE_FN rgb scaled(const rgb& v, float added, const Unit& unit) const {
      return unit.limit({{fma(v.c[0], factor, added), fma(v.c[1], factor, added), fma(v.c[2], factor, added)}});
    }
  };

  struct functor {
    detail::color_range range;
    const moments* fitted;
    float pivot;
    float sixths;
    blend before[3], after[3];

    void check_fitted(const site& where) const {
      if (fitted != nullptr) detail::check_channels_fitted(fitted, 3, where);
    }

    SUTURE_FN rgb operator()(const rgb& x, const voxel& at) const { return stepped(x, gray_of(at.sample_index)); }

    // Pixels side by side of one sample: its mean gray is read once.
    template <int N>
    SUTURE_FN void apply_lanes(float (&v)[3][N], std::int32_t sample_index) const {
      const functor mine = *this;
      const float g = mine.gray_of(sample_index);
#if defined(__CUDA_ARCH__)
      detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.stepped(x, g); });
#else
      const detail::range_of_lanes unit;
      detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.range.to_unit(x, unit); });
      for (const blend& b : mine.before) b.apply_lanes(v, g, unit);
      detail::in_steps(
          v, [](const rgb& x) SUTURE_INLINE_LAMBDA { return detail::hue_chroma_value::from_rgb(x); },
          [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.rotated(x, unit); });
      for (const blend& b : mine.after) b.apply_lanes(v, g, unit);
      detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.range.from_unit(x); });
#endif
    }

  private:
    SUTURE_FN float gray_of(std::int32_t sample_index) const {
      if (fitted == nullptr) return pivot;
      const moments* m = fitted + static_cast<std::int64_t>(sample_index) * 3;
      if (m[0].status == fit_status::empty) return pivot;
      return detail::itu601_weights()(range.to_unit({{m[0].center, m[1].center, m[2].center}}));
    }

    // Returns the color, in [0, 1], whose hue is rotated.
    template <class Unit>
    SUTURE_FN rgb rotated(const rgb& v, const Unit& unit) const {
      using space = detail::hue_chroma_value;
      return space::to_rgb({{space::rotate(v.c[0], sixths), v.c[1], v.c[2]}}, unit);
    }

    SUTURE_FN rgb stepped(const rgb& x, float g) const {
      const detail::unit_range unit;
      rgb v = range.to_unit(x, unit);
      SUTURE_UNROLL
      for (int i = 0; i < 3; ++i) v = before[i](v, g, unit);
      v = rotated(detail::hue_chroma_value::from_rgb(v), unit);
      SUTURE_UNROLL
      for (int i = 0; i < 3; ++i) v = after[i](v, g, unit);
      return range.from_unit(v);
    }
  };

  functor prepare(const site& where) const {
    if (!fitted.empty()) detail::check_channel_results(fitted, 3, where);
    const auto check_factor = [&](float factor, std::string_view what) {
      require(std::isfinite(factor) && factor >= 0, where, what, ' ', factor, " must be 0 or above");
    };
    check_factor(brightness, "brightness");
    check_factor(contrast, "contrast");
    check_factor(saturation, "saturation");
    require(hue >= -.5f && hue <= .5f, where, "hue ", hue, " must be in [-0.5, 0.5]");
    require(std::isfinite(pivot), where, "pivot ", pivot, " must be finite");
    const float turns = hue < 0 ? hue + 1 : hue;
    const moments* const means = detail::pointer_if_any(fitted);
    functor f{detail::make_color_range(white, where), means, pivot / white, turns < 1 ? 6 * turns : 0.0f, {}, {}};
    bool seen[4] = {}, brightened = false;
    blend* next = f.before;
    for (const color_step step : order) {
      require(step <= color_step::hue && !std::exchange(seen[static_cast<int>(step)], true), where,
              "order must hold each of the four steps once");
      switch (step) {
        case color_step::brightness:
          *next++ = {brightness, 0, 0};
          brightened = true;
          break;
        case color_step::contrast:
          *next++ = {contrast, 0, brightened ? (1 - contrast) * brightness : 1 - contrast};
          break;
        case color_step::saturation:
          *next++ = {saturation, 1 - saturation, 0};
          break;
        case color_step::hue:
          next = f.after;
          break;
      }
    }
    return f;
  }
};

// color_jitter with each parameter drawn uniformly from its range; where `random_order`, in one of the 24 orders, each
// as likely, as torchvision's ColorJitter does. Torchvision's brightness b is {1 - b, 1 + b} here, its hue h {-h, h}.
// Errors: a range not from low to high; those of color_jitter.
struct random_color_jitter {
  interval brightness = {.8f, 1.2f};
  interval contrast = {.8f, 1.2f};
  interval saturation = {.8f, 1.2f};
  interval hue = {-.05f, .05f};
  float pivot = 128;
  std::span<const moments> fitted = {};
  bool random_order = false;
  float white = 255;
  float probability = 1;

  static constexpr std::string_view name = "random_color_jitter";
  static constexpr std::uint16_t kind = 71;
  static constexpr auto parameters =
      named("brightness", multiplies(&random_color_jitter::brightness), "contrast",
            multiplies(&random_color_jitter::contrast), "saturation", multiplies(&random_color_jitter::saturation),
            "hue", &random_color_jitter::hue, "pivot", &random_color_jitter::pivot, "fitted",
            &random_color_jitter::fitted, "random_order", &random_color_jitter::random_order, "white",
            &random_color_jitter::white, "probability", &random_color_jitter::probability);

  void check_sample(const site& where) const {
    if (!fitted.empty()) detail::check_channel_results(fitted, 3, where);
  }

  color_jitter draw(draws& random, const site& where) const {
    const auto draw_factor = [&](const interval& range, std::string_view what) {
      detail::check_interval(range, what, where);
      require(range.low >= 0, where, what, ' ', range, " must be 0 or above");
      return random.uniform(range.low, range.high);
    };
    color_jitter result{.pivot = pivot, .fitted = fitted, .white = white};
    result.brightness = draw_factor(brightness, "brightness");
    result.contrast = draw_factor(contrast, "contrast");
    result.saturation = draw_factor(saturation, "saturation");
    detail::check_interval(hue, "hue", where);
    require(hue.low >= -.5f && hue.high <= .5f, where, "hue ", hue, " must be in [-0.5, 0.5]");
    result.hue = random.uniform(hue.low, hue.high);
    for (std::int64_t left = 4; left > 1; --left) {  // the slots are taken whether or not the order is used
      const std::int64_t pick = random.integer(left);
      if (random_order) std::swap(result.order[pick], result.order[left - 1]);
    }
    return result;
  }
};

}  // namespace suture
