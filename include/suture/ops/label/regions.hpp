// SPDX-License-Identifier: Apache-2.0
// Sets of labels as channels; the sets may overlap.
#pragma once

#include <optional>

#include "../../base/fields.hpp"
#include "label_table.hpp"

namespace suture {

// The labels of one region.
using region = short_list<std::int32_t, detail::most_label_entries>;

// regions: for labels(in, out, regions{...}): channel k of the output is 1 where the label is in sets[k] and 0
//   elsewhere. One channel in, as many out as there are sets; any element type (targets of a loss).
//   ignore: where set, one channel more, the last, 1 where the label is `ignore` (nnU-Net); the regions are 0 there.
//     Where not set, an ignore label is in no region, so 0 in all.
// Errors: no set, more than 32 channels, more than 64 different labels, an empty set, `ignore` in a set, a label not
//   of the input's type.
struct regions {
  static constexpr std::string_view name = "regions";

  short_list<region, 32> sets = {};
  std::optional<std::int32_t> ignore = {};

  static constexpr auto parameters = named("sets", &regions::sets, "ignore", &regions::ignore);

  // Membership of a label: bit k for region k.
  struct membership {
    std::uint32_t bits;
    SUTURE_FN std::int32_t operator[](std::int32_t channel) const {
      return static_cast<std::int32_t>((bits >> channel) & 1u);
    }
  };

  struct functor {
    detail::label_table<std::uint32_t> table;
    std::int32_t count;

    SUTURE_HD std::int32_t channels() const { return count; }
    SUTURE_FN membership operator()(std::int32_t label) const { return {table.find(label, 0u)}; }
    // Computes one channel of a row, 0 or 1 in the type of the labels, so that a register holds as many as possible.
    template <class Label, int Count>
    SUTURE_INLINE void convert_channel(const Label (&row)[Count], std::int32_t channel, Label (&out)[Count]) const {
      for (int l = 0; l < Count; ++l) out[l] = 0;
      for (std::int32_t i = 0; i < table.count; ++i) {
        if (((table.values[i] >> channel) & 1u) == 0) continue;
        const auto label = static_cast<Label>(table.labels[i]);
        for (int l = 0; l < Count; ++l) out[l] = row[l] == label ? Label{1} : out[l];
      }
    }
  };

  functor prepare(const label_types& types, const site& where) const {
    require(sets.size() > 0, where, "no region given");
    require(sets.size() + ignore.has_value() <= 32, where, "more than 32 channels with the one of ignore");
    functor f{};
    f.count = static_cast<std::int32_t>(sets.size() + ignore.has_value());
    const auto put = [&](std::int32_t label, std::size_t channel) {
      detail::check_label(label, types, where);
      const std::int32_t at = f.table.place(label);
      if (at == f.table.count) f.table.add(label, 0, where);
      f.table.values[at] |= 1u << channel;
    };
    for (std::size_t k = 0; k < sets.size(); ++k) {
      require(sets[k].size() > 0, where, "region ", k, " has no label");
      for (const std::int32_t label : sets[k]) {
        require(!ignore || label != *ignore, where, "region ", k, " holds the ignore label ", label);
        put(label, k);
      }
    }
    if (ignore) put(*ignore, sets.size());
    f.table.close([](std::int32_t) { return 0u; });
    return f;
  }
};

// Brain tumors: tumor core, whole tumor, enhancing tumor. The numbering of the labels is part of the name.
//   BraTS 2012 to 2022: 1 necrotic and non-enhancing core, 2 edema, 4 enhancing (MONAI
//     ConvertToMultiChannelBasedOnBratsClasses).
inline constexpr regions brats_regions_1_2_4{.sets = {{1, 4}, {1, 2, 4}, {4}}};
//   BraTS 2023 on: 1 necrotic core, 2 edema, 3 enhancing.
inline constexpr regions brats_regions_1_2_3{.sets = {{1, 3}, {1, 2, 3}, {3}}};
//   Medical Segmentation Decathlon, Task01: 1 edema, 2 enhancing, 3 necrotic and non-enhancing core (MONAI's tutorial).
inline constexpr regions decathlon_brain_tumor_regions{.sets = {{2, 3}, {1, 2, 3}, {2}}};

}  // namespace suture
