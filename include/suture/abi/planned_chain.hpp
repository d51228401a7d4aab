// SPDX-License-Identifier: Apache-2.0
// `planned_chain` is the plan of a batch with its views, for callers in other languages that compile a chain at run
// time. chain.hpp and chain.cuh define a module, a shared library with a C ABI, for one chain:
//
//   #include <suture/abi/chain.hpp>
//   #include <suture/ops/value/window.hpp>
//   #include <suture/ops/label/remap.hpp>
//   SUTURE_ABI_CHAIN(suture::chain<suture::window>, suture::abi::image_slot<std::int16_t, float>,
//                    suture::abi::label_slot<std::uint8_t, std::uint8_t, suture::remap>)
//
// The functions of the module return 0, or another number with the message in suture_error():
//   suture_plan(request, &plan)               plans the batch; results[0] gets the output grid of each sample
//   suture_workspace(plan, request, &bytes)   computes the bytes of workspace that suture_run(plan, request) needs
//   suture_run(plan, request)                 writes the outputs
//   suture_source_boxes(plan, request)        results[0] gets the box of the source that each sample reads: 6
//                                             std::int64_t, its start and its size along z, y, x
//   suture_whole_source(plan, &text)          gets the reason why samples read their whole source, or an empty text
//   suture_drawn(plan, &text)                 gets the drawn values as JSON, valid until the next call in this thread
//   suture_geometry(plan, &geometry)          gets the coordinate maps of the plan, valid as long as the plan
//   suture_free(plan)                         deletes the plan
// suture_geometry and suture_free return nothing.
//
// Every request has `samples`, the size of the batch. That of suture_source_boxes has one result, six std::int64_t for
// each sample. The request of suture_plan has the ids, seed and epoch, and these members:
//   numbers, lists   the parameters of each operation in the order of the chain, then of each label conversion in the
//                    order of the slots; parameters are in the order of their struct, without those noted left_out
//   inputs           one for each slot
//   results          one: an abi::array for each sample
// Its lists and the memory of its inputs must outlive the plan. The addresses of its inputs may be null if each run
// has inputs of its own. The request of suture_workspace and suture_run has:
//   inputs           none, or one for each slot, which replace those of the plan
//   lists            one: for each slot its number of levels (std::int64_t), which is 0 except for a level_slot
//   outputs          for each slot the output on the full grid, then those on its levels
//
// Each kind of parameter is passed as follows, as numbers unless the table says otherwise:
//   float32, float64, int32, int64      the number
//   flag                                0 or 1
//   choice:ENUM                         the number of the enumerator
//   interval, value_range,              low, high
//   integer_interval
//   axis_ranges                         low, high along z, along y, along x
//   axis_values, point3, extent3,       z, y, x
//   flags3, floats3, int3
//   axis_order, axis_pair               three axes, two axes, of 0, 1, 2 for z, y, x
//   shears                              6, in the order of the struct
//   matrix3, stain_matrix               9, 6, row by row
//   stain_reference                     stains (6), max_concentration (2)
//   channel_statistics, color_target    mean (3), standard_deviation (3)
//   color_table                         its index in choices_of the color space
//   color_steps                         4, as choices
//   grid                                extents, spacing, origin (3 each), direction (9, row by row)
//   floats:N                            N
//   optional_int                        1 and the number, or 0 and 0
//   one_of (crop_by_class: rule)        its index in the variant, then the parameters of that rule
//   starts                              list of extent3 (3 std::int64_t each)
//   given_floats, float_list            list of float
//   given_flags                         list of std::uint8_t
//   holes                               list of rows of 6 std::int64_t: start and size along z, y, x
//   regions                             list of std::int32_t: number of sets; for each set the number of labels, the
//                                       labels
//   label_changes                       list of label_change (2 std::int32_t each: from, to)
//   results:TYPE                        list of TYPE
//   pointers:TYPE                       list of pointers
//   orientation                         list of 3 char
// per_channel_operation passes the parameters of the operation, then probability and synchronized. sampling passes
// `value` of the border `constant`, `value` and `rim` of default_value, nothing of other borders; then label_outside.
// inverse_affine and inverse_elastic pass a list of one abi::geometry, cast nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../evaluate/binding.hpp"
#include "../plan/source_box.hpp"
#include "../replay/value_text.hpp"
#include "parameters.hpp"

namespace suture::abi {

// The image that a chain reads and writes, with elements of type In and Out. Like the other slots it reads its views
// from a request: `read` for a plan, read_views and `take` for a run. bound() returns the binding.
template <class In, class Out>
struct image_slot {
  std::vector<view<const In>> in;
  std::vector<view<Out>> out;

  void read(reader& r) { read_views(r); }
  void read_views(reader& r) { in = r.template input<In>("input"); }
  void read_outputs(reader& r, std::int64_t levels) {
    require(levels == 0, r.where(), "levels: expected 0 for an image, got ", levels);
    out = r.template output<Out>("output");
  }
  auto bound() const { return image(in, out); }
};

// A label map that a chain reads as In and writes as Out by a label conversion.
template <class In, class Out, class Conversion = as_finished>
struct label_slot {
  Conversion conversion{};
  std::vector<view<const In>> in;
  std::vector<view<Out>> out;

  void read_views(reader& r) { in = r.template input<In>("input"); }
  void read(reader& r) {
    read_views(r);
    if constexpr (!std::is_same_v<Conversion, as_finished>) {
      r.begin(name_of<Conversion>());
      conversion = r.template next<Conversion>("");
    }
  }
  void read_outputs(reader& r, std::int64_t levels) {
    require(levels == 0, r.where(), "levels: expected 0 for labels without levels, got ", levels);
    out = r.template output<Out>("output");
  }
  auto bound() const { return labels(in, out, conversion, no_levels{}); }
};

// A label slot that also writes the label map to smaller grids, the levels of deep supervision.
template <class In, class Out, class Conversion = as_finished>
struct level_slot : label_slot<In, Out, Conversion> {
  std::vector<std::vector<view<Out>>> levels;

  void read_outputs(reader& r, std::int64_t count) {
    require(count >= 1, r.where(), "levels: expected 1 or more, got ", count);
    this->out = r.template output<Out>("output");
    levels.clear();
    for (std::int64_t k = 0; k < count; ++k) levels.push_back(r.template output<Out>("level"));
  }
  auto bound() const { return labels(this->in, this->out, this->conversion, deep_supervision(levels)); }
};

namespace detail {

// Reads the operations of a chain in order.
template <class Chain>
struct chain_codec;
template <class... Ops>
struct chain_codec<chain<Ops...>> {
  static chain<Ops...> read(reader& r) {
    const auto one = [&]<class Op>(const Op*) {
      r.begin(name_of<Op>());
      return r.template next<Op>("");
    };
    return {{{{one(static_cast<const Ops*>(nullptr))}...}}};  // braces evaluate from first to last
  }
};

// Calls `run` of the executor, which is found by argument-dependent lookup: this header includes no executor.
template <class Executor, class Plan, class... Bindings>
void run_on(const Executor& exec, const Plan& plan, const Bindings&... bindings) {
  run(exec, plan, bindings...);
}

}  // namespace detail

// Returns the executor that a request names. chain.hpp and chain.cuh specialize it.
template <class Executor>
Executor executor_of(const request& r);

// A plan with its slots, and the functions of it that a module exports.
template <class Executor, class Chain, class... Slots>
class planned_chain {
public:
  explicit planned_chain(const request& r) : planned_chain(reader(r, "plan")) {}

  const planned<Chain>& plan() const { return plan_; }

  static void make(const request& r, void** made) {
    auto planned = std::make_unique<planned_chain>(r);
    *made = planned.release();
  }
  static const planned_chain& of(void* made) { return *static_cast<const planned_chain*>(made); }
  // workspace, run and source_boxes may be called by several threads at once: each call copies the slots, and the plan
  // guards the source boxes that it keeps by a lock.
  std::uint64_t workspace(const request& r) const {
    return bound(with_outputs(r),
                 [](const auto& plan, const auto&... pairs) { return workspace_bytes(plan, pairs...); });
  }
  void run(const request& r) const {
    bound(with_outputs(r),
          [&](const auto& plan, const auto&... pairs) { detail::run_on(executor_of<Executor>(r), plan, pairs...); });
  }
  void source_boxes(const request& given) const {
    reader r(given, "source_boxes");
    const auto boxes = r.template result<box_row>("boxes", static_cast<std::int64_t>(plan_.size()));
    r.finish();
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      const voxel_box box = source_box(plan_, i);
      boxes[i] = {box.first[0], box.first[1], box.first[2], box.size[0], box.size[1], box.size[2]};
    }
  }
  geometry maps() const {
    const auto maps = plan_.geometry();
    return {maps.first, static_cast<std::int64_t>(maps.step), static_cast<std::int64_t>(maps.size())};
  }

private:
  using box_row = std::array<std::int64_t, 6>;

  explicit planned_chain(reader&& r) : plan_(planned_of(r)) {
    r.begin("plan");
    const auto out = r.template result<array>("grids", static_cast<std::int64_t>(plan_.size()));
    r.finish();
    for (std::size_t i = 0; i < plan_.size(); ++i) write_grid(plan_.output_grid(i), out[i]);
  }

  planned<Chain> planned_of(reader& r) {
    const Chain operations = detail::chain_codec<Chain>::read(r);
    each(slots_, [&](auto& slot, std::size_t) {
      r.begin("plan");
      slot.read(r);
    });
    return planned<Chain>(operations, grids(get<0>(slots_).in), settings_of(r));
  }
  static settings settings_of(const reader& given) {
    const request& r = given.request();
    return {.seed = r.seed,
            .epoch = r.epoch,
            .sample_ids = given.ids(),
            .evaluation = r.evaluation != 0,
            .image = r.image,
            .same_ids = r.same_ids != 0};
  }

  // Returns copies of the slots with the inputs and outputs of a request of suture_run.
  pack<Slots...> with_outputs(const request& given) const {
    reader r(given, "run");
    const auto levels = r.template list<std::int64_t>("levels");
    require(levels.size() == sizeof...(Slots), r.where(), "levels: expected ", sizeof...(Slots), " numbers, got ",
            levels.size());
    require(static_cast<std::size_t>(given.samples) == plan_.size(), r.where(), "samples: expected ", plan_.size(),
            ", got ", given.samples);
    pack<Slots...> slots = slots_;
    if (given.input_count > 0) each(slots, [&](auto& slot, std::size_t) { slot.read_views(r); });
    each(slots, [&](auto& slot, std::size_t b) { slot.read_outputs(r, levels[b]); });
    r.finish();
    return slots;
  }
  template <class F>
  auto bound(const pack<Slots...>& slots, const F& f) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return f(plan_, get<I>(slots).bound()...); }
    (std::index_sequence_for<Slots...>{});
  }
  template <class F>
  static void each(pack<Slots...>& slots, const F& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(get<I>(slots), I), ...); }
    (std::index_sequence_for<Slots...>{});
  }

  pack<Slots...> slots_{};
  planned<Chain> plan_;
};

}  // namespace suture::abi

// Defines the functions of a module of a chain; `...` is the executor, the chain and the slots.
#define SUTURE_ABI_PLANNED_CHAIN(...)                                                                      \
  SUTURE_ABI_MODULE                                                                                        \
  namespace {                                                                                              \
  using suture_planned_chain = suture::abi::planned_chain<__VA_ARGS__>;                                    \
  }                                                                                                        \
  SUTURE_ABI int suture_plan(const suture::abi::request* request, void** made) {                           \
    return suture::abi::guarded([&] { suture_planned_chain::make(*request, made); });                      \
  }                                                                                                        \
  SUTURE_ABI int suture_workspace(void* made, const suture::abi::request* request, std::uint64_t* bytes) { \
    return suture::abi::guarded([&] { *bytes = suture_planned_chain::of(made).workspace(*request); });     \
  }                                                                                                        \
  SUTURE_ABI int suture_run(void* made, const suture::abi::request* request) {                             \
    return suture::abi::guarded([&] { suture_planned_chain::of(made).run(*request); });                    \
  }                                                                                                        \
  SUTURE_ABI int suture_source_boxes(void* made, const suture::abi::request* request) {                    \
    return suture::abi::guarded([&] { suture_planned_chain::of(made).source_boxes(*request); });           \
  }                                                                                                        \
  SUTURE_ABI int suture_whole_source(void* made, const char** text) {                                      \
    return suture::abi::guarded(                                                                           \
        [&] { *text = suture::needs_whole_source(suture_planned_chain::of(made).plan()).data(); });        \
  }                                                                                                        \
  SUTURE_ABI int suture_drawn(void* made, const char** text) {                                             \
    static thread_local std::string drawn;                                                                 \
    return suture::abi::guarded([&] {                                                                      \
      drawn = suture::drawn_text(suture_planned_chain::of(made).plan());                                   \
      *text = drawn.c_str();                                                                               \
    });                                                                                                    \
  }                                                                                                        \
  SUTURE_ABI void suture_geometry(void* made, suture::abi::geometry* out) {                                \
    *out = suture_planned_chain::of(made).maps();                                                          \
  }                                                                                                        \
  SUTURE_ABI void suture_free(void* made) { delete static_cast<suture_planned_chain*>(made); }
