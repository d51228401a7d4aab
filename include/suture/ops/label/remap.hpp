// SPDX-License-Identifier: Apache-2.0
// Labels renumbered by a table.
#pragma once

#include <optional>

#include "../../base/fields.hpp"
#include "label_table.hpp"

namespace suture {

struct label_change {
  std::int32_t from = 0, to = 0;
};

// remap: for labels(in, out, remap{...}): a label named in the table is stored as its `to`, any other as `others`, or
//   as itself where `others` is not set.  remap{{{-1, 0}}} stores -1 as 0 (nnU-Net RemoveLabel).
//   The output may have another element type. An ignore label is a label like any other: kept unless the table or
//   `others` says otherwise.
// Errors: more than 64 changes, a label twice in the table or not of the input's type, a `to` or `others` that the
//   output does not hold, labels kept in an output that does not hold every label of the input's type.
struct remap {
  static constexpr std::string_view name = "remap";

  short_list<label_change, detail::most_label_entries> table = {};
  std::optional<std::int32_t> others = {};

  static constexpr auto parameters = named("table", &remap::table, "others", &remap::others);

  struct functor {
    detail::label_table<std::int32_t> table;
    std::int32_t others;
    bool keep;

    SUTURE_FN std::int32_t operator()(std::int32_t label) const { return table.find(label, keep ? label : others); }
    // prepare() has checked that the types hold what is compared and stored.
    template <std::integral Label, std::integral Stored, int Count>
    SUTURE_INLINE void convert_row(const Label (&row)[Count], Stored (&out)[Count]) const {
      const auto other = static_cast<Stored>(others);
      for (int l = 0; l < Count; ++l) out[l] = keep ? static_cast<Stored>(row[l]) : other;
      table.find_row(row, out);
    }
  };

  functor prepare(const label_types& types, const site& where) const {
    functor f{{}, others.value_or(0), !others.has_value()};
    for (const label_change& change : table) {
      detail::check_label(change.from, types, where);
      require(types.stores(change.to), where, change.to, " (from label ", change.from, ") does not fit the output, ",
              types.stored_name);
      f.table.add(change.from, change.to, where);
    }
    if (others)
      require(types.stores(*others), where, "others ", *others, " does not fit the output, ", types.stored_name);
    else
      require(types.stores(types.lowest_read) && types.stores(types.highest_read), where,
              "labels that the table does not name are kept, but labels from ", types.lowest_read, " to ",
              types.highest_read, " do not all fit the output, ", types.stored_name, "; set others");
    f.table.close([&](std::int32_t label) { return others.value_or(label); });
    return f;
  }
};

}  // namespace suture
