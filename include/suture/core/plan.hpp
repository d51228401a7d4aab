// SPDX-License-Identifier: Apache-2.0
// plan(pipeline, batch, settings): checks, draws and sizes a pipeline for a batch, on the host, before anything runs.
// All geometry of a sample collapses, in double, into one 3x4 map (and at most one displacement), and every random
// parameter is drawn from (seed, epoch, sample id, operation) alone.
#pragma once

#include <algorithm>
#include <optional>
#include <ranges>
#include <vector>

#include "binding.hpp"

namespace suture {

struct settings {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  // One persistent id per sample (a dataset index, never the batch position). Required when anything is random.
  std::span<const std::uint64_t> sample_ids = {};
  // Same pipeline, random operations switched off.
  bool evaluation = false;
};

// The grids of a range of views.
template <class Views>
std::vector<grid> grids(const Views& views) {
  std::vector<grid> g;
  for (const auto& v : views) g.push_back(v.grid);
  return g;
}

namespace detail {

template <class Op>
constexpr int kind_of() {
  if constexpr (random_operation<Op>)
    return Op::kind;
  else
    return -1;
}

// What a plan keeps of an operation for one sample: what it drew.
struct nothing_drawn {};
template <class Op>
struct kept_drawing {
  using type = nothing_drawn;
};
template <random_operation Op>
struct kept_drawing<Op> {
  using type = std::optional<drawing<drawn_t<Op>>>;
};

// Leaves the draws of a plan as they are.
struct no_change {
  template <std::size_t I, class Drawn>
  void operator()(drawing<Drawn>&, std::size_t) const {}
};

// 16-bit id of operation I of a chain: its kind and its ordinal among its kind, so that inserting an operation of
// another kind changes no draw.
template <std::size_t I, class... Ops>
constexpr std::uint16_t operation_id() {
  constexpr std::array<int, sizeof...(Ops)> kinds{kind_of<Ops>()...};
  int ordinal = 0;
  for (std::size_t j = 0; j != I; ++j) ordinal += kinds[j] == kinds[I] ? 1 : 0;
  return static_cast<std::uint16_t>(kinds[I] * 16 + ordinal);
}

// At most 16 random operations of a kind, kinds below 4096: then ids are distinct.
template <class... Ops>
constexpr bool operation_ids_distinct() {
  constexpr std::array<int, sizeof...(Ops)> kinds{kind_of<Ops>()...};
  for (int kind : kinds) {
    int count = 0;
    for (int other : kinds) count += other == kind && kind >= 0 ? 1 : 0;
    if (count > 16 || kind > 4095) return false;
  }
  return true;
}

}  // namespace detail

template <class Chain>
class planned;

template <class... Ops>
class planned<chain<Ops...>> {
public:
  using chain_type = chain<Ops...>;
  using pipeline_type = pipeline<chain_type>;
  using item_type = item<pipeline_type>;
  static_assert(detail::operation_ids_distinct<Ops...>(),
                "suture: at most 16 random operations of one kind in a pipeline, and kinds below 4096");

  planned(const chain_type& operations, std::span<const grid> batch, const settings& s)
      : planned(operations, batch, s, detail::no_change{}) {}

  // change.operator()<I>(drawing, sample) has its way with what operation I drew.
  template <class Change>
  planned(const chain_type& operations, std::span<const grid> batch, const settings& s, const Change& change)
      : settings_(s), ids_(s.sample_ids.begin(), s.sample_ids.end()) {
    settings_.sample_ids = {};
    require(!batch.empty(), {"plan"}, "the batch is empty");
    require(batch.size() <= 65535, {"plan"}, "batch of ", batch.size(), " samples exceeds 65535");
    if (pipeline_type::has_random && !s.evaluation)
      require(s.sample_ids.size() == batch.size(), {"plan"}, s.sample_ids.size(), " sample ids for ", batch.size(),
              " samples; random operations need one persistent id per sample");
    else
      require(s.sample_ids.empty() || s.sample_ids.size() == batch.size(), {"plan"}, s.sample_ids.size(),
              " sample ids for ", batch.size(), " samples");
    read_rule(operations, std::index_sequence_for<Ops...>{});
    items_.resize(batch.size());
    geometry_.resize(batch.size());
    drawn_.resize(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      sample_ = static_cast<std::int64_t>(i);
      check(batch[i], {"plan", sample_});
      geometry_[i].source = geometry_[i].output = batch[i];
      plan_sample(operations, change, items_[i], geometry_[i], std::index_sequence_for<Ops...>{});
      finish(items_[i], geometry_[i]);
    }
  }

  std::size_t size() const { return items_.size(); }
  static constexpr int stages() { return pipeline_type::stages; }
  const item_type& sample(std::size_t i) const { return items_[i]; }
  const typename pipeline_type::sampling_type& rule() const { return rule_; }
  std::int64_t control_vectors() const { return control_vectors_; }

  const grid& source_grid(std::size_t i) const { return geometry_[i].source; }
  const grid& output_grid(std::size_t i) const { return geometry_[i].output; }
  std::vector<grid> output_grids() const {
    std::vector<grid> g;
    for (const auto& each : geometry_) g.push_back(each.output);
    return g;
  }
  const detail::sample_geometry& geometry(std::size_t i) const { return geometry_[i]; }
  std::span<const detail::sample_geometry> geometry() const { return geometry_; }

  // What it was planned with. Without ids every sample has the id 0.
  std::uint64_t seed() const { return settings_.seed; }
  std::uint32_t epoch() const { return settings_.epoch; }
  bool evaluation() const { return settings_.evaluation; }
  std::uint64_t sample_id(std::size_t i) const { return ids_.empty() ? 0 : ids_[i]; }
  // What operation I, a random one, drew for sample i.
  template <std::size_t I>
  const auto& drawn(std::size_t i) const {
    return *get<I>(drawn_[i]);
  }

private:
  template <std::size_t... I>
  void read_rule(const chain_type& operations, std::index_sequence<I...>) {
    const auto one = [&]<class Op>(const Op& op) {
      if constexpr (detail::is_sampling<Op>::value) rule_ = op;
    };
    (one(get<I>(operations.operations)), ...);
  }

  template <class Change, std::size_t... I>
  void plan_sample(const chain_type& operations, const Change& change, item_type& out,
                   detail::sample_geometry& geometry, std::index_sequence<I...>) {
    (plan_operation<I>(get<I>(operations.operations), change, out, geometry), ...);
  }

  // Draws one operation for one sample and files it by its role.
  template <std::size_t I, class Op, class Change>
  void plan_operation(const Op& op, const Change& change, item_type& out, detail::sample_geometry& geometry) {
    const site where{name_of<Op>(), sample_};
    if constexpr (detail::is_sampling<Op>::value) {
      return;
    } else if constexpr (random_operation<Op>) {
      require(op.probability >= 0 && op.probability <= 1, where, "probability ", op.probability, " is not in [0, 1]");
      const settings& s = settings_;
      const auto i = static_cast<std::size_t>(sample_);
      draws random(s.seed, s.epoch, sample_id(i), detail::operation_id<I, Ops...>());
      const bool fires = random.bernoulli(op.probability);
      bool on = fires && !s.evaluation;
      const auto parameters = [&] {
        if constexpr (has_evaluation<Op>) {
          if (s.evaluation) {
            on = true;
            return op.evaluation(geometry.output, where);
          }
        }
        if constexpr (draws_on_grid<Op>)
          return op.draw(random, geometry.output, where);
        else
          return op.draw(random, where);
      }();
      auto& drawn = get<I>(drawn_[i]);
      drawn.emplace(drawing<drawn_t<Op>>{parameters, on});
      change.template operator()<I>(*drawn, i);
      file<I>(drawn->parameters, drawn->on, where, out, geometry);
    } else {
      file<I>(op, true, where, out, geometry);
    }
  }

  template <std::size_t I, class D>
  void file(const D& op, bool on, const site& where, item_type& out, detail::sample_geometry& geometry) {
    constexpr role r = pipeline_type::roles[I];
    if constexpr (r == role::geometry) {
      if (!on) return;
      const geometry_step step = op.step(geometry.output, where);
      check(step.output, where);
      affine_map& inner = geometry.deformed ? geometry.to_deformed : geometry.to_source;
      inner = inner * step.pull;
      geometry.output = step.output;
    } else if constexpr (inverse_operation<D>) {
      const detail::sample_geometry undone = op.undone(geometry.output, where);
      check(undone.output, where);
      geometry.output = undone.output;
      geometry.to_source = geometry.to_source * undone.to_source;
      geometry.to_deformed = undone.to_deformed;
      geometry.drawn = undone.drawn;
      geometry.deformed = undone.deformed;
      geometry.inverted = true;
    } else if constexpr (r == role::deformation) {
      geometry.drawn = op.deform(geometry.output, where);
      geometry.deformed = on;
    } else if constexpr (I < pipeline_type::tap_count) {
      store_functor(get<I>(out.taps), detail::prepared(op, geometry.output, where), on);
    } else if constexpr (I < pipeline_type::fused_end) {
      store_functor(get<I - pipeline_type::output_begin>(out.outputs), detail::prepared(op, geometry.output, where),
                    on);
    } else {
      store_functor(get<I - pipeline_type::fused_end>(out.later), detail::prepared(op, geometry.output, where), on);
    }
  }

  template <class F>
  static void store_functor(F& slot, const F& functor, bool) {
    slot = functor;
  }
  template <class F>
  static void store_functor(switched<F>& slot, const F& functor, bool on) {
    slot = {functor, on ? 1u : 0u};
  }

  void finish(item_type& out, const detail::sample_geometry& geometry) {
    const grid& target = geometry.output;
    for (int k = 0; k < 3; ++k) out.extents[k] = static_cast<std::int32_t>(target.extents[k]);
    const affine_map map = geometry.to_source * geometry.to_deformed;
    for (int corner = 0; corner < 8; ++corner) {
      point3 p{};
      for (int k = 0; k < 3; ++k) p[k] = (corner >> k) & 1 ? static_cast<double>(target.extents[k] - 1) : 0.0;
      const point3 q = map(p);
      for (int k = 0; k < 3; ++k)
        require(std::abs(q[k]) < fixed_coordinate_limit, {"plan", sample_}, "output voxel ", p,
                " maps to source index ", q, ", more than ", fixed_coordinate_limit, " voxels away");
    }
    out.map = to_fixed(map);
    const auto& row = out.map.linear[0];
    bool planar = geometry.source.extents[0] == 1 && target.extents[0] == 1 && out.map.offset[0] == 0 && row[1] == 0 &&
                  row[2] == 0;
    if (geometry.deformed) {
      const auto& z = geometry.to_source.linear[0];
      planar = planar && geometry.drawn.amplitude[0] == 0 && z[1] == 0 && z[2] == 0;
    }
    out.planar = planar ? 1u : 0u;
    if constexpr (pipeline_type::has_deformation) {
      auto& c = out.controls;
      c.to_control = to_fixed(geometry.drawn.to_control * geometry.to_deformed);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) c.to_source[i][j] = static_cast<float>(geometry.to_source.linear[i][j]);
      if constexpr (pipeline_type::inverts_deformation) invert_controls(c, geometry);
      c.drawn = geometry.drawn;
      c.vectors = nullptr;
      c.first = control_vectors_;
      c.on = geometry.deformed ? 1u : 0u;
      // Whether drawn or not, so that the workspace does not depend on chance.
      const auto n = vec_cast<double>(geometry.drawn.control_points);
      require(n[0] * n[1] * n[2] < 2147483648.0, {"plan", sample_}, geometry.drawn.control_points,
              " control points are more than 2^31; widen control_spacing_mm");
      control_vectors_ += static_cast<std::int64_t>(n[0] * n[1] * n[2]);
    }
  }

  // The displacement is solved for in control cells, and so its vectors count cells.
  static void invert_controls(inverse_control_grid& c, const detail::sample_geometry& geometry) {
    for (int k = 0; k < 3; ++k) {
      const double cells = geometry.drawn.to_control.linear[k][k];
      c.tolerance[k] = static_cast<float>(std::max(cells * inverse_tolerance_voxels, inverse_tolerance_cells));
      for (int i = 0; i < 3; ++i) {
        c.from_control[i][k] = static_cast<float>(geometry.to_source.linear[i][k] / cells);
        c.to_source[i][k] = i == k ? static_cast<float>(cells) : 0.0f;
      }
    }
  }

  typename pipeline_type::sampling_type rule_{};
  std::vector<item_type> items_;
  std::vector<detail::sample_geometry> geometry_;
  std::int64_t control_vectors_ = 0;
  std::vector<pack<typename detail::kept_drawing<Ops>::type...>> drawn_;
  settings settings_;
  std::vector<std::uint64_t> ids_;
  std::int64_t sample_ = 0;
};

// Plans a chain, or one operation, for a batch given as grids or as views.
template <class Pipeline, class Batch>
auto plan(const Pipeline& operations, const Batch& batch, const settings& s = {}) {
  const auto c = as_chain(operations);
  static_assert(std::ranges::range<Batch>,
                "suture: plan takes a range of grids or views, one per sample; a single one as std::span(&x, 1)");
  using value = std::ranges::range_value_t<Batch>;
  if constexpr (std::is_same_v<value, grid>) {
    return planned<std::remove_const_t<decltype(c)>>(c, std::span<const grid>(batch), s);
  } else {
    const std::vector<grid> g = grids(batch);
    return planned<std::remove_const_t<decltype(c)>>(c, g, s);
  }
}

}  // namespace suture
