// SPDX-License-Identifier: Apache-2.0
// From a plan and its bound views to the records the executors read: every check of pointers and shapes, the
// workspace layout, and the records themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "../../evaluate/evaluator.hpp"
#include "../../evaluate/plane_column.hpp"
#include "../../plan/plan.hpp"

namespace suture {

// Where things lie in the workspace, as byte offsets.
// Records come first, then what depends on the number of samples and channels alone: a graph holds its place, whatever
// the extents of the volumes.
struct workspace_layout {
  std::size_t sums = 0;          // of the moments between stages
  std::size_t statistics = 0;    // those moments
  std::size_t spectra = 0;       // sums over k-space
  std::size_t vectors = 0;       // control vectors
  std::size_t coefficients = 0;  // B-spline coefficients, float
  std::size_t between = 0;       // images between stages, float
  std::size_t bytes = 0;
};

// What has been handed out so far.
struct workspace_cursor {
  std::size_t coefficients = 0, statistics = 0, spectra = 0, between = 0;  // in elements
};

namespace detail {

inline constexpr std::size_t workspace_alignment = 256;
constexpr std::size_t aligned(std::size_t n) {
  return (n + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

// Voxels of B-spline coefficients of one channel.
template <class Pipeline>
std::size_t coefficient_voxels(const grid& g) {
  std::size_t n = 1;
  for (int k = 0; k < 3; ++k) n *= static_cast<std::size_t>(g.extents[k] + 2 * Pipeline::padding);
  return n;
}

// Moments of one image between stages, one per stage and channel.
template <class Pipeline>
std::size_t moments_per_image(std::int64_t channels) {
  return staging<Pipeline>::emits_any
             ? static_cast<std::size_t>(channels) * static_cast<std::size_t>(staging<Pipeline>::count)
             : 0;
}
template <class Pipeline>
std::size_t spectra_per_image(std::int64_t channels) {
  return staging<Pipeline>::spikes
             ? static_cast<std::size_t>(channels) * static_cast<std::size_t>(staging<Pipeline>::count)
             : 0;
}
// Floats of one image between stages, in all the places it needs; each place begins aligned.
template <class Pipeline>
std::size_t floats_between(const grid& g, std::int64_t channels) {
  const auto n = static_cast<std::size_t>(channels * g.voxels());
  return aligned(n * sizeof(float)) / sizeof(float) * static_cast<std::size_t>(staging<Pipeline>::buffers);
}

template <class Binding>
std::int64_t channels_of(const Binding& b, std::size_t i) {
  const std::int64_t channels = b.source(i).channels;
  suture::check_channels(channels, {Binding::name, static_cast<std::int64_t>(i)}, "input: ");
  return channels;
}

template <class Plan, class... Bindings>
workspace_layout layout(const Plan& plan, const Bindings&... bindings) {
  using P = typename Plan::pipeline_type;
  workspace_layout l;
  l.sums = aligned(plan.size() * sizeof(typename evaluator<P, Bindings...>::record_type));
  std::size_t coefficients = 0;
  if constexpr (P::prefiltered) {
    const auto add = [&]<class B>(const B& b) {
      require(b.samples() == plan.size(), {B::name}, b.samples(), " input views for ", plan.size(), " planned samples");
      if constexpr (!B::is_label)
        for (std::size_t i = 0; i < plan.size(); ++i)
          coefficients += static_cast<std::size_t>(channels_of(b, i)) * coefficient_voxels<P>(plan.source_grid(i));
    };
    (add(bindings), ...);
  }
  std::size_t statistics = 0, spectra = 0, between = 0;
  if constexpr (P::is_staged) {
    const auto add = [&]<class B>(const B& b) {
      require(b.samples() == plan.size(), {B::name}, b.samples(), " input views for ", plan.size(), " planned samples");
      if constexpr (!B::is_label) {
        for (std::size_t i = 0; i < plan.size(); ++i) {
          const std::int64_t channels = channels_of(b, i);
          statistics += moments_per_image<P>(channels);
          spectra += spectra_per_image<P>(channels);
          between += floats_between<P>(plan.output_grid(i), channels);
        }
      }
    };
    (add(bindings), ...);
  }
  l.statistics = l.sums + aligned(statistics * sizeof(patch_sums));
  l.spectra = l.statistics + aligned(statistics * sizeof(moments));
  l.vectors = l.spectra + aligned(spectra * sizeof(spectral_sums));
  l.coefficients = l.vectors + aligned(static_cast<std::size_t>(plan.control_vectors()) * sizeof(control_vector));
  l.between = l.coefficients + aligned(coefficients * sizeof(float));
  l.bytes = l.between + aligned(between * sizeof(float));
  return l;
}

// `counted_by` is the function that tells a caller how much is needed, `role` stands ahead of what is said.
inline void check_workspace(const void* data, std::size_t size, std::size_t needed, const site& where = {"workspace"},
                            std::string_view role = "", std::string_view counted_by = "workspace_bytes") {
  require(needed == 0 || (size > 0 && data != nullptr), where, role, "none was given, ", needed,
          " bytes are needed, as ", counted_by, "() says");
  require(size >= needed, where, role, size, " bytes given, ", needed, " needed, as ", counted_by, "() says");
  require(reinterpret_cast<std::uintptr_t>(data) % workspace_alignment == 0, where, role, "pointer ", data,
          " is not aligned to ", workspace_alignment, " bytes");
}

// Says what of a grid is not as planned, up to the rounding of files.
inline void check_geometry(const grid& a, const grid& planned, const site& where) {
  constexpr std::string_view differs = "geometry differs from the planned one: ";
  require(a.extents == planned.extents, where, differs, "extents ", a.extents, ", planned ", planned.extents);
  for (int k = 0; k < 3; ++k) {
    require(std::abs(a.spacing[k] - planned.spacing[k]) <= 1e-4 * planned.spacing[k], where, differs, "spacing ",
            a.spacing, ", planned ", planned.spacing, ", ", a.spacing[k] - planned.spacing[k], " more along axis ", k);
    require(std::abs(a.origin[k] - planned.origin[k]) <= 1e-3 * planned.spacing[k] + 1e-6 * std::abs(planned.origin[k]),
            where, differs, "origin ", a.origin, ", planned ", planned.origin, ", ", a.origin[k] - planned.origin[k],
            " more in component ", k);
    for (int j = 0; j < 3; ++j)
      require(std::abs(a.direction[j][k] - planned.direction[j][k]) <= 1e-4, where, differs, "direction of axis ", k,
              " ", point3{a.direction[0][k], a.direction[1][k], a.direction[2][k]}, ", planned ",
              point3{planned.direction[0][k], planned.direction[1][k], planned.direction[2][k]});
  }
}

// A functor may hold parameters for so many channels (per_channel): it then says how many.
template <class F>
void check_channels(std::int64_t channels, const site& where) {
  if constexpr (requires { F::max_channels; })
    require(channels <= F::max_channels, where, "the image has ", channels, " channels, ", F::name,
            " draws for each of at most ", F::max_channels);
}
template <class... Fs>
void check_channels(const pack<Fs...>*, [[maybe_unused]] std::int64_t channels, const site& where) {
  (check_channels<typename unswitched<Fs>::type>(channels, where), ...);
}

// What error messages call a conversion.
template <class Binding>
constexpr std::string_view conversion_name() {
  if constexpr (requires { Binding::conversion_type::name; })
    return Binding::conversion_type::name;
  else
    return "the conversion";
}

// The functor of a binding's conversion, its parameters checked.
template <class Binding>
auto prepared_conversion_of(const Binding& b) {
  if constexpr (prepared_conversion<typename Binding::conversion_type>)
    return b.conversion.prepare(label_types_of<typename Binding::input, typename Binding::output>(),
                                site{conversion_name<Binding>()});
  else
    return b.conversion;
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
    check(in, where, "input: ");
    if constexpr (Plan::pipeline_type::is_color && !Binding::is_label)
      require(in.channels == 3, where, "operations on color take 3 channels (red, green, blue), the image has ",
              in.channels);
    if constexpr (!Binding::is_label) {
      check_channels(static_cast<const typename Plan::pipeline_type::taps*>(nullptr), in.channels, where);
      check_channels(static_cast<const typename Plan::pipeline_type::outputs*>(nullptr), in.channels, where);
      check_channels(static_cast<const typename Plan::pipeline_type::later*>(nullptr), in.channels, where);
      plan.check_image(in.channels, i);
    }
    check_geometry(in.grid, plan.source_grid(i), where);
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

// No output may overlap an input or another output. First by ranges of bytes, which is enough for nearly all; views
// that interleave, as the slices of a volume across its rows do, are then looked at two by two.
template <class... Bindings>
void check_overlap(const Bindings&... bindings) {
  struct tagged {
    byte_range range;
    bool output;
    std::string_view name;
    std::int64_t sample;
  };
  const auto for_views = [&](const auto& take) {
    const auto of = [&](const auto& b) {
      for (std::size_t i = 0; i < b.samples(); ++i) {
        take(b.source(i), false, b.name, i);
        if (!b.out.empty()) take(b.out[i], true, b.name, i);
        if constexpr (std::remove_cvref_t<decltype(b)>::has_levels)
          for (std::size_t l = 0; l < b.levels.count; ++l) take(b.levels.views[l][i], true, b.name, i);
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
  // Inputs may share memory; sweep with the furthest end seen of outputs and of anything.
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

template <class... Bindings>
constexpr bool all_bound() {
  static_assert(sizeof...(Bindings) > 0, "suture: bind at least one image or label map");
  static_assert((is_binding_v<Bindings> && ...), "suture: bind views with suture::image(in, out) or labels(in, out)");
  return true;
}

template <class Plan, class... Bindings>
void check_bindings(const Plan& plan, const Bindings&... bindings) {
  (check_binding(plan, bindings), ...);
  check_overlap(bindings...);
}

// The B-spline coefficients of one image, as a dense (channel, z, y, x) volume in the workspace.
struct record_coefficients {
  float* data;
  std::int32_t extents[3];
};
inline record_coefficients coefficients_of(const source_tensor& s) {
  return {static_cast<float*>(const_cast<void*>(s.data)), {s.extents[0], s.extents[1], s.extents[2]}};
}

// The image itself, which the coefficients are made from.
template <class Binding>
source_tensor raw_source(const Binding& b, std::size_t i) {
  const auto in = b.source(i);
  source_tensor s{};
  s.data = in.data;
  for (int k = 0; k < 3; ++k) {
    s.extents[k] = static_cast<std::int32_t>(in.grid.extents[k]);
    s.stride[k] = in.stride[k];
  }
  count_pairs(s.stride, s.extents, s.pairs);
  s.channel_stride = in.channel_stride;
  s.channels = static_cast<std::int32_t>(in.channels);
  const bool whole = in.stride[0] % 4 == 0 && in.stride[1] % 4 == 0 && in.stride[2] == 4 && in.channel_stride == 1;
  s.side_by_side = whole && in.channels == 4 &&
                           reinterpret_cast<std::uintptr_t>(in.data) % (4 * sizeof(typename Binding::input)) == 0
                       ? 1
                       : 0;
  return s;
}

// The tap at a voxel of the source extended by its border rule.
template <class Pipeline, class Binding>
SUTURE_FN typename Pipeline::value_type padded_tap(const sample_parameters<Pipeline>& sample, const source_tensor& s,
                                                   const typename Pipeline::border_type& border,
                                                   std::int32_t sample_index, std::int32_t channel, std::int32_t z,
                                                   std::int32_t y, std::int32_t x) {
  using B = typename Pipeline::border_type;
  const std::int32_t iz = B::index(z, s.extents[0]), iy = B::index(y, s.extents[1]), ix = B::index(x, s.extents[2]);
  if constexpr (B::has_value) {
    if ((iz | iy | ix) < 0) return uniform<typename Pipeline::value_type>(border.value);
  }
  return pair_evaluator<Pipeline, Binding>::tap(sample, s, sample_index, channel, iz, iy, ix);
}

// The same for every channel of one bound image: store(channel, tap).
SUTURE_NO_EXEC_CHECK
template <class Pipeline, class Binding, class Store>
SUTURE_FN void each_padded_tap(const sample_parameters<Pipeline>& sample, const source_tensor& s,
                               const typename Pipeline::border_type& border, std::int32_t sample_index, std::int32_t z,
                               std::int32_t y, std::int32_t x, const Store& store) {
  if constexpr (Pipeline::is_color) {
    const rgb v = padded_tap<Pipeline, Binding>(sample, s, border, sample_index, 0, z, y, x);
    SUTURE_UNROLL
    for (std::int32_t channel = 0; channel < 3; ++channel) store(channel, v.c[channel]);
  } else {
    for (std::int32_t channel = 0; channel < s.channels; ++channel)
      store(channel, padded_tap<Pipeline, Binding>(sample, s, border, sample_index, channel, z, y, x));
  }
}

// visit(pointer, where, role) for every view that is bound. Views in a row that begin at one place count once.
template <class Visit, class... Bindings>
void each_bound_pointer(const Visit& visit, const Bindings&... bindings) {
  const void* before = nullptr;
  const auto of = [&](const void* p, const site& where, std::string_view role) {
    if (p != before) visit(p, where, role);
    before = p;
  };
  const auto of_binding = [&]<class B>(const B& b) {
    const auto at = [](std::size_t i) { return site{B::name, static_cast<std::int64_t>(i)}; };
    for (std::size_t i = 0; i < b.samples(); ++i) of(b.source(i).data, at(i), "input: ");
    for (std::size_t i = 0; i < b.out.size(); ++i) of(b.out[i].data, at(i), "output: ");
    if constexpr (B::has_levels)
      for (std::size_t l = 0; l < b.levels.count; ++l)
        for (std::size_t i = 0; i < b.samples(); ++i) of(b.levels.views[l][i].data, at(i), "level: ");
  };
  (of_binding(bindings), ...);
}

// A run writes; an evaluator need not.
template <class Binding>
void require_output(const Binding& b) {
  require(!b.out.empty(), {Binding::name}, "no output views; bind them, or use prepare and the evaluator");
}

// Finds an image its place between stages.
template <class Pipeline>
void place_between(staged_tensor& t, const grid& g, std::int64_t channels, const target_tensor& out,
                   const workspace_layout& l, std::byte* workspace, workspace_cursor& used) {
  auto* const floats = reinterpret_cast<float*>(workspace + l.between) + used.between;
  const std::size_t count = floats_between<Pipeline>(g, channels);
  constexpr std::size_t places = staging<Pipeline>::buffers;
  for (std::size_t k = 0; k < 3; ++k) t.data[k] = floats + (k < places ? k : 0) * (count / places);
  t.out = out;
  t.statistics = reinterpret_cast<moments*>(workspace + l.statistics) + used.statistics;
  t.sums = reinterpret_cast<patch_sums*>(workspace + l.sums) + used.statistics;
  t.spectra = reinterpret_cast<spectral_sums*>(workspace + l.spectra) + used.spectra;
  t.channels = static_cast<std::int32_t>(channels);
  t.spectra_per_channel = staging<Pipeline>::spikes ? staging<Pipeline>::count : 0;
  t.moments_per_channel = staging<Pipeline>::emits_any ? staging<Pipeline>::count : 0;
  used.between += count;
  used.statistics += moments_per_image<Pipeline>(channels);
  used.spectra += spectra_per_image<Pipeline>(channels);
}

// Where the fused part writes an image that has its place between stages: there or, if a run stores to the output and
// no stage changes any channel, to the output.
template <class Pair, class Pipeline>
target_tensor fused_target(staged_tensor& t, const sample_parameters<Pipeline>& sample, const grid& g, bool to_output) {
  if constexpr (Pair::may_finish) {
    t.finished = to_output ? 1 : 0;
    for (std::int32_t channel = 0; channel < t.channels; ++channel)
      if (staging<Pipeline>::changes(sample, channel)) t.finished = 0;
    if (t.finished != 0) return t.out;
  }
  constexpr std::int64_t units = sizeof(float) / sizeof(typename Pair::unit);
  const extent3& n = g.extents;
  return {t.data[0], {n[1] * n[2] * units, n[2] * units, units}, g.voxels() * units};
}

template <class Out>
target_tensor target_of(const view<Out>& out) {
  return {out.data, {out.stride[0], out.stride[1], out.stride[2]}, out.channel_stride};
}

template <std::size_t L, class Binding>
void put_levels(level_lists<L>& lists, std::size_t place, const Binding& b, std::size_t i) {
  level_list& list = lists.levels[place];
  list.count = static_cast<std::int32_t>(b.levels.count);
  for (std::size_t l = 0; l < b.levels.count; ++l) {
    const auto& level = b.levels.views[l][i];
    list.levels[l].to = target_of(level);
    for (int k = 0; k < 3; ++k) list.levels[l].extents[k] = static_cast<std::int32_t>(level.grid.extents[k]);
  }
}

// A number of a kind of record.
template <class Record>
std::uint32_t mark_of() {
  static const std::uint32_t mark = [](std::string_view name) {
    std::uint32_t hash = 2166136261u;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash | 1;  // not 0, which memory is cleared to
  }(__PRETTY_FUNCTION__);
  return mark;
}

// Fills the record of sample i, for a run that stores to the output or for what comes before its last stage.
template <class Plan, class... Bindings>
auto make_record(const Plan& plan, std::size_t i, bool to_output, const workspace_layout& l, std::byte* workspace,
                 workspace_cursor& used, const Bindings&... bindings) {
  using P = typename Plan::pipeline_type;
  using record_type = typename evaluator<P, Bindings...>::record_type;
  record_type r{};
  r.mark = mark_of<record_type>();
  r.sample = plan.sample(i);
  r.sample.keeps_planes = keeps_planes(r.sample) ? 1 : 0;
  r.sample.stands_on_voxels = stands_on_voxels(r.sample) ? 1 : 0;
  if constexpr (P::border_type::has_value)
    if (!is_copied(plan.rule().border.value)) r.sample.stands_on_voxels = 0;
  if constexpr (P::has_deformation)
    r.sample.controls.vectors = reinterpret_cast<control_vector*>(workspace + l.vectors) + r.sample.controls.first;
  std::size_t b = 0;
  [[maybe_unused]] std::size_t with_levels = 0;
  const auto add = [&]<class B>(const B& bound) {
    const auto in = bound.source(i);
    source_tensor& s = r.in[b];
    s.channels = static_cast<std::int32_t>(in.channels);
    if constexpr (P::prefiltered && !B::is_label) {
      for (int k = 0; k < 3; ++k) s.extents[k] = static_cast<std::int32_t>(in.grid.extents[k]) + 2 * P::padding;
      s.stride[2] = 1;
      s.stride[1] = s.extents[2];
      s.stride[0] = s.stride[1] * s.extents[1];
      s.channel_stride = s.stride[0] * s.extents[0];
      s.data = reinterpret_cast<float*>(workspace + l.coefficients) + used.coefficients;
      r.raw[b] = raw_source(bound, i);
      used.coefficients += static_cast<std::size_t>(s.channel_stride * in.channels);
    } else {
      s = raw_source(bound, i);
    }
    if (!bound.out.empty()) {
      const auto& out = bound.out[i];
      r.out[b] = target_of(out);
      if constexpr (B::has_levels) put_levels(r, with_levels++, bound, i);
    }
    if constexpr (P::is_staged && !B::is_label) {
      place_between<P>(r.staged[b], plan.output_grid(i), in.channels, r.out[b], l, workspace, used);
      r.out[b] = fused_target<pair_evaluator<P, B>>(r.staged[b], r.sample, plan.output_grid(i), to_output);
    }
    ++b;
  };
  (add(bindings), ...);
  return r;
}

// The evaluator over filled records.
template <class Plan, class... Bindings>
auto make_evaluator(const typename evaluator<typename Plan::pipeline_type, Bindings...>::record_type* records,
                    const Plan& plan, const Bindings&... bindings) {
  using evaluator_type = evaluator<typename Plan::pipeline_type, Bindings...>;
  return evaluator_type{
      records, plan.rule(), {{{prepared_conversion_of(bindings)}...}}, mark_of<typename evaluator_type::record_type>()};
}

// One control vector of a deformation, turned into source voxels.
SUTURE_FN control_vector expanded(const control_grid& g, std::int32_t z, std::int32_t y, std::int32_t x) {
  float u[3];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) u[k] = control_value(g.drawn, k, z, y, x);
  float v[3];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k)
    v[k] = fma(g.to_source[k][0], u[0], fma(g.to_source[k][1], u[1], g.to_source[k][2] * u[2]));
  return {v[0], v[1], v[2], 0.0f};
}

}  // namespace detail

// Bytes of workspace a run of this plan with these views needs, on either executor.
template <class Plan, class... Bindings>
std::size_t workspace_bytes(const Plan& plan, const Bindings&... bindings) {
  return detail::layout(plan, bindings...).bytes;
}

}  // namespace suture
