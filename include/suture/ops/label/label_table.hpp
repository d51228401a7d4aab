// SPDX-License-Identifier: Apache-2.0
// A short table from labels to values, searched in every voxel.
#pragma once

#include "../../core/label_conversion.hpp"
#include "../../core/short_list.hpp"

namespace suture::detail {

inline constexpr std::size_t most_label_entries = 64;

template <class T>
struct label_table {
  std::int32_t labels[most_label_entries];
  T values[most_label_entries];
  std::int32_t count;

  SUTURE_FN T find(std::int32_t label, T otherwise) const {
    for (std::int32_t i = 0; i < count; ++i)
      if (labels[i] == label) return values[i];
    return otherwise;
  }
  // The same for a row: what a lane holds beforehand stays where no entry is found.
  template <class Label, class Value, int Count>
  SUTURE_INLINE void find_row(const Label (&row)[Count], Value (&out)[Count]) const {
    for (std::int32_t i = 0; i < count; ++i) {
      const auto label = static_cast<Label>(labels[i]);
      const Value value = as<Value>(values[i]);
      for (int l = 0; l < Count; ++l) out[l] = row[l] == label ? value : out[l];
    }
  }
  template <class Value>
  SUTURE_INLINE static Value as(T value) {
    if constexpr (std::is_integral_v<Value>)
      return static_cast<Value>(value);
    else
      return {value};
  }
  // The place of a label, or count.
  std::int32_t place(std::int32_t label) const {
    std::int32_t i = 0;
    while (i < count && labels[i] != label) ++i;
    return i;
  }
  void add(std::int32_t label, T value, const site& where) {
    require(place(label) == count, where, "label ", label, " stands twice in the table");
    require(static_cast<std::size_t>(count) < most_label_entries, where, "more than ", most_label_entries,
            " different labels");
    labels[count] = label;
    values[count++] = value;
  }
};

inline void check_label(std::int64_t label, const label_types& types, const site& where) {
  require(label >= types.lowest_read && label <= types.highest_read, where, "label ", label,
          " is none of the label map's type, which holds ", types.lowest_read, " to ", types.highest_read);
}

}  // namespace suture::detail
