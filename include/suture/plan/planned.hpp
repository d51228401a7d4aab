// SPDX-License-Identifier: Apache-2.0
// A plan: a pipeline with the random parameters, the checks and the output grids of a batch, made on the host before
// anything runs. All geometry of a sample is composed, in double, to one 3x4 map and at most one displacement. Every
// random parameter is drawn from (seed, epoch, sample id, operation) alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "../evaluate/binding.hpp"
#include "../image/digest.hpp"
#include "../pipeline/color_logarithms.hpp"
#include "../pipeline/operation_id.hpp"
#include "set_geometry.hpp"
#include "settings.hpp"

namespace suture {

namespace detail {

// The draw that a plan stores if a caller changed it. Unchanged draws are drawn again on request.
struct nothing_kept {};
template <class Op>
using changed_drawing = std::conditional_t<random_operation<Op>, std::optional<drawing<drawn_t<Op>>>, nothing_kept>;
// The results of chosen() of a chosen operation, one for each sample.
template <class Op>
using choices = std::conditional_t<chosen_operation<Op>, std::vector<drawn_t<Op>>, nothing_kept>;

// Keeps the draws of a plan unchanged.
struct no_change {
  template <std::size_t I, class Drawn>
  void operator()(Drawn&, std::size_t) const {}
};

// Calls check_fitted() of a functor that acts; returns false if functors of its type have none.
template <class F>
bool checks_fitted(const F& f, const site& where) {
  if constexpr (requires { bare(f).check_fitted(where); }) {
    if (is_on(f)) bare(f).check_fitted(where);
    return true;
  }
  return false;
}

}  // namespace detail

template <class Chain>
class planned;

template <class... Ops>
class planned<chain<Ops...>> {
public:
  using chain_type = chain<Ops...>;
  using pipeline_type = pipeline<chain_type>;
  using parameters_type = sample_parameters<pipeline_type>;
  static_assert(detail::operation_ids_distinct<Ops...>(),
                "suture: at most 16 random operations of one kind in a pipeline, and kinds below 4096");

  planned(const chain_type& operations, std::span<const grid> batch, const settings& s)
      : planned(operations, batch, s, detail::no_change{}) {}

  // Plans a batch with changed draws: change.operator()<I>(drawing, sample) may edit the draw of random operation I,
  // and sets that of a chosen operation.
  template <class Change>
  planned(const chain_type& operations, std::span<const grid> batch, const settings& s, const Change& change)
      : operations_(operations), settings_(s), ids_(s.sample_ids.begin(), s.sample_ids.end()) {
    settings_.sample_ids = ids_.empty() ? std::span<const std::uint64_t>() : ids_;
    require(!batch.empty(), {"plan"}, "the batch is empty");
    require(batch.size() <= 65535, {"plan"}, "batch of ", batch.size(), " samples exceeds 65535");
    detail::check_ids(s, batch.size(), pipeline_type::has_random);
    read_rule();
    if constexpr (changes<Change>) changed_.resize(batch.size());
    choose(batch.size(), change);
    samples_.reserve(batch.size());
    walk w;
    for (std::size_t first = 0; first < batch.size(); first += lanes) {
      make_rows(w.rows, first);
      w.same_input = w.same_output = 0;
      const std::size_t end = std::min(first + lanes, batch.size());
      for (std::size_t i = first; i < end; ++i) plan_geometry(w, i, batch, change);
      plan_values(w, first, end, change);
    }
    settings_.sample_ids = {};  // those of the plan are copied with it
  }

  std::size_t size() const { return samples_.size(); }
  static constexpr int stages() { return pipeline_type::stages; }
  const parameters_type& sample(std::size_t i) const { return samples_[i].parameters; }
  const typename pipeline_type::sampling_type& rule() const { return rule_; }
  std::int64_t control_vectors() const { return control_vectors_; }

  const grid& source_grid(std::size_t i) const { return geometry(i).source; }
  const grid& output_grid(std::size_t i) const { return geometry(i).output; }
  std::vector<grid> output_grids() const {
    std::vector<grid> g;
    g.reserve(size());
    for (const auto& each : samples_) g.push_back(each.geometry.output);
    return g;
  }
  const detail::sample_geometry& geometry(std::size_t i) const { return samples_[i].geometry; }
  detail::geometry_list geometry() const { return {&samples_[0].geometry, sizeof(sample_plan), size()}; }

  // Returns the boxes of source_box(), which make() computes on the first call. Copies of a plan share them.
  template <class Make>
  const std::vector<voxel_box>& kept_boxes(const Make& make) const {
    const std::lock_guard<std::mutex> alone(boxes_->guard);
    if (boxes_->of_sample.empty()) boxes_->of_sample = make();
    return boxes_->of_sample;
  }

  // Seed and epoch of the plan. Without ids every sample has the id 0.
  std::uint64_t seed() const { return settings_.seed; }
  std::uint32_t epoch() const { return settings_.epoch; }
  bool evaluation() const { return settings_.evaluation; }
  std::uint32_t image() const { return settings_.image; }
  std::uint64_t sample_id(std::size_t i) const { return ids_.empty() ? 0 : ids_[i]; }
  // Returns what random operation I drew for sample i, whether it acts or not; for a chosen operation, the choice.
  template <std::size_t I>
  auto drawn(std::size_t i) const {
    if constexpr (chosen_operation<operation_type<I>>)
      return deterministic<I>(i);
    else
      return drawn_at_random<I>(i);
  }

  // Calls `check_fitted(site)` of the functors that have it. They read fitted results, so that the memory of the
  // executor must be that of the host.
  void check_fitted() const {
    each_operation([&]<std::size_t I, class Op>(index<I>, const Op&) {
      if constexpr (pipeline_type::has_functor(I))
        for (std::size_t i = 0; i < size(); ++i)
          if (!detail::checks_fitted(slot<I>(samples_[i].parameters), site_of<Op>(i))) return;
    });
  }

  // Calls visit(pointer, where, role) for results of fits that operations read from the memory of the executor, such as
  // `fitted`.
  template <class Visit>
  void each_fitted(const Visit& visit) const {
    each_operation([&]<class Op>(auto, const Op& op) {
      if constexpr (requires { op.fitted.data(); })
        if (!op.fitted.empty()) visit(op.fitted.data(), site{Op::name}, "fitted results: ");
    });
  }

  // Calls `check_image(channels, samples, site)` of the operations that have it, for an image bound for sample i.
  void check_image(std::int64_t channels, std::size_t i) const {
    each_operation([&]<class Op>(auto, const Op& op) {
      if constexpr (requires { op.check_image(channels, size(), site_of<Op>(i)); })
        op.check_image(channels, size(), site_of<Op>(i));
    });
  }

private:
  template <std::size_t I>
  using index = std::integral_constant<std::size_t, I>;
  // Calls f(index<I>, operation I) for all operations in order.
  template <class F>
  void each_operation(const F& f) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(index<I>{}, get<I>(operations_.operations)), ...); }
    (std::index_sequence_for<Ops...>{});
  }

  template <std::size_t I>
  auto drawn_at_random(std::size_t i) const {
    using D = drawing<drawn_t<operation_type<I>>>;
    if (!changed_.empty()) return D(*get<I>(changed_[i]));
    if constexpr (pipeline_type::roles[I] == role::value) {
      return drawn_on<I>(i, grid_of_value<I>(i), geometry(i));
    } else {
      sample_plan p(source_grid(i));
      walk w;
      w.i = i;
      w.p = &p;
      w.on = &p.geometry.output;
      replan(w, std::make_index_sequence<I>{});
      return drawn_on<I>(i, *w.on, p.geometry);
    }
  }

  template <std::size_t I>
  using operation_type = element_t<I, decltype(chain_type::operations)>;
  template <std::size_t I>
  static constexpr std::uint16_t id_of = detail::operation_id<I, Ops...>();
  template <std::size_t I>
  static constexpr std::size_t random_before = detail::count_before<I, random_operation<Ops>...>;
  // The seed of operation I.
  template <std::size_t I>
  std::uint64_t seed_of() const {
    if constexpr (pipeline_type::roles[I] == role::value)
      return settings_.image == 0 ? seed() : mix64(seed() ^ mix64(settings_.image));
    else
      return seed();
  }
  template <class Change>
  static constexpr bool changes = !std::is_same_v<Change, detail::no_change>;

  // The random numbers of one operation for up to `lanes` consecutive samples.
  static constexpr std::size_t lanes = 16;
  struct stream_row {
    planned_streams streams;
    float probability;
    std::uint32_t fires;  // one bit per sample: the operation acts, apart from evaluation
  };
  using stream_rows = std::array<stream_row, random_before<sizeof...(Ops)>>;

  struct sample_plan {
    // Random functors start as off.
    explicit sample_plan(const grid& g) : geometry(g) {
      std::memset(static_cast<void*>(&parameters.source_functors), 0, sizeof parameters.source_functors);
      std::memset(static_cast<void*>(&parameters.output_functors), 0, sizeof parameters.output_functors);
      std::memset(static_cast<void*>(&parameters.stage_functors), 0, sizeof parameters.stage_functors);
    }
    parameters_type parameters;
    detail::sample_geometry geometry;
  };

  // The state of up to `lanes` samples that are being planned. Geometry is planned sample by sample, then each value
  // operation for all of them, so that an operation that is off costs nothing. The current grid is that of the last
  // step or, after an operation that picks voxels, of the sample's geometry. The next sample reuses steps for the same
  // grid.
  struct walk {
    stream_rows rows;
    std::size_t i = 0;
    sample_plan* p = nullptr;
    const grid* on = nullptr;
    bool same = false;  // the current grid is that of the previous sample
    // One bit per sample: the source grid, or the output grid, is that of the previous sample.
    std::uint32_t same_input = 0, same_output = 0;
    detail::room<geometry_step> steps[sizeof...(Ops)];
  };

  void make_rows(stream_rows& rows, std::size_t first) const {
    std::uint64_t ids[lanes];
    for (std::size_t l = 0; l < lanes; ++l) ids[l] = first + l < ids_.size() ? ids_[first + l] : 0;
    each_operation([&]<std::size_t I, class Op>(index<I>, const Op& op) {
      if constexpr (random_operation<Op>) {
        stream_row& row = rows[random_before<I>];
        row.streams.begin({seed_of<I>(), epoch(), 0, id_of<I>, 0}, ids);
        row.probability = op.probability;
      }
    });
    // An operation that always fires creates its streams when it draws.
    for (stream_row& row : rows)
      if (row.probability != 1) row.streams.make_streams();
    for (stream_row& row : rows)
      if (row.probability != 1) row.streams.make_first_blocks();
    for (stream_row& row : rows) row.fires = row.probability == 1 ? ~0u : row.streams.below(row.probability);
  }

  void read_rule() {
    each_operation([&]<class Op>(auto, const Op& op) {
      if constexpr (std::is_same_v<Op, typename pipeline_type::sampling_type>) {
        rule_ = op;
        // Weights of both signs turn an infinite border into NaN, which a prefilter carries through the volume.
        if constexpr (requires {  // a refused sampling has nothing to check
                        requires Op::border_type::has_value;
                        requires(Op::interpolation_type::taps > 2);
                      })
          require(std::isfinite(op.border.value), {name_of<Op>()}, "border value ", op.border.value,
                  " must be finite where four voxels along an axis are weighed: catmull_rom, torch_cubic and "
                  "cubic_bspline; linear and nearest take any");
      }
    });
  }

  template <class Change>
  void choose([[maybe_unused]] std::size_t samples, [[maybe_unused]] const Change& change) {
    each_operation([&]<std::size_t I, class Op>(index<I>, const Op& op) {
      if constexpr (chosen_operation<Op>) {
        if constexpr (!changes<Change>) op.check_samples(samples, {name_of<Op>()});
        auto& all = get<I>(chosen_);
        all.reserve(samples);
        for (std::size_t i = 0; i < samples; ++i) {
          if constexpr (changes<Change>)
            change.template operator()<I>(all.emplace_back(op.unchosen()), i);
          else
            all.push_back(op.chosen(i));
        }
      } else if constexpr (counts_samples<Op> && !changes<Change>) {
        if (!settings_.evaluation) op.check_samples(samples, {name_of<Op>()});
      }
    });
  }
  // Returns operation I, which is not random, for sample i.
  template <std::size_t I>
  const auto& deterministic([[maybe_unused]] std::size_t i) const {
    if constexpr (chosen_operation<operation_type<I>>)
      return get<I>(chosen_)[i];
    else
      return get<I>(operations_.operations);
  }

  template <class Change>
  void plan_geometry(walk& w, std::size_t i, std::span<const grid> batch, const Change& change) {
    const site where = at("plan", i);
    w.i = i;
    w.same = i > 0 && identical(batch[i - 1], batch[i]);
    if (!w.same) check(batch[i], where, i > 0 ? &batch[i - 1] : nullptr);
    w.same_input |= (w.same ? 1u : 0u) << i % lanes;
    w.p = &samples_.emplace_back(batch[i]);
    w.on = &w.p->geometry.output;
    each_operation([&]<std::size_t I, class Op>(index<I>, const Op& op) {
      if constexpr (pipeline_type::roles[I] == role::geometry || pipeline_type::roles[I] == role::deformation)
        plan_operation<I>(op, w, change);
    });
    detail::set_geometry(w.p->parameters, w.p->geometry, *w.on, control_vectors_, where);
    if (w.on != &w.p->geometry.output) w.p->geometry.output = *w.on;
    w.same_output |= (w.same ? 1u : 0u) << i % lanes;
  }

  template <class Change>
  void plan_values(walk& w, std::size_t first, std::size_t end, const Change& change) {
    each_operation([&]<std::size_t I, class Op>(index<I>, const Op& op) {
      if constexpr (pipeline_type::has_functor(I)) {
        if constexpr (random_operation<Op>)
          draw_values<I>(op, w, first, end, change);
        else
          prepare_values<I>(op, w, first, end);
      }
    });
    for (std::size_t i = first; i < end; ++i) {
      detail::pass_on_logarithms(samples_[i].parameters.source_functors);
      detail::pass_on_logarithms(samples_[i].parameters.output_functors);
    }
  }

  template <class Op>
  auto draw(const Op& op, draws& random, bool fires, const grid& on, const detail::sample_geometry& so_far,
            const site& where) const {
    using D = drawing<drawn_t<Op>>;
    if constexpr (has_evaluation<Op>)
      if (settings_.evaluation) return D{op.evaluation(on, where), true};
    const placed_grid at{on, so_far.source, so_far.to_source};
    return D{detail::draw_at(op, random, at, where), fires && !settings_.evaluation};
  }

  // Draws operation I for sample i again.
  template <std::size_t I>
  auto drawn_on(std::size_t i, const grid& on, const detail::sample_geometry& so_far) const {
    const auto& op = get<I>(operations_.operations);
    draws random(seed_of<I>(), epoch(), sample_id(i), id_of<I>);
    const bool fires = random.bernoulli(op.probability);
    return draw(op, random, fires, on, so_far, site_of<operation_type<I>>(i));
  }
  // Repeats the geometry among operations I for the current sample of a walk.
  template <std::size_t... I>
  void replan([[maybe_unused]] walk& w, std::index_sequence<I...>) const {
    (replan_operation<I>(w), ...);
  }
  template <std::size_t I>
  SUTURE_NOINLINE void replan_operation([[maybe_unused]] walk& w) const {
    using Op = operation_type<I>;
    if constexpr (pipeline_type::roles[I] == role::geometry || pipeline_type::roles[I] == role::deformation) {
      if constexpr (random_operation<Op>) {
        const auto made = drawn_on<I>(w.i, *w.on, w.p->geometry);
        add_operation<I>(made.parameters, made.on, site_of<Op>(w.i), w);
      } else {
        add_operation<I>(deterministic<I>(w.i), true, site_of<Op>(w.i), w);
      }
    }
  }

  // Checks the parameters of a random operation, with the first sample, even if the operation does not act on it.
  template <class Op>
  static void check_random(const Op& op, const site& where) {
    require(op.probability >= 0 && op.probability <= 1, where, "probability ", op.probability, " is not in [0, 1]");
    if constexpr (checks_recipe<Op>) op.check(where);
  }

  template <std::size_t I, class Op, class Change>
  auto drawn_for(const Op& op, std::size_t i, stream_rows& rows, const grid& on, const Change& change) {
    const detail::sample_geometry& so_far = samples_[i].geometry;
    stream_row& row = rows[random_before<I>];
    const int lane = static_cast<int>(i % lanes);
    draws random(row.streams, lane);
    auto made = draw(op, random, (row.fires >> lane & 1) != 0, on, so_far, site_of<Op>(i));
    if constexpr (changes<Change>) change_drawn<I>(made, i, change);
    return made;
  }
  template <std::size_t I, class Made, class Change>
  SUTURE_NOINLINE void change_drawn(Made& made, std::size_t i, const Change& change) {
    change.template operator()<I>(made, i);
    get<I>(changed_[i]).emplace(made);
  }

  // Draws a geometry operation for one sample and applies it. If it is off it is drawn for the first sample alone, to
  // check its parameters.
  template <std::size_t I, class Op, class Change>
  void plan_operation(const Op& op, walk& w, const Change& change) {
    const site where = site_of<Op>(w.i);
    if constexpr (random_operation<Op>) {
      if (w.i == 0) check_random(op, where);
      if constexpr (checks_each_sample<Op>) op.check_sample(where);
      if constexpr (pipeline_type::roles[I] == role::geometry && !changes<Change>) {
        const bool fires = (w.rows[random_before<I>].fires >> w.i % lanes & 1) != 0;
        const bool acts = settings_.evaluation ? has_evaluation<Op> : fires;
        if (!acts && w.i > 0) {
          w.same = w.same && keeps_grid<Op>();
          return;
        }
      }
      const auto made = drawn_for<I>(op, w.i, w.rows, *w.on, change);
      add_operation<I>(made.parameters, made.on, where, w);
    } else {
      add_operation<I>(deterministic<I>(w.i), true, where, w);
    }
  }

  // Prepares a deterministic value operation for the samples from first to end.
  template <std::size_t I, class Op>
  void prepare_values(const Op& op, const walk& w, std::size_t first, std::size_t end) {
    const std::uint32_t same = I < pipeline_type::begin ? w.same_input : w.same_output;
    for (std::size_t i = first; i < end; ++i) {
      auto& functor = slot<I>(samples_[i].parameters);
      const bool known =
          depends_on_grid_alone<Op>() && i > 0 && (!prepares_on_grid<Op> || (same >> i % lanes & 1) != 0);
      if (known)
        functor = slot<I>(samples_[i - 1].parameters);
      else
        detail::make_at(functor, [&] { return detail::prepared(op, grid_of_value<I>(i), site_of<Op>(i)); });
    }
  }
  // Draws a random value operation for those samples from first to end in which it acts.
  template <std::size_t I, class Op, class Change>
  SUTURE_FLATTEN void draw_values(const Op& op, walk& w, std::size_t first, std::size_t end, const Change& change) {
    if (first == 0) check_random(op, site_of<Op>(0));
    if constexpr (checks_each_sample<Op>)
      for (std::size_t i = first; i < end; ++i) op.check_sample(site_of<Op>(i));
    const std::uint32_t fires = w.rows[random_before<I>].fires;
    std::uint32_t acts = settings_.evaluation ? (has_evaluation<Op> ? ~0u : 0u) : fires;
    if (changes<Change>) acts = ~0u;
    if (first == 0) acts |= 1;
    for (acts &= (1u << (end - first)) - 1; acts != 0; acts &= acts - 1) {
      const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(acts));
      const grid& on = grid_of_value<I>(i);
      const auto made = drawn_for<I>(op, i, w.rows, on, change);
      using functor = std::remove_reference_t<decltype(slot<I>(samples_[i].parameters))>;
      detail::make_at(slot<I>(samples_[i].parameters), [&] {
        return functor{detail::prepared(made.parameters, on, site_of<Op>(i)), made.on ? 1u : 0u};
      });
    }
  }

  // Error context of sample i; ids exist only during construction.
  site at(std::string_view name, std::size_t i) const {
    return {name, static_cast<std::int64_t>(i), settings_.sample_ids.data()};
  }
  template <class Op>
  site site_of(std::size_t i) const {
    return at(name_of<Op>(), i);
  }
  // The grid that value operation I works on.
  template <std::size_t I>
  const grid& grid_of_value(std::size_t i) const {
    return I < pipeline_type::begin ? source_grid(i) : output_grid(i);
  }

  // Applies a geometry operation to the state of its sample: composes the map and sets the current grid.
  template <std::size_t I, class D>
  SUTURE_INLINE static void add_operation(const D& op, bool on, const site& where, walk& w) {
    constexpr role r = pipeline_type::roles[I];
    detail::sample_geometry& geometry = w.p->geometry;
    if constexpr (r == role::geometry) {
      [[maybe_unused]] geometry_step& step = w.steps[I].value;
      const bool known = w.same && depends_on_grid_alone<operation_type<I>>();
      affine_map& map = geometry.deformed ? geometry.to_deformed : geometry.to_source;
      if constexpr (!keeps_grid<D>()) w.same = known;
      if (!on) return;
      if constexpr (picks_voxels<D>) {
        const bool sound = detail::pick(op.picked(*w.on, where), *w.on, geometry.output, map);
        w.on = &geometry.output;
        if (!sound) detail::check_apart(*w.on, where);
      } else {
        if (!known) {
          detail::make_at(step, [&] { return op.step(*w.on, where); });
          if constexpr (!keeps_grid<D>()) check(step.output, where, w.on);
        }
        map = composed(map, step.pull);
        if constexpr (!keeps_grid<D>()) w.on = &step.output;
      }
    } else if constexpr (inverse_operation<D>) {
      const detail::sample_geometry undone = op.undone(*w.on, where);
      check(undone.output, where);
      w.same = false;
      w.on = &(w.steps[I].value.output = undone.output);
      geometry.to_source = geometry.to_source * undone.to_source;
      geometry.to_deformed = undone.to_deformed;
      geometry.drawn = undone.drawn;
      geometry.deformed = undone.deformed;
      geometry.inverted = true;
    } else {
      check_control_points(detail::make_at(geometry.drawn, [&] { return op.deform(*w.on, where); }), where);
      geometry.deformed = on;
    }
  }

  // Slot of the functor of operation I.
  template <std::size_t I, class Item>
  static auto& slot(Item& sample) {
    if constexpr (I < pipeline_type::source_functor_count)
      return get<I>(sample.source_functors);
    else if constexpr (I < pipeline_type::fused_end)
      return get<I - pipeline_type::output_begin>(sample.output_functors);
    else
      return get<I - pipeline_type::fused_end>(sample.stage_functors);
  }

  chain_type operations_;
  typename pipeline_type::sampling_type rule_{};
  std::vector<sample_plan> samples_;
  std::int64_t control_vectors_ = 0;
  std::vector<pack<detail::changed_drawing<Ops>...>> changed_;  // by sample; empty unless draws were changed
  pack<detail::choices<Ops>...> chosen_;
  settings settings_;
  std::vector<std::uint64_t> ids_;
  struct source_boxes {
    std::mutex guard;
    std::vector<voxel_box> of_sample;
  };
  std::shared_ptr<source_boxes> boxes_ = std::make_shared<source_boxes>();
};

}  // namespace suture
