// SPDX-License-Identifier: Apache-2.0
// These functions choose where the patches of a batch start: around a voxel of a class drawn by ratio, around a voxel
// drawn by weight, or anywhere. A voxel is drawn as a rank within its class. The counts of each block of voxels
// (class_counts.hpp) give its block, and a search through that block gives its position.
#pragma once

#include <algorithm>
#include <cmath>

#include "../base/fields.hpp"
#include "../ops/geometry/crop.hpp"
#include "class_counts.hpp"

namespace suture {

enum class patch_status : std::int32_t {
  chosen = 0,        // around a voxel; every class with a ratio above 0 was present
  class_absent = 1,  // around a voxel; a class with a ratio above 0 has none and was left out
  anywhere = 2,      // not around a voxel, by the rule's probability or a flag: the start is uniform
  empty = 3,         // no class with a ratio above 0 has a voxel: the rule says where the patch is then
};

// The start of a patch, and the reason for it.
struct patch_choice {
  extent3 start;          // index of its first voxel; outside the volume only by oversampled_patch
  std::int64_t voxel;     // linear index of its center voxel in the label map; -1 if none
  std::int32_t of_class;  // that voxel's class; -1 if none
  patch_status status;
};

// The random draws of a selection. Each (seed, epoch, sample id, ordinal) has a stream of random numbers, with eight
// words for each patch. The patch of a sample therefore does not depend on the batch, the position in it, or the number
// of patches.
struct patch_draws {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  // One persistent id per sample (a dataset index, never the batch position).
  std::span<const std::uint64_t> sample_ids = {};
  // Patches of each sample; patch p of sample i is result i * patches + p.
  std::int32_t patches = 1;
  // One flag per sample, which replaces the rule's probability: 1, its patches are around a voxel of a class; 0, they
  // are anywhere. nnU-Net sets it by the position in the batch.
  std::span<const std::uint8_t> forced = {};
  // A number, 0..15, that distinguishes several selections on the same samples.
  std::uint16_t ordinal = 0;
};

namespace detail {

inline constexpr std::uint16_t patch_kind = 6;  // in the operation id of random streams, as that of crop_by_class

// The parameters of any rule, for one batch.
struct patch_rule {
  extent3 size;
  extent3 margin;        // voxels by which patches may leave the volume along each axis, sum of both sides
  float probability;     // that a patch is around a voxel
  bool clamp_above;      // whether a patch around a voxel is moved back if it passes the far faces
  bool center_if_empty;  // where patches with status `empty` are: the center of the volume, or anywhere
};

struct class_ratios {
  float of[max_classes];
};

// The starts first .. last that a rule allows along an axis.
struct start_range {
  std::int64_t first, last;
};
SUTURE_FN start_range starts_along(const patch_rule& rule, const extent3& n, int axis) {
  const std::int64_t size = rule.size[axis];
  std::int64_t pad = rule.margin[axis];
  if (pad + n[axis] < size) pad = size - n[axis];
  return {-((pad + 1) / 2), n[axis] + pad / 2 + pad % 2 - size};
}

// Returns the upper 64 bits of a product.
SUTURE_FN std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  return a1 * b1 + (middle >> 32) + (((middle & 0xffffffffu) + a0 * b1) >> 32);
#endif
}

// The draws of one patch. They need the totals of classes, but no voxel.
struct patch_draw {
  std::int32_t of_class;  // -1: the patch is not around a voxel
  std::uint64_t rank;     // 0-based, among the voxels (or the weight) of the class
  patch_choice choice;    // complete if of_class is -1
};

// Whether a patch is around a voxel: by the rule's probability, never or always.
enum class forcing : std::uint8_t { drawn, no, yes };

// Draws a patch from two Philox blocks. The words of block a decide whether it is around a voxel, its class, and the
// rank (two words); those of block b are the starts along z, y, x.
SUTURE_FN patch_draw draw_patch(const patch_rule& rule, const float* ratios, std::int32_t classes,
                                const std::uint64_t* totals, const extent3& n, const philox_block& a,
                                const philox_block& b, forcing forced) {
  const bool about = forced == forcing::drawn ? unit_half_open(a.word[0]) < rule.probability : forced == forcing::yes;
  patch_draw d{-1, 0, {{0, 0, 0}, -1, -1, patch_status::anywhere}};
  if (about) {
    double sum = 0;
    bool absent = false;
    std::int32_t last = -1;
    for (std::int32_t c = 0; c < classes; ++c)
      if (ratios[c] > 0) {
        if (totals[c] == 0) {
          absent = true;
        } else {
          sum += static_cast<double>(ratios[c]);
          last = c;
        }
      }
    if (last >= 0) {
      const double target = sum * (static_cast<double>(a.word[1]) * 0x1p-32);
      double below = 0;
      for (std::int32_t c = 0; c <= last; ++c)
        if (ratios[c] > 0 && totals[c] != 0) {
          below += static_cast<double>(ratios[c]);
          if (below > target || c == last) {
            d.of_class = c;
            break;
          }
        }
      const std::uint64_t word = (std::uint64_t{a.word[2]} << 32) | std::uint64_t{a.word[3]};
      d.rank = high_product(word, totals[d.of_class]);
      d.choice.of_class = d.of_class;
      d.choice.status = absent ? patch_status::class_absent : patch_status::chosen;
      return d;
    }
    d.choice.status = patch_status::empty;
  }
  for (int k = 0; k < 3; ++k) {
    const start_range r = starts_along(rule, n, k);
    d.choice.start[k] = d.choice.status == patch_status::empty && rule.center_if_empty
                            ? n[k] / 2 - rule.size[k] / 2
                            : r.first + integer_below(b.word[k], r.last - r.first + 1);
  }
  return d;
}

// Draws a patch of a stream of random numbers, from blocks 2 * patch and 2 * patch + 1.
SUTURE_FN patch_draw draw_patch(const patch_rule& rule, const float* ratios, std::int32_t classes,
                                const std::uint64_t* totals, const extent3& n, const stream& random, std::int32_t patch,
                                forcing forced) {
  const std::uint64_t first = 2 * static_cast<std::uint64_t>(patch);
  return draw_patch(rule, ratios, classes, totals, n, random.block(first), random.block(first + 1), forced);
}

// Returns the index of a voxel from its linear index.
SUTURE_FN extent3 index_of(std::int64_t voxel, const extent3& n) {
  return {voxel / n[2] / n[1], voxel / n[2] % n[1], voxel % n[2]};
}

// Returns the start of a patch around index `at` of a volume of n voxels.
SUTURE_FN extent3 start_about(const patch_rule& rule, const extent3& n, const extent3& at) {
  extent3 start{};
  for (int k = 0; k < 3; ++k) {
    const start_range r = starts_along(rule, n, k);
    start[k] = at[k] - rule.size[k] / 2;
    if (start[k] < r.first) start[k] = r.first;
    if (rule.clamp_above && start[k] > r.last) start[k] = r.last;
  }
  return start;
}

// Returns the choice around the voxel with this linear index.
SUTURE_FN patch_choice about_voxel(const patch_rule& rule, const extent3& n, const patch_draw& d, std::int64_t voxel) {
  patch_choice c = d.choice;
  c.voxel = voxel;
  c.start = start_about(rule, n, index_of(voxel, n));
  return c;
}

// Returns the linear index of the voxel with rank d.rank in class d.of_class, or -1 if the counts are not those of
// these voxels.
template <class Reader>
std::int64_t find_voxel(const Reader& reader, const extent3& n, const class_counts& table, const patch_draw& d) {
  const std::uint32_t* counts = table.counts + d.of_class * table.blocks;
  std::uint64_t rank = d.rank;
  std::int64_t b = 0;
  while (b < table.blocks && rank >= counts[b]) rank -= counts[b++];
  const std::int64_t voxels = n[0] * n[1] * n[2];
  const std::int64_t first = std::min(voxels, b * count_block), last = std::min(voxels, first + count_block);
  for (std::int64_t voxel = first; voxel < last;) {
    const extent3 start = index_of(voxel, n);
    const auto z = static_cast<std::int32_t>(start[0]), y = static_cast<std::int32_t>(start[1]);
    const std::int64_t row = voxel - start[2], end = std::min(last, row + n[2]);
    for (; voxel < end; ++voxel) {
      const weighted_class c = reader(z, y, static_cast<std::int32_t>(voxel - row));
      if (c.of_class != d.of_class) continue;
      if (rank < c.weight) return voxel;
      rank -= c.weight;
    }
  }
  return -1;
}

inline void check_size(const extent3& size, const extent3& margin, const site& where) {
  for (int k = 0; k < 3; ++k) {
    require(size[k] > 0 && size[k] <= (std::int64_t{1} << 21), where, "patch ", size, " must be positive");
    require(margin[k] >= 0 && margin[k] <= (std::int64_t{1} << 21), where, "margin ", margin, " must not be negative");
  }
}

inline void check_rule(const patch_rule& rule, const site& where) {
  check_size(rule.size, rule.margin, where);
  require(rule.probability >= 0 && rule.probability <= 1, where, "probability ", rule.probability, " is not in [0, 1]");
}

// The checked arguments of a selection, in the form that every executor needs.
struct selection {
  count_layout layout;
  patch_rule rule;
  class_ratios ratios;
};

template <class Rule, class Classes>
selection check_selection(const Rule& rule, const Classes& map, std::span<const std::byte> counts, const patch_draws& s,
                          std::span<const patch_choice> out) {
  map.check();
  const site where{Rule::name};
  selection r{count_layout(map), rule.resolve(map, where), {}};
  rule.fill(r.ratios, map.classes, where);
  check_rule(r.rule, where);
  for (std::size_t i = 0; i < map.samples(); ++i)
    if (r.rule.clamp_above) check_patch(r.rule.size, map.grid(i), {Rule::name, static_cast<std::int64_t>(i)});
  check_counts_memory(counts, r.layout, Rule::name);
  require(s.sample_ids.size() == map.samples(), where, s.sample_ids.size(), " sample ids for ", map.samples(),
          " samples");
  require(s.forced.empty() || s.forced.size() == map.samples(), where, s.forced.size(), " forced flags for ",
          map.samples(), " samples");
  require(s.patches >= 1 && s.patches <= 65535, where, "patches ", s.patches, " must be in 1..65535");
  require(s.ordinal < 16, where, "ordinal ", s.ordinal, " must be in 0..15");
  const std::size_t results = map.samples() * static_cast<std::size_t>(s.patches);
  require(out.size() == results, where, "room for ", out.size(), " choices, ", results, " are made");
  check_apart(map, out.data(), out.size_bytes(), Rule::name, "choices");
  const auto* first = reinterpret_cast<const std::byte*>(out.data());
  require(first + out.size_bytes() <= counts.data() || first >= counts.data() + r.layout.bytes, where,
          "choices overlap the counts in memory");
  return r;
}

inline stream patch_stream(const patch_draws& s, std::size_t i) {
  const auto operation = static_cast<std::uint16_t>(patch_kind * 16 + s.ordinal);
  return stream(stream_id{s.seed, s.epoch, s.sample_ids[i], operation, 0});
}
inline forcing forced_of(const patch_draws& s, std::size_t i) {
  return s.forced.empty() ? forcing::drawn : s.forced[i] != 0 ? forcing::yes : forcing::no;
}

inline void fill_ratios(class_ratios& ratios, std::span<const float> given, std::int32_t classes, const site& where) {
  require(given.size() == static_cast<std::size_t>(classes), where, given.size(), " ratios for ", classes, " classes");
  double sum = 0;
  for (std::size_t c = 0; c < given.size(); ++c) {
    require(std::isfinite(given[c]) && given[c] >= 0, where, "ratio ", given[c], " of class ", c,
            " must not be negative");
    ratios.of[c] = given[c];
    sum += static_cast<double>(given[c]);
  }
  require(sum > 0, where, "every ratio is 0");
}

}  // namespace detail

// pos_neg_patch: chooses a patch around a foreground voxel with probability positive / (positive + negative), otherwise
// around a background voxel; voxels of a class are equally likely. If one class has no voxel, the other is used. If
// both have none, the patch is the center crop with status `empty`. start = clamp(voxel - floor(size / 2), 0, N - size)
// in extents N. It needs foreground_background(...). Source: MONAI RandCropByPosNegLabel.
// Errors: a ratio below 0 or both 0, a patch larger than the volume.
struct pos_neg_patch {
  static constexpr std::string_view name = "pos_neg_patch";

  extent3 size{0, 0, 0};
  float positive = 1;
  float negative = 1;

  static constexpr auto parameters =
      named("size", &pos_neg_patch::size, "positive", &pos_neg_patch::positive, "negative", &pos_neg_patch::negative);

  detail::patch_rule resolve() const { return {size, {0, 0, 0}, 1, true, true}; }
  template <class L, class I>
  detail::patch_rule resolve(const foreground_class_map<L, I>&, const site&) const {
    return resolve();
  }
  void fill(detail::class_ratios& ratios, std::int32_t classes, const site& where) const {
    const float given[2] = {negative, positive};
    detail::fill_ratios(ratios, given, classes, where);
  }
};

// class_balanced_patch: chooses a patch around a voxel of a class, which is drawn by ratio among the classes that are
// present; voxels of a class are equally likely. Without ratios, all classes but 0 are equally likely. If none is
// present, the patch is the center crop with status `empty`. start = clamp(voxel - floor(size / 2), 0, N - size) in
// extents N. It needs label_classes(...).
// Source: MONAI RandCropByLabelClasses.
// Errors: not one ratio per class, a ratio below 0, all 0; a patch larger than the volume.
struct class_balanced_patch {
  static constexpr std::string_view name = "class_balanced_patch";

  extent3 size{0, 0, 0};
  std::span<const float> ratios = {};

  static constexpr auto parameters =
      named("size", &class_balanced_patch::size, "ratios", &class_balanced_patch::ratios);

  detail::patch_rule resolve() const { return {size, {0, 0, 0}, 1, true, true}; }
  template <class Classes>
  detail::patch_rule resolve(const Classes&, const site&) const {
    return resolve();
  }
  void fill(detail::class_ratios& out, std::int32_t classes, const site& where) const {
    if (!ratios.empty()) return detail::fill_ratios(out, ratios, classes, where);
    for (std::int32_t c = 0; c < classes; ++c) out.of[c] = c == 0 ? 0.0f : 1.0f;
  }
};

// oversampled_patch: chooses patches as nnU-Net's data loader does. With `probability` (or as patch_draws::forced says)
// a patch is around a voxel: classes that are present, other than 0, are equally likely, and so are the voxels of the
// class. Otherwise it is anywhere: its start is uniform over -ceil(pad / 2) .. N + ceil(pad / 2) - size, with pad =
// max(margin, size - N) along each axis of extents N. If no class is present, it is anywhere with status `empty`.
// Around a voxel the start is max(-ceil(pad / 2), voxel - floor(size / 2)) and, as in nnU-Net, may be above the end
// of that range. Patches may leave the volume, so cut them by crop_at{.may_leave = true}.
//   size    voxels of the patch that is read (nnU-Net: the initial patch, before augmentation)
//   margin  size minus the size of the patch after augmentation
// It needs label_classes(...). Source: nnU-Net v2 data_loader.py get_bbox.
struct oversampled_patch {
  static constexpr std::string_view name = "oversampled_patch";

  extent3 size{0, 0, 0};
  extent3 margin{0, 0, 0};
  float probability = 0.33f;

  static constexpr auto parameters = named("size", &oversampled_patch::size, "margin", &oversampled_patch::margin,
                                           "probability", &oversampled_patch::probability);

  detail::patch_rule resolve() const { return {size, margin, probability, false, false}; }
  template <class L>
  detail::patch_rule resolve(const label_class_map<L>&, const site&) const {
    return resolve();
  }
  void fill(detail::class_ratios& ratios, std::int32_t classes, const site&) const {
    for (std::int32_t c = 0; c < classes; ++c) ratios.of[c] = c == 0 ? 0.0f : 1.0f;
  }
};

// weighted_patch: chooses a patch around a voxel drawn in proportion to its weight, among those whose patch lies inside
// the volume. If all of these weigh 0, the patch is anywhere with status `empty`. It needs weight_map(weights, size),
// which gives the size.
// Source: MONAI RandWeightedCrop, TorchIO WeightedSampler.
struct weighted_patch {
  static constexpr std::string_view name = "weighted_patch";

  template <class W>
  detail::patch_rule resolve(const weight_class_map<W>& map, const site&) const {
    return {map.size, {0, 0, 0}, 1, true, false};
  }
  void fill(detail::class_ratios& ratios, std::int32_t, const site&) const { ratios.of[0] = 1; }
};

// Chooses the patches of a batch on the host. Class map and counts are in host memory; the counts may have been
// computed on a device and copied. The choices are the same as on a device.
//   rule    pos_neg_patch, class_balanced_patch, oversampled_patch or weighted_patch
//   counts  what count_classes wrote for the same map
//   out     samples * patches choices
template <class Rule, class Classes>
void select_patches(const cpu& exec, const Rule& rule, const Classes& map,
                    std::type_identity_t<std::span<const std::byte>> counts, const patch_draws& s,
                    std::type_identity_t<std::span<patch_choice>> out) {
  const detail::selection sel = detail::check_selection(rule, map, counts, s, out);
  detail::check_classes_memory(detail::memory_check(exec), map, Rule::name, counts.data());
  detail::check_memory(exec, out.data(), {Rule::name}, "choices: ");
  for (std::size_t i = 0; i < map.samples(); ++i) {
    const class_counts table = sel.layout.at(counts.data(), i);
    if constexpr (!std::is_same_v<Rule, weighted_patch>)  // every voxel of a label map is in some count
      require(std::any_of(table.totals, table.totals + table.classes + 2, [](std::uint64_t n) { return n != 0; }),
              {Rule::name, static_cast<std::int64_t>(i)}, "the counts are all 0; count_classes fills them in");
    const stream random = detail::patch_stream(s, i);
    const extent3& n = map.grid(i).extents;
    const auto reader = map.reader(i);
    std::vector<char> wrong(static_cast<std::size_t>(s.patches), 0);
    detail::parallel_for(exec.threads, s.patches, [&](std::int64_t p) {
      const detail::patch_draw d = detail::draw_patch(sel.rule, sel.ratios.of, table.classes, table.totals, n, random,
                                                      static_cast<std::int32_t>(p), detail::forced_of(s, i));
      patch_choice& c = out[i * static_cast<std::size_t>(s.patches) + static_cast<std::size_t>(p)];
      if (d.of_class < 0) {
        c = d.choice;
        return;
      }
      const std::int64_t voxel = detail::find_voxel(reader, n, table, d);
      if (voxel < 0)
        wrong[static_cast<std::size_t>(p)] = 1;
      else
        c = detail::about_voxel(sel.rule, n, d, voxel);
    });
    require(std::find(wrong.begin(), wrong.end(), 1) == wrong.end(), {Rule::name, static_cast<std::int64_t>(i)},
            "the counts are not those of these voxels");
  }
}

// Returns the starts of patch p of every sample, for crop_at.
inline std::vector<extent3> patch_starts(std::span<const patch_choice> choices, std::int32_t patches = 1,
                                         std::int32_t p = 0) {
  require(patches >= 1 && p >= 0 && p < patches && choices.size() % static_cast<std::size_t>(patches) == 0,
          {"patch_starts"}, "patch ", p, " of ", patches, " in ", choices.size(), " choices");
  std::vector<extent3> starts;
  for (auto i = static_cast<std::size_t>(p); i < choices.size(); i += static_cast<std::size_t>(patches))
    starts.push_back(choices[i].start);
  return starts;
}

}  // namespace suture
