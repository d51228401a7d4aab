// SPDX-License-Identifier: Apache-2.0
// Operations on color by their definitions, in double; the error of a pixel is found at the corners of its bound.
#pragma once

#include "ref/color.hpp"
#include "reference_values.hpp"

namespace fuzz {

// f(color in [0, 1]) for every pixel that is brought to [0, white]; `own` is the stated error, in parts of white.
template <class F>
void in_color(sample_reference& r, double white, double own, const F& f) {
  for (std::size_t e = 0; e < r.voxels(); ++e) {
    reference::color x{};
    double errors[3], most = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const double v = r.channels[c][e].value / white;
      x[c] = std::isnan(v) ? 0 : std::clamp(v, 0., 1.);
      errors[c] = r.channels[c][e].error / white + float_epsilon;
      most = std::fmax(most, errors[c]);
    }
    const reference::color y = f(x);
    double change[3] = {};
    for (int corner = 0; corner < 8; ++corner) {
      reference::color at = x;
      for (std::size_t c = 0; c < 3; ++c)
        at[c] = std::clamp(at[c] + ((corner >> c) & 1 ? errors[c] : -errors[c]), 0., 1.);
      const reference::color z = f(at);
      for (std::size_t c = 0; c < 3; ++c) change[c] = std::fmax(change[c], abs(z[c] - y[c]));
    }
    const double low = std::min({x[0], x[1], x[2]}), high = std::max({x[0], x[1], x[2]});
    // The hue of what may be a gray is any.
    const bool doubtful =
        most > 1e-2 || (high > low && high - low < 16 * most) || (high == low && most > 2 * float_epsilon);
    for (std::size_t c = 0; c < 3; ++c)
      r.channels[c][e] = {y[c] * white, doubtful ? unknown : white * (2 * change[c] + own)};
  }
}

inline void reference_of(sample_reference& r, const suture::hed_jitter& o, const operation_fields&) {
  const bool modern = o.units == suture::hed_units::modern;
  in_color(r, real(o.white), 2e-5, [&](const reference::color& x) {
    reference::color s = modern ? reference::hed::from_rgb(x) : reference::hed_plus2::from_rgb(x);
    for (std::size_t k = 0; k < 3; ++k) s[k] = s[k] * real(o.alpha[k]) + real(o.beta[k]);
    return modern ? reference::hed::to_rgb(s) : reference::hed_plus2::to_rgb(s);
  });
}
inline void reference_of(sample_reference& r, const suture::hsv_jitter& o, const operation_fields&) {
  const auto towards = [](double v, double share) { return share > 0 ? v + (1 - v) * share : v * (1 + share); };
  in_color(r, real(o.white), 4e-6, [&](const reference::color& x) {
    reference::color v = reference::hsv::from_rgb(x);
    v[0] += real(o.hue);
    v[1] = towards(v[1], real(o.saturation));
    v[2] = towards(v[2], real(o.value));
    return reference::hsv::to_rgb(v);
  });
}
inline double gray_of(const reference::color& x) { return .299 * x[0] + .587 * x[1] + .114 * x[2]; }
inline void reference_of(sample_reference& r, const suture::color_jitter& o, const operation_fields&,
                         std::size_t sample) {
  const double white = real(o.white);
  double pivot = real(o.pivot) / white;
  if (!o.fitted.empty() && o.fitted[3 * sample].status != suture::fit_status::empty) {
    reference::color mean{};
    for (std::size_t c = 0; c < 3; ++c) mean[c] = std::clamp(o.fitted[3 * sample + c].mean / white, 0., 1.);
    pivot = gray_of(mean);
  }
  in_color(r, white, 1e-5, [&](reference::color x) {
    double brightened = 1;
    for (const suture::color_step step : o.order) {
      const double gray = gray_of(x);
      if (step == suture::color_step::hue) {
        reference::color v = reference::hsv::from_rgb(x);
        v[0] += real(o.hue);
        x = reference::hsv::to_rgb(v);
        continue;
      }
      for (double& v : x) {
        if (step == suture::color_step::brightness) v *= real(o.brightness);
        if (step == suture::color_step::contrast)
          v = v * real(o.contrast) + (1 - real(o.contrast)) * pivot * brightened;
        if (step == suture::color_step::saturation) v = v * real(o.saturation) + (1 - real(o.saturation)) * gray;
      }
      if (step == suture::color_step::brightness) brightened = real(o.brightness);
      x = reference::unit(x);
    }
    return x;
  });
}
inline void reference_of(sample_reference& r, const suture::grayscale& o, const operation_fields&) {
  double w[3] = {.299, .587, .114};
  if (o.rule == suture::gray_rule::itu709) w[0] = .2125, w[1] = .7154, w[2] = .0721;
  const bool whole = o.rule == suture::gray_rule::pillow;
  if (whole) w[0] = 19595 / 65536., w[1] = 38470 / 65536., w[2] = 7471 / 65536.;
  for (std::size_t e = 0; e < r.voxels(); ++e) {
    double sum = 0, error = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const bounded& x = r.channels[c][e];
      sum += w[c] * x.value;
      error += w[c] * (x.error + 4 * float_epsilon * abs(x.value));
    }
    if (whole) {
      const double tie = abs(sum + .5 - std::round(sum + .5));
      error = tie <= error && error > 0 && !(tie == 0 && r.channels[0][e].error == 0) ? unknown
              : abs(sum) > 4e6                                                        ? unknown
                                                                                      : 0;
      sum = std::floor(sum + .5);
    }
    for (std::size_t c = 0; c < 3; ++c) r.channels[c][e] = {sum, error};
  }
}
inline void reference_of(sample_reference& r, const suture::channel_normalize& o, const operation_fields&) {
  pointwise(r, [&](double x, std::size_t c, auto) {
    const double m = real(o.of.mean[c]), s = real(o.of.standard_deviation[c]);
    return rounded{(x / real(o.white) - m) / s, (abs(x / real(o.white)) + abs(m)) / s};
  });
}

template <class Space>
struct space_of;
template <>
struct space_of<suture::lab> : reference::lab {};
template <>
struct space_of<suture::ruderman> : reference::ruderman {};
template <class Space>
void reference_of(sample_reference& r, const suture::reinhard<Space>& o, const operation_fields&, std::size_t sample) {
  const auto& m = o.fitted[sample];
  bool flat = false;
  for (std::size_t k = 0; k < 3; ++k) flat = flat || !(m.standard_deviation[k] > 1e-3);
  if (m.status == suture::fit_status::empty || flat) {  // by a rule of its own
    for (auto& channel : r.channels) forget(channel);
    return;
  }
  in_color(r, real(o.white), 1e-4, [&](const reference::color& x) {
    reference::color v = space_of<Space>::from_rgb(x);
    for (std::size_t k = 0; k < 3; ++k) {
      const double to = o.target.standard_deviation[k], own = m.standard_deviation[k];
      if (o.rule == suture::reinhard_rule::plain) {
        v[k] = (v[k] - m.mean[k]) * to / own + o.target.mean[k];
      } else if (k == 0) {
        const double q = 1 - own / to;
        v[k] = (v[k] - m.mean[k]) * (1 + (q > 0 ? q : .05)) + m.mean[k];
      } else {
        v[k] = v[k] - m.mean[k] + o.target.mean[k];
      }
    }
    return space_of<Space>::to_rgb(v);
  });
}

inline void reference_of(sample_reference& r, const suture::stain_jitter& o, const operation_fields&,
                         std::size_t sample) {
  suture::stain_matrix basis = o.basis;
  if (!o.fitted.empty()) {
    const suture::stain_basis& own = o.fitted[o.shared ? 0 : sample];
    if (own.unchanged != 0) {
      in_color(r, real(o.white), 1e-6, [](const reference::color& x) { return x; });
      return;
    }
    for (int c = 0; c < 3; ++c)
      for (int k = 0; k < 2; ++k) basis[c][k] = static_cast<double>(own.stains[c][k]);
  }
  double gram[2][2] = {};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int c = 0; c < 3; ++c) gram[i][j] += basis[c][i] * basis[c][j];
  const double determinant = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0];
  if (abs(determinant) < 1e-2) {
    for (auto& channel : r.channels) forget(channel);
    return;
  }
  const auto density = [](double x) { return -std::log(std::fmax(x, 1 / 255.)); };
  std::vector<char> doubtful(r.voxels());
  for (std::size_t e = 0; e < r.voxels(); ++e) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) sum += density(r.channels[c][e].value / real(o.white));
    doubtful[e] = abs(sum / 3 - real(o.tissue_density)) < 1e-3;
  }
  in_color(r, real(o.white), 2e-5, [&](const reference::color& x) {
    reference::color d = reference::each(x, density);
    if (o.tissue_density > 0 && (d[0] + d[1] + d[2]) / 3 < real(o.tissue_density)) return x;
    double right[2] = {}, s[2];
    for (int k = 0; k < 2; ++k)
      for (int c = 0; c < 3; ++c) right[k] += basis[c][k] * d[static_cast<std::size_t>(c)];
    s[0] = (gram[1][1] * right[0] - gram[0][1] * right[1]) / determinant;
    s[1] = (gram[0][0] * right[1] - gram[1][0] * right[0]) / determinant;
    for (std::size_t c = 0; c < 3; ++c) {
      double rest = d[c], jittered = 0;
      for (int k = 0; k < 2; ++k) {
        rest -= basis[static_cast<int>(c)][k] * s[k];
        jittered += basis[static_cast<int>(c)][k] * (s[k] * real(o.alpha[k]) + real(o.beta[k]));
      }
      d[c] = jittered + (o.keep_rest ? rest : 0);
    }
    return reference::unit(reference::each(d, [](double v) { return std::exp(-v); }));
  });
  for (auto& channel : r.channels)
    for (std::size_t e = 0; e < channel.size(); ++e)
      if (doubtful[e]) channel[e].error = unknown;
}

}  // namespace fuzz
