// SPDX-License-Identifier: Apache-2.0
// A channel for each class.
#pragma once

#include <optional>

#include "../../base/fields.hpp"
#include "../../image/label_conversion.hpp"

namespace suture {

// one_hot: for labels(in, out, one_hot{.classes = n}): channel k of the output is 1 where the label is k and 0
//   elsewhere, k = 0 .. n - 1; without `background` the channels are the labels 1 .. n - 1. One channel in, any element
//   type out (targets of a loss). A label outside 0 .. n - 1, an ignore label too, is 0 in every channel; such voxels
//   are not counted here (label_classes and count_classes do).
//   ignore: where set, one channel more, the last, 1 where the label is `ignore`.
// Errors: classes outside 1 .. 65534, no channel left, `ignore` within 0 .. n - 1 or not of the input's type.
struct one_hot {
  static constexpr std::string_view name = "one_hot";

  std::int64_t classes = 0;
  bool background = true;
  std::optional<std::int32_t> ignore = {};

  static constexpr auto parameters =
      named("classes", &one_hot::classes, "background", &one_hot::background, "ignore", &one_hot::ignore);

  // The channel that is 1, or -1 for none.
  struct hot_channel {
    std::int32_t index;
    SUTURE_FN std::int32_t operator[](std::int32_t channel) const { return channel == index ? 1 : 0; }
  };

  struct functor {
    std::int32_t first, last,
        ignore;  // classes first .. last have a channel; `ignore` is `first` if no ignore label is set
    std::int32_t count;

    SUTURE_HD std::int32_t channels() const { return count; }
    SUTURE_FN hot_channel operator()(std::int32_t label) const {
      const std::int32_t other = label == ignore ? count - 1 : -1;
      return {label >= first && label <= last ? label - first : other};
    }
    // Computes one channel of a row, 0 or 1 in the type of the labels, so that a register holds as many as possible.
    template <class Label, int Count>
    SUTURE_INLINE void convert_channel(const Label (&row)[Count], std::int32_t channel, Label (&out)[Count]) const {
      const std::int32_t wanted = channel <= last - first ? first + channel : ignore;
      const auto label = static_cast<Label>(wanted);
      const auto stored = static_cast<Label>(std::int64_t{label} == wanted);
      for (int l = 0; l < Count; ++l) out[l] = row[l] == label ? stored : Label{0};
    }
  };

  functor prepare(const label_types& types, const site& where) const {
    require(classes >= 1 && classes <= 65534, where, "classes ", classes, " is not in 1 .. 65534");
    const std::int64_t first = background ? 0 : 1;
    const std::int64_t count = classes - first + ignore.has_value();
    require(classes > first, where, "classes ", classes, " leave no channel without background");
    if (ignore) {
      require(*ignore < 0 || *ignore >= classes, where, "the ignore label ", *ignore, " is one of the ", classes,
              " classes");
      require(*ignore >= types.lowest_read && *ignore <= types.highest_read, where, "the ignore label ", *ignore,
              " is none of the label map's type");
    }
    return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(classes - 1),
            ignore.value_or(static_cast<std::int32_t>(first)), static_cast<std::int32_t>(count)};
  }
};

}  // namespace suture
