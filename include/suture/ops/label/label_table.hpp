// SPDX-License-Identifier: Apache-2.0
// A short table from labels to values: one access if its labels are consecutive, as they mostly are, otherwise a
// search.
#pragma once

#include <algorithm>

#include "../../base/short_list.hpp"
#include "../../image/label_conversion.hpp"

namespace suture::detail {

inline constexpr std::size_t most_label_entries = 64;

template <class T>
struct label_table {
  std::int32_t labels[most_label_entries];
  T values[most_label_entries];
  std::int32_t count;
  bool contiguous;  // labels[i] is labels[0] + i

  SUTURE_FN T find(std::int32_t label, T otherwise) const {
    if (contiguous) {
      const std::uint32_t i = static_cast<std::uint32_t>(label) - static_cast<std::uint32_t>(labels[0]);
      return i < static_cast<std::uint32_t>(count) ? values[i] : otherwise;
    }
    for (std::int32_t i = 0; i < count; ++i)
      if (labels[i] == label) return values[i];
    return otherwise;
  }
  // Looks up a row of labels; lanes without an entry keep their previous value.
  template <class Label, class Value, int Count>
  SUTURE_INLINE void find_row(const Label (&row)[Count], Value (&out)[Count]) const {
    for (std::int32_t i = 0; i < count; ++i) {
      const auto label = static_cast<Label>(labels[i]);
      const auto value = static_cast<Value>(values[i]);
      for (int l = 0; l < Count; ++l) out[l] = row[l] == label ? value : out[l];
    }
  }
  // Returns the index of a label, or count if the table does not have it.
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
  // Completes the table after the last entry: labels between those named are added with their default result, if there
  // are no more of them than of those named, and all entries are sorted.
  template <class Otherwise>
  void close(const Otherwise& otherwise) {
    if (count == 0) return;
    const auto [low, high] = std::minmax_element(labels, labels + count);
    const std::int32_t first = *low;
    const std::int64_t span = std::int64_t{*high} - first + 1;
    if (span > 2 * std::int64_t{count} || span > static_cast<std::int64_t>(most_label_entries)) return;
    T ordered[most_label_entries] = {};
    for (std::int32_t i = 0; i < span; ++i) {
      const std::int32_t at = place(first + i);
      ordered[i] = at < count ? values[at] : otherwise(first + i);
    }
    count = static_cast<std::int32_t>(span);
    for (std::int32_t i = 0; i < count; ++i) labels[i] = first + i, values[i] = ordered[i];
    contiguous = true;
  }
};

inline void check_label(std::int64_t label, const label_types& types, const site& where) {
  require(label >= types.lowest_read && label <= types.highest_read, where, "label ", label,
          " is none of the label map's type, which holds ", types.lowest_read, " to ", types.highest_read);
}

}  // namespace suture::detail
