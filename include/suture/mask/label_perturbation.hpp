// SPDX-License-Identifier: Apache-2.0
// Random errors in label maps, such as a coarser model makes: labels are dilated, eroded, opened or closed, or lose a
// component. In nnU-Net's cascade the second model is trained on such maps in addition to the image.
#pragma once

#include <cmath>
#include <utility>

#include "../plan/settings.hpp"
#include "components.hpp"
#include "morphology.hpp"

namespace suture {

enum class binary_operation : std::int32_t { dilation, erosion, closing, opening };

// random_binary_operation: changes a sample with `probability`, and then each label with `label_probability`. Voxels of
//   the label are dilated, eroded, closed or opened, which are equally likely, by a ball; whole radii in
//   smallest_radius .. largest_radius are equally likely. Labels are changed in random order. Voxels that a label gains
//   lose their old label; voxels that it loses become 0. Outside the volume is background for a dilation and foreground
//   for an erosion, so the border changes nothing. The draws of a label do not depend on which other labels are listed.
// Errors: probabilities outside [0, 1], radii outside 1 .. 63 or out of order, a label 0, given twice or not of the
//   element type, no sample ids.
// Source: nnU-Net, batchgeneratorsv2 ApplyRandomBinaryOperatorTransform (skimage.morphology, ball).
struct random_binary_operation {
  static constexpr std::string_view name = "random_binary_operation";
  static constexpr std::uint16_t kind = 96;

  std::span<const std::int32_t> labels = {};
  float probability = .4f;
  float label_probability = .5f;
  std::int64_t smallest_radius = 1, largest_radius = 8;
};

// random_component_removal: changes a sample with `probability`, and then each label with `label_probability`. Of the
//   label's connected components (26-connectivity) with fewer voxels than `largest_share` of the volume, one becomes 0;
//   all of these are equally likely. A label without such a component does not change.
// Errors: as random_binary_operation, a share outside [0, 1].
// Source: nnU-Net, batchgeneratorsv2 RemoveRandomConnectedComponentFromOneHotEncodingTransform.
struct random_component_removal {
  static constexpr std::string_view name = "random_component_removal";
  static constexpr std::uint16_t kind = 97;

  std::span<const std::int32_t> labels = {};
  float probability = .2f;
  float label_probability = .5f;
  double largest_share = .15;
};

namespace detail::masks {

// Values drawn for one label of a sample.
struct label_change_draw {
  std::int32_t label;
  float place;  // labels are changed in ascending order of it
  binary_operation operation;
  std::int64_t radius;
};

// Returns draw 0 .. 3 of a label, in [0, 1): whether it is changed, its position in the order, the operation, the
// radius.
inline float label_draw(const random_field& field, std::int32_t label, std::uint64_t draw_index) {
  return field.uniform(std::uint64_t{static_cast<std::uint32_t>(label)} * 4 + draw_index);
}

// Returns the labels of a sample that are changed, in the order in which they are.
template <class Rule>
std::vector<label_change_draw> drawn_changes(const Rule& rule, const settings& s, std::size_t sample) {
  std::vector<label_change_draw> changes;
  if (s.evaluation) return changes;
  draws random(s.seed, s.epoch, s.sample_ids[sample], Rule::kind * 16);
  if (!random.bernoulli(rule.probability)) return changes;
  const random_field field = random.field(1);
  for (const std::int32_t label : rule.labels) {
    if (!(label_draw(field, label, 0) < rule.label_probability)) continue;
    label_change_draw change{label, label_draw(field, label, 1), binary_operation::dilation, 0};
    if constexpr (requires { rule.largest_radius; }) {
      // Products are computed in double, which holds them exactly.
      const double radii = static_cast<double>(rule.largest_radius - rule.smallest_radius + 1);
      change.operation = static_cast<binary_operation>(static_cast<int>(4 * double{label_draw(field, label, 2)}));
      change.radius = rule.smallest_radius + static_cast<std::int64_t>(radii * double{label_draw(field, label, 3)});
    }
    changes.push_back(change);
  }
  std::sort(changes.begin(), changes.end(), [](const label_change_draw& a, const label_change_draw& b) {
    return a.place < b.place || (a.place == b.place && a.label < b.label);
  });
  return changes;
}

template <class Rule, class T>
void check_rule(const Rule& rule, std::span<const view<T>> maps, const settings& s) {
  static_assert(std::is_integral_v<T>, "suture: label maps are integers, and these are changed in place");
  const site where{Rule::name};
  const auto is_share = [](double p) { return p >= 0 && p <= 1; };
  require(is_share(double{rule.probability}) && is_share(double{rule.label_probability}), where, "probabilities ",
          rule.probability, " and ", rule.label_probability, " must be in [0, 1]");
  for (std::size_t i = 0; i < rule.labels.size(); ++i) {
    const std::int32_t label = rule.labels[i];
    require(label != 0 && std::in_range<T>(label), where, "label ", label, " is 0 or none of the label maps' type");
    require(std::find(rule.labels.begin(), rule.labels.begin() + static_cast<std::ptrdiff_t>(i), label) ==
                rule.labels.begin() + static_cast<std::ptrdiff_t>(i),
            where, "label ", label, " is given twice");
  }
  require(s.evaluation || s.sample_ids.size() == maps.size(), where, s.sample_ids.size(), " sample ids for ",
          maps.size(), " label maps");
  check_mask_views(maps, maps, Rule::name, true);
}

template <class T>
struct is_label {
  std::int32_t label;
  SUTURE_FN bool operator()(const T* p) const { return *p == label; }
};

// Gives set voxels the label; voxels of the label that are not set become 0.
template <class T>
struct put_label {
  bit_volume bits;
  strided<T> map;
  std::int32_t label;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    T* const p = map.at(z, y, x);
    if (bits.row(z, y)[x / 64] >> (x % 64) & 1)
      *p = static_cast<T>(label);
    else if (*p == label)
      *p = 0;
  }
};

// Draws one of the components with fewer than `limit` voxels: that with the largest random number of its root.
struct draw_component {
  run_forest forest;
  const std::uint32_t* sizes;
  std::uint64_t limit;
  random_field field;
  std::int32_t label;
  std::uint64_t* best;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    for_runs(forest, z, y, w, [&](std::int32_t, std::uint32_t slot) {
      if (forest.parent[slot] != slot || sizes[slot] >= limit) return;
      const float drawn = field.uniform(std::uint64_t{static_cast<std::uint32_t>(label)} << 32 | slot);
      raise_to(best, static_cast<std::uint64_t>(float_bits(drawn)) << 32 | slot);  // a slot is never 0
    });
  }
};
template <class T>
struct clear_component {
  run_forest forest;
  const std::uint64_t* best;
  strided<T> map;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    const auto root = static_cast<std::uint32_t>(*best);
    if (root == 0) return;
    std::uint64_t gone = runs_that_pass(forest, z, y, w, [&](std::uint32_t r) { return r == root; });
    for (; gone != 0; gone &= gone - 1) *map.at(z, y, w * 64 + trailing_zeros(gone)) = 0;
  }
};

}  // namespace detail::masks

namespace mask_work {
using disturb_labels = needs<detail::masks::component_layout>;
}  // namespace mask_work

// disturb_labels: changes integer label maps of one channel in place by one of the rules above. Draws depend only on
// (seed, epoch, sample id, label). With settings.evaluation nothing is changed.
template <class Executor, class Maps>
void disturb_labels(const Executor& exec, const random_binary_operation& rule, const Maps& maps, const settings& s) {
  using namespace detail::masks;
  using T = view_element_t<Maps>;
  const auto views = as_views(maps);
  check_rule(rule, views, s);
  const site where{random_binary_operation::name};
  require(rule.smallest_radius >= 1 && rule.smallest_radius <= rule.largest_radius && rule.largest_radius <= 63, where,
          "radii ", rule.smallest_radius, " to ", rule.largest_radius, " must be in order within 1 .. 63");
  for_masks<morphology_layout>(
      exec, views, where.operation, [&](auto& loops, const morphology_layout& l, std::size_t i) {
        for (const label_change_draw& change : drawn_changes(rule, s, i)) {
          loops.pack(strided_of(static_cast<view<const T>>(views[i])), is_label<T>{change.label}, l.a);
          bit_volume a = l.a, b = l.b;
          const structuring_element ball{element_shape::ball, {change.radius, change.radius, change.radius}};
          const auto step = [&](bool erode) {
            dilate_of(loops, a, b, ball, erode, erode);
            std::swap(a, b);
          };
          const bool both =
              change.operation == binary_operation::closing || change.operation == binary_operation::opening;
          const bool erode_first =
              change.operation == binary_operation::erosion || change.operation == binary_operation::opening;
          step(erode_first);
          if (both) step(!erode_first);
          loops.voxels(a.extents, put_label<T>{a, strided_of(views[i]), change.label});
        }
      });
}

template <class Executor, class Maps>
void disturb_labels(const Executor& exec, const random_component_removal& rule, const Maps& maps, const settings& s) {
  using namespace detail::masks;
  using T = view_element_t<Maps>;
  const auto views = as_views(maps);
  check_rule(rule, views, s);
  const site where{random_component_removal::name};
  require(rule.largest_share >= 0 && rule.largest_share <= 1, where, "largest_share ", rule.largest_share,
          " must be in [0, 1]");
  for_masks<component_layout>(exec, views, where.operation, [&](auto& loops, const component_layout& l, std::size_t i) {
    const auto limit =
        static_cast<std::uint64_t>(std::ceil(rule.largest_share * static_cast<double>(views[i].grid.voxels())));
    for (const label_change_draw& change : drawn_changes(rule, s, i)) {
      const random_field field = draws(s.seed, s.epoch, s.sample_ids[i], rule.kind * 16).field(2);
      loops.pack(strided_of(static_cast<view<const T>>(views[i])), is_label<T>{change.label}, l.a);
      const run_forest forest{l.a, 0, l.parent};
      loops.each(1, set_zero<std::uint64_t>{l.best});
      grow_forest(loops, forest, connectivity::corners, l.sizes);
      loops.words(l.a, sum_sizes{forest, l.sizes});
      loops.words(l.a, draw_component{forest, l.sizes, limit, field, change.label, l.best});
      loops.words(l.a, clear_component<T>{forest, l.best, strided_of(views[i])});
    }
  });
}

}  // namespace suture
