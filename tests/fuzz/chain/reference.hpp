// SPDX-License-Identifier: Apache-2.0
// A chain in double, through the parameters that a plan drew: each value of a result must lie within the bound of the
// reference's, labels be the same wherever no tie is near, and the grid be where the definitions put it.
#pragma once

#include "reference_color.hpp"
#include "reference_filters.hpp"
#include "reference_geometry.hpp"

namespace fuzz {

// As stated in docs/conventions.md, of the range of the voxels that are interpolated; places are right to 1e-4 of a
// voxel next to a tie.
inline constexpr double linear_error = 2e-5, cubic_error = 6e-5, near_tie = 1e-4;

template <class T>
struct rule_of;
template <class I, class B, class L>
struct rule_of<suture::sampling<I, B, L>> {
  static constexpr reference::interpolation how =
      std::is_same_v<I, suture::nearest>             ? reference::interpolation::nearest
      : std::is_same_v<I, suture::nearest_half_even> ? reference::interpolation::nearest_even
      : std::is_same_v<I, suture::linear>            ? reference::interpolation::linear
      : std::is_same_v<I, suture::catmull_rom>       ? reference::interpolation::catmull_rom
      : std::is_same_v<I, suture::torch_cubic>       ? reference::interpolation::torch_cubic
                                                     : reference::interpolation::bspline;
  static reference::outside outside(const B& border) {
    if constexpr (std::is_same_v<B, suture::default_value>)
      return border.rim == suture::image_rim::faces ? reference::outside::half_voxel_constant
                                                    : reference::outside::scipy_constant;
    else
      return std::is_same_v<B, suture::edge>      ? reference::outside::edge
             : std::is_same_v<B, suture::reflect> ? reference::outside::reflect
             : std::is_same_v<B, suture::mirror>  ? reference::outside::mirror
             : std::is_same_v<B, suture::wrap>    ? reference::outside::wrap
                                                  : reference::outside::blend_constant;
  }
  static constexpr bool votes = std::is_same_v<L, suture::vote>, majority = std::is_same_v<L, suture::majority>;
  static constexpr auto labels = std::is_same_v<L, suture::nearest_half_even> ? reference::interpolation::nearest_even
                                                                              : reference::interpolation::nearest;
};

inline bool at_tie(const point& p, double beyond) {
  for (const double x : p)
    if (abs(x - std::floor(x) - .5) < near_tie + beyond) return true;
  return false;
}

// Whether rounding may decide on which side of the rim a place lies.
inline bool at_rim(const point& p, const reference::size3& size, reference::outside outside, double beyond) {
  if (outside != reference::outside::half_voxel_constant && outside != reference::outside::scipy_constant) return false;
  const double rim = outside == reference::outside::scipy_constant ? 0 : .5;
  for (std::size_t k = 0; k < 3; ++k)
    for (const double distance : {p[k] + rim, p[k] - (static_cast<double>(size[k] - 1) + rim)})
      if (distance != 0 && abs(distance) < near_tie + beyond) return true;
  return false;
}

// A value of a volume whose voxels are bounded.
class bounded_volume {
public:
  bounded_volume(const std::vector<bounded>& v, const reference::size3& size, const reference::sampling& s,
                 double place_error)
      : rule_(s), place_error_(place_error) {
    reference::volume values(size), errors(size);
    for (std::size_t e = 0; e < v.size(); ++e) {
      values.values[e] = v[e].value;
      errors.values[e] = std::fmin(v[e].error, 1e300);
      most_error_ = std::fmax(most_error_, v[e].error);
      low_ = std::fmin(low_, v[e].value), high_ = std::fmax(high_, v[e].value);
      nan_ = nan_ || std::isnan(v[e].value);
    }
    if (s.rule == reference::outside::blend_constant || s.rule == reference::outside::half_voxel_constant ||
        s.rule == reference::outside::scipy_constant)
      low_ = std::fmin(low_, s.constant), high_ = std::fmax(high_, s.constant);
    values_ = reference::prepare(values, s);
    errors_ = errors;
  }
  bounded operator()(const point& p) const {
    if (at_rim(p, errors_.size, rule_.rule, place_error_)) return {0, unknown};
    if (rule_.how == reference::interpolation::bspline) {
      if (nan_ || most_error_ == unknown) return {0, unknown};
      const double size = std::fmax(abs(low_), abs(high_));
      return {values_(p, rule_),
              27 * most_error_ + (cubic_error + 4 * place_error_) * (high_ - low_) + 30 * float_epsilon * size};
    }
    const bool nearest =
        rule_.how == reference::interpolation::nearest || rule_.how == reference::interpolation::nearest_even;
    if (nearest && at_tie(p, place_error_)) return {0, unknown};
    double sum = 0, low = INFINITY, high = -INFINITY, size = 0;
    bool nan = false;
    reference::for_each_tap(values_.data, p, rule_, [&](double w, double v) {
      if (w != 0) nan = nan || std::isnan(v);
      sum += w == 0 ? 0 : w * v;
      low = std::fmin(low, v), high = std::fmax(high, v);
      size = std::fmax(size, abs(v));
    });
    if (nan) return {0, unknown};  // of NaN and a weight near 0 either may come
    double error = 0;
    reference::sampling of_errors = rule_;
    of_errors.constant = 0;
    reference::for_each_tap(errors_, p, of_errors, [&](double w, double v) { error += abs(w) * v; });
    if (error > 1e290) error = unknown;
    if (nearest) return {sum, error};
    const bool linear = rule_.how == reference::interpolation::linear;
    return {sum, error + ((linear ? linear_error : cubic_error) + 4 * place_error_) * (high - low) +
                     8 * float_epsilon * size};
  }

private:
  reference::sampling rule_;
  double place_error_;
  reference::prepared values_;
  reference::volume errors_;
  double most_error_ = 0, low_ = INFINITY, high_ = -INFINITY;
  bool nan_ = false;
};

// A label of a map, and whether it is beyond doubt.
struct known_label {
  double value = 0;
  bool sure = true;
};

template <class Rule>
known_label sampled_label(const reference::volume& map, const point& p, reference::outside outside,
                          double outside_value, double place_error) {
  const bool sure = !at_rim(p, map.size, outside, place_error);
  if constexpr (!Rule::votes && !Rule::majority) {
    return {reference::sample(map, p, {Rule::labels, outside, outside_value}), sure && !at_tie(p, place_error)};
  } else {
    std::map<double, double> sums;
    reference::for_each_tap(map, p, {reference::interpolation::linear, outside, outside_value},
                            [&](double w, double label) { sums[label] += w; });
    known_label best{0, sure};
    double most = -1, second = -1;
    for (const auto& [label, weight] : sums) {
      if (Rule::majority) {
        if (abs(weight - .5) < near_tie + 4 * place_error) best.sure = false;
        if (weight >= .5) best.value = label;
      } else if (weight > most) {
        second = most, most = weight, best.value = label;
      } else {
        second = std::fmax(second, weight);
      }
    }
    if (Rule::votes && most - second < near_tie + 8 * place_error) best.sure = false;
    return best;
  }
}

inline double converted(const no_conversion&, double label, std::int64_t) { return label; }
inline double converted(const suture::remap& o, double label, std::int64_t) {
  for (const auto& change : o.table)
    if (change.from == label) return change.to;
  return o.others ? *o.others : label;
}
inline double converted(const suture::one_hot& o, double label, std::int64_t channel) {
  const std::int64_t classes = o.classes - (o.background ? 0 : 1);
  if (o.ignore && channel == classes) return label == *o.ignore;
  return label == static_cast<double>(channel + (o.background ? 0 : 1));
}
inline double converted(const suture::regions& o, double label, std::int64_t channel) {
  if (channel == static_cast<std::int64_t>(o.sets.size())) return o.ignore && label == *o.ignore;
  for (const std::int32_t member : o.sets.begin()[channel])
    if (member == label) return 1;
  return 0;
}

// What a value becomes when it is stored as T.
template <class T>
double stored_as(double x) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(x)) return 0;
    x = std::nearbyint(x);
    return std::clamp(x, static_cast<double>(std::numeric_limits<T>::min()),
                      static_cast<double>(std::numeric_limits<T>::max()));
  } else if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    constexpr bool half = std::is_same_v<T, suture::half>;
    constexpr int bits = half ? 11 : 8, least = half ? -14 : -126;
    if (x == 0 || !std::isfinite(x)) return x;
    const double step = std::ldexp(1, std::max(std::ilogb(x), least) - bits + 1), y = std::nearbyint(x / step) * step;
    return half && abs(y) > 65504           ? std::copysign(INFINITY, y)
           : abs(y) > 3.3895313892515355e38 ? std::copysign(INFINITY, y)
                                            : y;
  }
}

// What is stored. A kernel loads it as float, which rounds integers of 32 bits.
template <class T>
double exactly(const T& stored) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(stored);
  else
    return static_cast<double>(suture::storage<T>::load(stored));
}

// The operations of a chain, one after the other, on one sample.
template <class Chain, class Plan>
class chain_reference {
public:
  chain_reference(const Chain& chain, const Plan& plan, std::size_t sample, sample_reference start)
      : r(std::move(start)), chain_(chain), plan_(plan), sample_(sample), source_(r.size()) {}

  template <class Maps>
  void follow(const Maps& maps) {
    source_maps_ = maps;
    walk(std::make_index_sequence<Chain::size>{});
    if (!sampled_) sample_now();
  }

  sample_reference r;
  std::vector<std::vector<known_label>> labels;

private:
  using sampling_type = typename Plan::pipeline_type::sampling_type;

  template <std::size_t... I>
  void walk(std::index_sequence<I...>) {
    (one<I>(), ...);
  }
  template <std::size_t I>
  void one() {
    using Op = suture::element_t<I, decltype(Chain::operations)>;
    constexpr suture::role role = suture::role_of<Op>();
    const Op& op = suture::get<I>(chain_.operations);
    if constexpr (role == suture::role::sampling) {
      constant_ = constant_of(op);
      outside_rule_ = rule_of<Op>::outside(op.border);
      outside_ = op.label_outside;
      return;
    } else {
      if (role == suture::role::value && I >= Plan::pipeline_type::output_begin && !sampled_) sample_now();
      operation_fields fields{r};
      if constexpr (suture::random_operation<Op>) {
        fields.random = true;
        fields.id = static_cast<std::uint16_t>(Op::kind << 4 | ordinal<I>(std::make_index_sequence<I>{}));
        const auto drawn = plan_.template drawn<I>(sample_);
        if (drawn.on) apply(drawn.parameters, fields, suture::name_of<Op>());
      } else if constexpr (suture::chosen_operation<Op>) {
        apply(plan_.template drawn<I>(sample_), fields, suture::name_of<Op>());
      } else if constexpr (!is_cast<Op>::value) {
        apply(op, fields, suture::name_of<Op>());
      }
    }
  }
  template <class T>
  struct is_cast : std::false_type {};
  template <class T>
  struct is_cast<suture::cast<T>> : std::true_type {};

  // How many operations of the same kind stand before.
  template <std::size_t I, std::size_t... J>
  static int ordinal(std::index_sequence<J...>) {
    using Ops = decltype(Chain::operations);
    const auto same = []<class Op>(const Op*) {
      if constexpr (suture::random_operation<Op>)
        return Op::kind == suture::element_t<I, Ops>::kind ? 1 : 0;
      else
        return 0;
    };
    return (0 + ... + same(static_cast<const suture::element_t<J, Ops>*>(nullptr)));
  }
  template <class Op>
  static double constant_of(const Op& op) {
    if constexpr (requires { op.border.value; })
      return static_cast<double>(op.border.value);
    else
      return 0;
  }

  template <class D>
  void apply(const D& drawn, const operation_fields& fields, std::string_view name) {
    constexpr bool moves =
        suture::geometry_operation<D> || suture::deformation_operation<D> || suture::inverse_operation<D>;
    if (!r.known && !moves) return;                             // places are known all the same
    if constexpr (requires { drawn.channel[0].parameters; }) {  // for each channel
      for (int c = 0; c < static_cast<int>(r.channels.size()); ++c)
        if (drawn.channel[c].on) {
          r.only = c;
          apply(drawn.channel[c].parameters, fields, name);
        }
      r.only = -1;
    } else if constexpr (requires { reference_of(r, drawn, fields); }) {
      reference_of(r, drawn, fields);
    } else if constexpr (requires { reference_of(r, drawn, fields, sample_); }) {
      reference_of(r, drawn, fields, sample_);
    } else {
      r.known = false;
      if (moves) r.places_known = false;
      r.without = name;
    }
  }

  void sample_now() {
    sampled_ = true;
    if (!r.places_known) return;
    using Rule = rule_of<sampling_type>;
    const auto& n = r.grid.extents;
    const bool moved = Plan::pipeline_type::has_geometry;
    std::vector<point> places;
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x) {
          point p{static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)};
          for (auto pull = r.pulls.rbegin(); pull != r.pulls.rend(); ++pull) p = (*pull)(p);
          // A place that is a voxel's up to the rounding of doubles is that voxel's.
          for (double& c : p)
            if (abs(c - std::nearbyint(c)) < 1e-9) c = std::nearbyint(c);
          places.push_back(p);
        }
    if (moved && r.known)
      for (auto& channel : r.channels) {
        const bounded_volume volume(channel, source_, {Rule::how, outside_rule_, constant_}, r.place_error);
        std::vector<bounded> out;
        for (const point& p : places) out.push_back(volume(p));
        channel = out;
      }
    for (const reference::volume& map : source_maps_) {
      labels.emplace_back();
      for (std::size_t e = 0; e < places.size(); ++e)
        labels.back().push_back(moved ? sampled_label<Rule>(map, places[e], outside_rule_, outside_, r.place_error)
                                      : known_label{map.values[e], true});
    }
  }

  const Chain& chain_;
  const Plan& plan_;
  std::size_t sample_;
  reference::size3 source_;
  std::vector<reference::volume> source_maps_;
  reference::outside outside_rule_ = reference::outside::blend_constant;
  double constant_ = 0, outside_ = 0;
  bool sampled_ = false;
};

template <class Case>
template <class Plan, class Results>
void case_check<Case>::check_reference(verdict& v, Batch& whole, const Plan& plan, const Results& first) {
  using Out = result_of<Plan>;
  const auto chain = whole.chain();
  const auto conversion = whole.conversion();
  char text[400];
  for (std::size_t i = 0; i < plan.size(); ++i) {
    sample_reference start;
    start.grid = all_.grids[i];
    start.seed = all_.seed, start.epoch = all_.epoch, start.id = all_.ids[i];
    const auto in = all_.in_layout.view(all_.images[i].data(), start.grid, all_.channels);
    start.channels.resize(static_cast<std::size_t>(all_.channels));
    each_voxel(start.grid.extents, all_.channels, [&](auto c, auto z, auto y, auto x) {
      start.channels[static_cast<std::size_t>(c)].push_back(
          {static_cast<double>(suture::storage<In>::load(element(in, c, z, y, x))), 0});
    });
    const auto map = all_.label_layout.view(all_.labels[i].data(), start.grid, all_.label_channels);
    std::vector<reference::volume> maps(static_cast<std::size_t>(all_.label_channels), reference::volume(start.size()));
    each_voxel(start.grid.extents, all_.label_channels, [&](auto c, auto z, auto y, auto x) {
      maps[static_cast<std::size_t>(c)].at(z, y, x) = static_cast<double>(element(map, c, z, y, x));
    });
    chain_reference expected(chain, plan, i, start);
    expected.follow(maps);
    const sample_reference& r = expected.r;
    v.voxels += static_cast<double>(first[i].image.size());
    if (!r.places_known) continue;

    const suture::grid& made = plan.output_grid(i);
    double apart = made.extents == r.grid.extents ? 0 : unknown;
    for (int k = 0; k < 3; ++k) {
      apart =
          std::fmax(apart, std::fmax(abs(made.spacing[k] - r.grid.spacing[k]), abs(made.origin[k] - r.grid.origin[k])));
      for (int j = 0; j < 3; ++j) apart = std::fmax(apart, abs(made.direction[k][j] - r.grid.direction[k][j]));
    }
    if (!(apart < 1e-6)) {
      std::snprintf(text, sizeof text,
                    "the reference: sample %zu has another grid, extents (%lld, %lld, %lld), apart by %g", i,
                    static_cast<long long>(r.grid.extents[0]), static_cast<long long>(r.grid.extents[1]),
                    static_cast<long long>(r.grid.extents[2]), apart);
      v.failures.push_back(text);
      continue;
    }
    const std::size_t voxels = r.voxels();
    const auto say = [&](const char* what, std::size_t c, std::size_t e, double got, double value, double error) {
      const auto& n = made.extents;
      const auto at = static_cast<std::int64_t>(e);
      std::snprintf(text, sizeof text,
                    "the reference: sample %zu, %s %zu, voxel (%lld, %lld, %lld): %.9g, expected %.9g within %.3g", i,
                    what, c, static_cast<long long>(at / (n[1] * n[2])), static_cast<long long>(at / n[2] % n[1]),
                    static_cast<long long>(at % n[2]), got, value, error);
      v.failures.push_back(text);
    };
    bool told = false;
    for (std::size_t c = 0; c < r.channels.size() && r.known; ++c)
      for (std::size_t e = 0; e < voxels; ++e) {
        const bounded& b = r.channels[c][e];
        if (b.error == unknown || abs(b.value) > 1e30) continue;
        const double got = exactly(first[i].image[c * voxels + e]);
        v.compared += 1;
        bool good = std::isnan(b.value) && std::isnan(stored_as<Out>(b.value)) ? std::isnan(got)
                    : std::isnan(b.value)
                        ? got == stored_as<Out>(b.value)
                        : got >= stored_as<Out>(b.value - b.error) && got <= stored_as<Out>(b.value + b.error);
        if (!good && !told) {
          told = true;
          say("channel", c, e, got, b.value, b.error);
        }
      }
    told = false;
    const std::size_t label_channels = first[i].labels.size() / voxels;
    for (std::size_t k = 0; k < label_channels && !told; ++k)
      for (std::size_t e = 0; e < voxels && !told; ++e) {
        const known_label& l = expected.labels[std::min(k, expected.labels.size() - 1)][e];
        if (!l.sure) continue;
        const double want = converted(conversion, l.value, static_cast<std::int64_t>(k));
        const double got = static_cast<double>(suture::storage<LabelOut>::load(first[i].labels[k * voxels + e]));
        told = got != want;
        if (told) say("label channel", k, e, got, want, 0);
      }
  }
}

}  // namespace fuzz
