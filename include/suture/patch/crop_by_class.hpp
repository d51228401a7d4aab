// SPDX-License-Identifier: Apache-2.0
// An operation of a chain that crops around a voxel of a drawn class. The voxel is drawn on the label map of the
// source; the box lies on the grid that the earlier operations of the chain output.
#pragma once

#include <cmath>
#include <variant>

#include "../base/fields.hpp"
#include "../ops/geometry/crop_at.hpp"
#include "../plan/point_map.hpp"
#include "class_index.hpp"
#include "select_patches.hpp"

namespace suture {

// Crop of one sample by crop_by_class: the box, and the reason for its position.
struct class_crop {
  static constexpr std::string_view name = "class_crop";
  static constexpr bool keeps_axes = true;

  extent3 start{0, 0, 0};
  extent3 size{0, 0, 0};
  bool may_leave = false;
  std::int64_t voxel = -1;     // linear index in the label map of its center voxel; -1 if none
  std::int32_t of_class = -1;  // that voxel's class; -1 if none
  patch_status status = patch_status::anywhere;

  static constexpr auto fields = named("start", &class_crop::start);

  voxel_box picked(const grid& input, const site& where) const {
    return crop_from{start, size, may_leave}.picked(input, where);
  }
  geometry_step step(const grid& input, const site& where) const {
    return detail::box_step(input, picked(input, where));
  }
};

// crop_by_class: crops a box around a voxel of a drawn class, or a box anywhere, as `rule` says. The voxel is drawn on
// the sample's label map, at the spacing of the source, from an index that was built once per case (index_classes).
// Planning therefore reads no volume and launches nothing; the start is part of the plan, as in crop_at. The box lies
// on the grid that the earlier operations output: start = round(p) - floor(size / 2), where p is the continuous index
// of the voxel on that grid, rounded half up and clamped to the grid. The rule then limits the start. As the first
// operation of a chain it gives the patches of select_patches: ordinal 0 for the first crop_by_class of the chain, 1
// for the second.
//   rule    class_balanced_patch: by ratios, or every class but 0 equally if none are given; the center if none of the
//           classes has a voxel. pos_neg_patch: the same for an index of foreground_background. Both need a volume at
//           least as large as the patch, for which pad_to may precede. oversampled_patch: nnU-Net's, whose patch may
//           leave the volume and is filled there by the border rule; anywhere if none of the classes has a voxel
//   cases   an index for each sample of the batch; samples of one case may share it, each with a sample id of its own
//   forced  a flag for each sample that replaces the rule's probability: 1, around a class; 0, anywhere
// Evaluation crops the center and needs neither `cases` nor `forced`. plan.drawn<I>(sample).parameters, a class_crop,
// says what was drawn.
// Source: MONAI RandCropByLabelClasses, RandCropByPosNegLabel, nnU-Net v2 data_loader.py get_bbox.
// Errors: not one index, or flag, for each sample; an index of another size than its volume; what the rule refuses; a
// map that cannot be inverted. After an elastic deformation it does not compile.
struct crop_by_class {
  static constexpr std::string_view name = "crop_by_class";
  static constexpr auto gives_size = output_size::fixed;
  static constexpr std::uint16_t kind = 6;
  static constexpr float probability = 1;
  static_assert(kind == detail::patch_kind);

  std::variant<class_balanced_patch, pos_neg_patch, oversampled_patch> rule = {};
  std::span<const class_index* const> cases = {};
  std::span<const std::uint8_t> forced = {};

  static constexpr auto parameters =
      named("rule", &crop_by_class::rule, "cases", &crop_by_class::cases, "forced", &crop_by_class::forced);

  void check(const site& where) const { detail::check_rule(resolved(), where); }

  void check_samples(std::size_t samples, const site& where) const {
    require(cases.size() == samples, where, cases.size(), cases.size() == 1 ? " index" : " indexes", " for ", samples,
            samples == 1 ? " sample" : " samples", "; one of index_classes is needed for each");
    require(forced.empty() || forced.size() == samples, where, forced.size(), " forced flags for ", samples,
            samples == 1 ? " sample" : " samples");
  }

  class_crop draw(draws& random, const placed_grid& at, const site& where) const {
    const detail::patch_rule r = resolved();
    class_crop box{.size = r.size, .may_leave = !r.clamp_above};
    const auto i = static_cast<std::size_t>(where.sample);
    if (i >= cases.size()) return box;  // a replay states the box
    require(cases[i] != nullptr, where, "null pointer for an index");
    const class_index& index = *cases[i];
    require(index.extents() == at.source.extents, where, "the index is of a label map of ", index.extents(),
            ", the volume has ", at.source.extents);
    const extent3& n = at.output.extents;
    if (!box.may_leave) detail::check_patch(r.size, at.output, where);
    detail::class_ratios ratios;
    std::visit([&](const auto& chosen) { chosen.fill(ratios, index.classes(), where); }, rule);
    const random_field words = random.field(0);
    const detail::forcing how = i >= forced.size() ? detail::forcing::drawn
                                : forced[i] != 0   ? detail::forcing::yes
                                                   : detail::forcing::no;
    const detail::patch_draw d =
        detail::draw_patch(r, ratios.of, index.classes(), index.totals(), n, words.words(0), words.words(1), how);
    box.of_class = d.choice.of_class;
    box.status = d.choice.status;
    box.start = d.choice.start;
    if (d.of_class < 0) return box;
    box.voxel = index.voxel(d.of_class, d.rank);
    box.start = detail::start_about(r, n, nearest(at, detail::index_of(box.voxel, at.source.extents), where));
    return box;
  }

  class_crop evaluation(const grid& input, const site&) const {
    const detail::patch_rule r = resolved();
    class_crop box{.size = r.size, .may_leave = !r.clamp_above};
    for (int k = 0; k < 3; ++k) box.start[k] = input.extents[k] / 2 - r.size[k] / 2;
    return box;
  }

private:
  detail::patch_rule resolved() const {
    return std::visit([](const auto& chosen) { return chosen.resolve(); }, rule);
  }
  // Returns the voxel of the current grid nearest to a voxel of the source. 1e-6 is added so that rounding errors do
  // not decide for a position midway between two voxels.
  static extent3 nearest(const placed_grid& at, const extent3& voxel, const site& where) {
    require(detail::invertible(at.to_source.linear), where, "the map from its input to the source has determinant ",
            determinant(at.to_source.linear), ", so no voxel has a place there");
    const point3 p = inverse(at.to_source)(vec_cast<double>(voxel));
    extent3 index{};
    for (int k = 0; k < 3; ++k) {
      const auto last = static_cast<double>(at.output.extents[k] - 1);
      index[k] = static_cast<std::int64_t>(std::min(std::max(std::floor(p[k] + (0.5 + 1e-6)), 0.0), last));
    }
    return index;
  }
};

}  // namespace suture
