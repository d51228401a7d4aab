// SPDX-License-Identifier: Apache-2.0
// Checks before a run. They refuse views that do not fit the plan or the operations, and outputs that overlap.
#pragma once

#include <algorithm>
#include <limits>

#include "../../evaluate/evaluator.hpp"
#include "../../plan/plan.hpp"
#include "../../plan/source_box.hpp"

namespace suture::detail {

// Returns by how many voxels the origins of two grids differ along each axis of the planned one, or 0 along an axis
// where rounding explains the difference. Rounding explains 1e-3 voxels, and what 1e-6 of each component of the planned
// origin amounts to. Origins have components along the axes of the world, and voxels lie along the axes of the array.
// So the difference is converted to voxels before it is compared.
SUTURE_NOINLINE inline point3 shift_in_voxels(const grid& a, const grid& planned) {
  const matrix3 to_voxels = planned.physical_to_index().linear;
  point3 shift{};
  for (int k = 0; k < 3; ++k) {
    double moved = 0, rounding = 0;
    for (int j = 0; j < 3; ++j) {
      moved = fma(to_voxels[k][j], a.origin[j] - planned.origin[j], moved);
      rounding = fma(std::abs(to_voxels[k][j]), 1e-6 * std::abs(planned.origin[j]), rounding);
    }
    if (!(std::abs(moved) <= 1e-3 + rounding)) shift[k] = moved;  // NaN differs
  }
  return shift;
}

// Refuses the grid of an image or a label map that differs from the planned one by more than the rounding of files.
// Tolerances are 1e-4 of the spacing, 1e-4 in each component of the direction, and for the origin those of
// shift_in_voxels.
inline void check_geometry(const grid& a, const grid& planned, const site& where) {
  constexpr std::string_view differs = "geometry differs from the planned one: ";
  const std::string_view advice = where.operation == "labels"
                                      ? ". Turn or resample the label map to the grid of its image"
                                      : ". Run the plan on the grids that it was made for";
  require(a.extents == planned.extents, where, differs, "extents ", a.extents, ", planned ", planned.extents, advice);
  for (int k = 0; k < 3; ++k) {
    require(std::abs(a.spacing[k] - planned.spacing[k]) <= 1e-4 * planned.spacing[k], where, differs, "spacing ",
            a.spacing, ", planned ", planned.spacing, ", ", a.spacing[k] - planned.spacing[k], " more along axis ", k,
            advice);
    for (int j = 0; j < 3; ++j)
      require(std::abs(a.direction[j][k] - planned.direction[j][k]) <= 1e-4, where, differs, "direction of axis ", k,
              " ", point3{a.direction[0][k], a.direction[1][k], a.direction[2][k]}, ", planned ",
              point3{planned.direction[0][k], planned.direction[1][k], planned.direction[2][k]}, advice);
  }
  if (a.origin == planned.origin) return;
  const point3 shift = shift_in_voxels(a, planned);
  for (int k = 0; k < 3; ++k)
    require(shift[k] == 0, where, differs, "origin ", a.origin, ", planned ", planned.origin, ", ", shift[k],
            " voxels more along axis ", k, advice);
}

// Refuses an image with more channels than a functor of the pack has parameters for (per_channel).
template <class... Fs>
void check_channels(const pack<Fs...>*, std::int64_t channels, const site& where) {
  [[maybe_unused]] const auto one = [&]<class F>(std::type_identity<F>) {
    if constexpr (requires { F::max_channels; })
      require(channels <= F::max_channels, where, "the image has ", channels, " channels, ", F::name,
              " draws for each of at most ", F::max_channels);
  };
  (one(std::type_identity<typename unswitched<Fs>::type>{}), ...);
}

template <class Binding>
void check_levels(const Binding& b, std::size_t i, const site& where) {
  if (b.levels.count == 0) return;
  const auto& full = b.out[i];
  for (int k = 0; k < 3; ++k)
    require(full.grid.extents[k] <= longest_axis_with_levels, where, "output extents ", full.grid.extents, " exceed ",
            longest_axis_with_levels, " voxels along an axis, which levels are made for");
  for (std::size_t l = 0; l < b.levels.count; ++l) {
    const auto& views = b.levels.views[l];
    require(views.size() == b.samples(), where, "level ", l, " has ", views.size(), " views for ", b.samples(),
            " samples");
    const auto& level = views[i];
    check_writable(level, where, "level: ");
    require(level.channels == full.channels, where, "level ", l, " has ", level.channels, " channels, the output ",
            full.channels);
    for (int k = 0; k < 3; ++k)
      require(level.grid.extents[k] <= full.grid.extents[k], where, "level ", l, " of extents ", level.grid.extents,
              " is larger than the output's ", full.grid.extents);
  }
}

// Refuses a partial input whose box lacks a voxel that sample i may read.
template <class Plan>
void check_source_box(const Plan& plan, std::size_t i, const voxel_box& box, const site& where) {
  const voxel_box needed = source_box(plan, i);
  require(box.contains(needed), where, "input: box: expected to hold ", needed.size, " voxels from ", needed.first,
          ", got ", box.size, " from ", box.first, ". Read source_box(plan, sample)");
}

template <class Plan, class Binding>
void check_binding(const Plan& plan, const Binding& b) {
  constexpr std::string_view name = Binding::name;
  [[maybe_unused]] std::int64_t channels = 0;
  if constexpr (Binding::converts) {
    [[maybe_unused]] const auto functor = prepared_conversion_of(b);
    if constexpr (Binding::to_channels) {
      channels = functor.channels();
      require(channels > 0, {conversion_name<Binding>()}, "makes ", channels, " channels");
    }
  }
  require(b.samples() == plan.size(), {name}, b.samples(), " input views for ", plan.size(), " planned samples");
  require(b.out.size() == plan.size() || b.out.empty(), {name}, b.out.size(), " output views for ", plan.size(),
          " planned samples");
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    const auto in = b.source(i);
    check_partial(in, where, "input: ");
    if constexpr (Plan::pipeline_type::is_color && !Binding::is_label)
      require(in.channels == 3, where, "operations on color take 3 channels (red, green, blue), the image has ",
              in.channels);
    if constexpr (!Binding::is_label) {
      check_channels(static_cast<const typename Plan::pipeline_type::source_functors*>(nullptr), in.channels, where);
      check_channels(static_cast<const typename Plan::pipeline_type::output_functors*>(nullptr), in.channels, where);
      check_channels(static_cast<const typename Plan::pipeline_type::stage_functors*>(nullptr), in.channels, where);
      plan.check_image(in.channels, i);
    }
    check_geometry(in.grid, plan.source_grid(i), where);
    if (is_partial(in)) check_source_box(plan, i, in.box, where);
    if constexpr (!std::is_same_v<typename Plan::pipeline_type::border_type, wrap>)
      for (int k = 0; k < 3; ++k)
        require(std::abs(in.stride[k]) < (std::int64_t{1} << 28) || in.grid.extents[k] == 1, where, "strides ",
                in.stride, " exceed 2^28 elements along an axis");
    if (!b.out.empty()) {
      const auto& out = b.out[i];
      check_writable(out, where, "output: ");
      require(out.grid.extents == plan.output_grid(i).extents, where, "output extents ", out.grid.extents,
              " differ from the planned ", plan.output_grid(i).extents);
      if constexpr (Binding::to_channels) {
        require(in.channels == 1, where, "the label map has ", in.channels, " channels; ", conversion_name<Binding>(),
                " takes one");
        require(out.channels == channels, where, "output has ", out.channels, " channels, ", conversion_name<Binding>(),
                " makes ", channels);
      } else {
        require(out.channels == in.channels, where, "output has ", out.channels, " channels, input ", in.channels);
      }
      if constexpr (Binding::has_levels) check_levels(b, i, where);
    }
    if constexpr (Binding::is_label) {
      using T = typename Binding::input;
      const auto outside = plan.rule().label_outside;
      require(outside >= std::int64_t{std::numeric_limits<T>::min()} &&
                  outside <= std::int64_t{std::numeric_limits<T>::max()},
              where, "label_outside ", outside,
              " does not fit the label type; give a signed label map, int8 say, or another label_outside");
    }
  }
}

// Refuses an output that overlaps an input or another output. In nearly every run the byte ranges of the views are
// already disjoint. Views that interleave, such as slices of a volume across its rows, are compared pair by pair.
template <class... Bindings>
void check_overlap(const Bindings&... bindings) {
  struct tagged {
    byte_range range;
    bool output;
    std::string_view name;
    std::int64_t sample;
  };
  const auto for_views = [&](const auto& visit) {
    const auto of = [&](const auto& b) {
      for (std::size_t i = 0; i < b.samples(); ++i) {
        visit(b.source(i), false, b.name, i);
        if (!b.out.empty()) visit(b.out[i], true, b.name, i);
        if constexpr (std::remove_cvref_t<decltype(b)>::has_levels)
          for (std::size_t l = 0; l < b.levels.count; ++l) visit(b.levels.views[l][i], true, b.name, i);
      }
    };
    (of(bindings), ...);
  };
  std::vector<tagged> all;
  for_views([&](const auto& v, bool output, std::string_view name, std::size_t i) {
    all.push_back({bytes(v), output, name, static_cast<std::int64_t>(i)});
  });
  const auto earlier = [](const auto& a, const auto& b) { return a.range.first < b.range.first; };
  std::sort(all.begin(), all.end(), earlier);
  // Inputs may share memory: the sweep keeps the furthest end of the outputs and of all views.
  std::uintptr_t end_output = 0, end_any = 0;
  bool apart = true;
  for (const tagged& t : all) {
    apart = apart && t.range.first >= (t.output ? end_any : end_output);
    end_any = std::max(end_any, t.range.last);
    if (t.output) end_output = std::max(end_output, t.range.last);
  }
  if (apart) return;
  struct placed : tagged {
    lattice elements;
  };
  std::vector<placed> each;
  for_views([&](const auto& v, bool output, std::string_view name, std::size_t i) {
    each.push_back({{bytes(v), output, name, static_cast<std::int64_t>(i)}, lattice_of(v)});
  });
  std::sort(each.begin(), each.end(), earlier);
  for (std::size_t j = 0; j < each.size(); ++j)
    for (std::size_t i = j + 1; i < each.size() && each[i].range.first < each[j].range.last; ++i) {
      const placed &before = each[j], &t = each[i];
      if (t.output || before.output)
        require(!share_memory(before.elements, t.elements), {t.name, t.sample}, t.output ? "output" : "input",
                " overlaps ", t.output ? "an input or another output" : "an output", " in memory");
    }
}

// Tests whether the arguments of a run are a plan and bindings. If not, a static_assert names the mistake, and the
// false result lets the caller skip the code that would add errors of its own.
template <class Plan, class... Bindings>
constexpr bool all_bound() {
  constexpr bool is_plan = requires { typename Plan::pipeline_type; };
  constexpr bool any = sizeof...(Bindings) > 0, all = (is_binding_v<Bindings> && ...);
  static_assert(is_plan,
                "suture: run: expected a plan, got something else. Make one first: const auto p = suture::plan(chain, "
                "views, settings), then run(exec, p, image(in, out))");
  static_assert(!is_plan || any, "suture: bind at least one image or label map");
  static_assert(!is_plan || all,
                "suture: run: bind views with suture::image(in, out) or labels(in, out); seed, epoch and sample_ids "
                "belong to the settings of suture::plan");
  return is_plan && any && all;
}

template <class Plan, class... Bindings>
void check_bindings(const Plan& plan, const Bindings&... bindings) {
  (check_binding(plan, bindings), ...);
  check_overlap(bindings...);
}

// Calls visit(pointer, where, role) for every bound view; `role` begins the message. Consecutive views that begin at
// the same address are visited once.
template <class Visit, class... Bindings>
void each_bound_pointer(const Visit& visit, const Bindings&... bindings) {
  const void* before = nullptr;
  const auto of = [&](const void* p, const site& where, std::string_view role) {
    if (p != before) visit(p, where, role);
    before = p;
  };
  const auto of_binding = [&]<class B>(const B& b) {
    const auto at = [](std::size_t i) { return site{B::name, static_cast<std::int64_t>(i)}; };
    for (std::size_t i = 0; i < b.samples(); ++i)
      of(reinterpret_cast<const void*>(first_address(b.source(i))), at(i), "input: ");
    for (std::size_t i = 0; i < b.out.size(); ++i) of(b.out[i].data, at(i), "output: ");
    if constexpr (B::has_levels)
      for (std::size_t l = 0; l < b.levels.count; ++l)
        for (std::size_t i = 0; i < b.samples(); ++i) of(b.levels.views[l][i].data, at(i), "level: ");
  };
  (of_binding(bindings), ...);
}

// Calls visit(pointer, where, role) for the control values of each sample's elastic deformation. The pointer is null if
// the deformation is drawn.
template <class Plan, class Visit>
void each_control_values(const Plan& plan, const Visit& visit) {
  if constexpr (Plan::pipeline_type::has_deformation)
    for (std::size_t i = 0; i < plan.size(); ++i)
      visit(plan.geometry(i).drawn.given, site{"elastic", static_cast<std::int64_t>(i)}, "control_values: ");
}

// Refuses a binding without output views, which only prepare() accepts.
template <class Binding>
void require_output(const Binding& b) {
  require(!b.out.empty(), {Binding::name}, "no output views; bind them, or use prepare and the evaluator");
}

}  // namespace suture::detail
