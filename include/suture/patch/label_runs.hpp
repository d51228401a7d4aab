// SPDX-License-Identifier: Apache-2.0
// The labels of a whole volume as runs, in bytes that are stored beside it. An index for crop_by_class is built from
// them, with any rule and conversion of labels, without reading the label map.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "class_index.hpp"

namespace suture {

// The labels of a volume of one channel in memory order (z, y, x with x fastest), as runs of voxels of one label, each
// as long as it can be. In bytes, little-endian:
//   8 letters "sutureCI"; uint32 version, 1; uint32 labels; int64 extents[3], along z, y, x; uint64 runs;
//   int32 label[labels], ascending; uint32 length[runs]; uint16 place_of_label[runs], an index in `label`
class label_runs {
public:
  static constexpr char letters[9] = "sutureCI";
  static constexpr std::uint32_t version = 1;

  // Reads the runs from stored bytes, which it copies. Throws unless the runs fill the volume and each label has
  // voxels.
  static label_runs from_bytes(std::span<const std::byte> bytes, const site& where) {
    static_assert(std::endian::native == std::endian::little, "suture: label runs are stored little-endian");
    constexpr std::size_t head = 48;
    struct {
      char letters[8];
      std::uint32_t version, labels;
      std::int64_t extents[3];
      std::uint64_t runs;
    } h{};
    static_assert(sizeof h == head);
    constexpr std::string_view what = "class index: ";
    require(bytes.size() >= head, where, what, "expected at least ", head, " bytes, got ", bytes.size());
    std::memcpy(&h, bytes.data(), head);
    require(std::memcmp(h.letters, letters, 8) == 0 && h.version == version, where, what, "expected version ", version,
            " of ", std::string_view(letters), ", got other bytes. Make it again from the label map");
    label_runs made;
    std::int64_t voxels = 1;
    for (int k = 0; k < 3; ++k) {
      require(h.extents[k] >= 1 && h.extents[k] <= std::numeric_limits<std::uint32_t>::max() / voxels, where, what,
              "expected extents of 1 to 4294967295 voxels, got ", h.extents[0], ' ', h.extents[1], ' ', h.extents[2]);
      voxels *= h.extents[k];
      made.extents_[k] = h.extents[k];
    }
    require(h.labels >= 1 && h.labels <= 65536 && h.runs >= h.labels && h.runs <= static_cast<std::uint64_t>(voxels),
            where, what, "expected 1 to 65536 labels in at most ", voxels, " runs, got ", h.labels, " in ", h.runs);
    const std::size_t expected = head + std::size_t{4} * h.labels + std::size_t{6} * h.runs;
    require(bytes.size() == expected, where, what, "expected ", expected, " bytes, got ", bytes.size());
    const std::byte* at = bytes.data() + head;
    const auto take = [&]<class T>(std::vector<T>& all, std::size_t count) {
      all.resize(count);
      std::memcpy(all.data(), at, count * sizeof(T));
      at += count * sizeof(T);
    };
    take(made.labels_, h.labels);
    take(made.lengths_, h.runs);
    take(made.label_indices_, h.runs);
    for (std::size_t i = 1; i < made.labels_.size(); ++i)
      require(made.labels_[i - 1] < made.labels_[i], where, what, "expected ascending labels, got ",
              made.labels_[i - 1], " and ", made.labels_[i]);
    std::vector<bool> seen(made.labels_.size());
    std::uint64_t filled = 0;
    for (std::size_t r = 0; r < made.lengths_.size(); ++r) {
      require(made.lengths_[r] > 0 && made.label_indices_[r] < made.labels_.size() &&
                  (r == 0 || made.label_indices_[r] != made.label_indices_[r - 1]),
              where, what, "run ", r, ": expected voxels of another label than those before, got ", made.lengths_[r],
              " of label number ", made.label_indices_[r]);
      seen[made.label_indices_[r]] = true;
      filled += made.lengths_[r];
    }
    require(filled == static_cast<std::uint64_t>(voxels), where, what, "expected runs of ", voxels,
            " voxels together, got ", filled);
    for (std::size_t i = 0; i < seen.size(); ++i)
      require(seen[i], where, what, "expected voxels of label ", made.labels_[i], ", got none");
    return made;
  }

  const extent3& extents() const { return extents_; }

  // Returns the index that index_classes builds from the label map. of_label(label) returns a class, or a number of at
  // least `classes` for voxels that are never drawn.
  template <class OfLabel>
  class_index index(std::int32_t classes, const OfLabel& of_label) const {
    std::vector<std::int32_t> of_class;
    for (const std::int32_t label : labels_) of_class.push_back(of_label(label));
    std::vector<std::vector<detail::class_run>> runs(static_cast<std::size_t>(classes));
    std::uint32_t first = 0;
    for (std::size_t r = 0; r < lengths_.size(); ++r) {
      const std::int32_t c = of_class[label_indices_[r]];
      if (c < classes) detail::append(runs[static_cast<std::size_t>(c)], {first, lengths_[r]});
      first += lengths_[r];
    }
    return class_index(extents_, std::span<const std::vector<detail::class_run>>(runs));
  }

private:
  extent3 extents_{0, 0, 0};
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint16_t> label_indices_;  // of the label of each run
};

// Returns the index that index_classes builds for remapped_class_map{...}, from runs instead of a label map.
inline class_index index_classes(const label_runs& runs, std::int32_t classes, const remap& change, bool foreground,
                                 const site& where) {
  detail::check_converted_classes(classes, foreground, where);
  const auto changed = change.prepare(detail::label_types_of<std::int32_t, std::int32_t>(), where);
  return runs.index(classes, [&](std::int32_t label) {
    const std::int32_t c = changed(label);
    return foreground ? (c > 0 ? 1 : 0) : detail::class_of_label(c, classes);
  });
}

}  // namespace suture
