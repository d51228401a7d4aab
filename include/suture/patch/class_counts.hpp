// SPDX-License-Identifier: Apache-2.0
// Counts of the voxels of each class in each block of a volume: a small table from which voxels are drawn, in place of
// lists of their indices.
#pragma once

#include <atomic>
#include <cstddef>
#include <numeric>
#include <utility>

#include "../exec/cpu/run.hpp"
#include "class_rows.hpp"

namespace suture {

// Voxels of a block: a run of linear indices (z, y, x with x fastest) of a volume.
inline constexpr std::int64_t count_block = 4096;

// The counts of one sample, in the memory passed to count_classes.
struct class_counts {
  const std::uint64_t* totals = nullptr;  // classes + 2
  const std::uint32_t* counts = nullptr;  // (class, block)
  std::int64_t blocks = 0;
  std::int32_t classes = 0;

  // Voxels of a class; for a weight map the sum of the weights.
  std::uint64_t total(std::int32_t of_class) const { return totals[of_class]; }
  // Voxels whose label is not declared, or that are neither foreground nor background.
  std::uint64_t unclassified() const { return totals[classes]; }
  // Voxels left out because their image is NaN or infinite.
  std::uint64_t nonfinite() const { return totals[classes + 1]; }
};

namespace detail {

// Layout of the tables of a batch: all totals, then the counts by sample. It depends on extents and classes alone, so
// that a table copied from device to host reads the same.
struct count_layout {
  std::vector<std::size_t> counts;  // byte offset of each sample's counts
  std::vector<std::int64_t> blocks;
  std::size_t totals_bytes = 0;
  std::size_t bytes = 0;
  std::int32_t classes = 0;

  template <class Classes>
  explicit count_layout(const Classes& map) : classes(map.classes) {
    totals_bytes = map.samples() * static_cast<std::size_t>(classes + 2) * sizeof(std::uint64_t);
    bytes = totals_bytes;
    for (std::size_t i = 0; i < map.samples(); ++i) {
      counts.push_back(bytes);
      blocks.push_back((map.grid(i).voxels() + count_block - 1) / count_block);
      const std::size_t size = static_cast<std::size_t>(blocks.back()) * static_cast<std::size_t>(classes);
      bytes += (size + 1) / 2 * 2 * sizeof(std::uint32_t);
    }
  }
  std::uint64_t* totals(std::byte* memory, std::size_t i) const {
    return reinterpret_cast<std::uint64_t*>(memory) + i * static_cast<std::size_t>(classes + 2);
  }
  class_counts at(const std::byte* memory, std::size_t i) const {
    return {totals(const_cast<std::byte*>(memory), i), reinterpret_cast<const std::uint32_t*>(memory + counts[i]),
            blocks[i], classes};
  }
};

inline void check_counts_memory(std::span<const std::byte> memory, const count_layout& l, std::string_view operation) {
  require(memory.size() >= l.bytes, {operation}, "counts of ", memory.size(), " bytes given, ", l.bytes, " needed");
  require(reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(std::uint64_t) == 0, {operation}, "counts ",
          static_cast<const void*>(memory.data()), " are not aligned to ", alignof(std::uint64_t), " bytes");
}

// Checks that the output does not overlap the input.
template <class Classes>
void check_apart(const Classes& map, const void* data, std::size_t size, std::string_view operation,
                 std::string_view what) {
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  map.for_each_range([&](const byte_range& r) {
    require(first + size <= r.first || first >= r.last, {operation}, what, " overlap an input in memory");
  });
}

// Checks the views of every sample and their counts by memory_check() of the executor.
template <class Check, class Classes>
void check_classes_memory(const Check& check, const Classes& map, std::string_view name, const void* counts) {
  std::size_t i = 0;
  map.for_each_range([&](const byte_range& r) {
    const site where{name, static_cast<std::int64_t>(i++ % map.samples())};
    check(reinterpret_cast<const void*>(r.first), where, "view: ");
  });
  check(counts, {name}, "counts: ");
}

template <class Classes>
count_layout check_count(const Classes& map, std::span<std::byte> counts) {
  map.check();
  const count_layout l(map);
  check_counts_memory(counts, l, "count_classes");
  check_apart(map, counts.data(), l.bytes, "count_classes", "counts");
  return l;
}

// The counts of the current block, which are added to those of a sample when the next block begins.
struct block_counts {
  const count_layout& layout;
  std::byte* memory;
  std::size_t sample;
  std::int64_t block = 0;
  std::uint32_t counts[max_classes + 2] = {};

  std::uint32_t* of(std::int64_t voxel) {
    if (voxel / count_block != block) flush();
    block = voxel / count_block;
    return counts;
  }
  void flush() {
    auto* table = reinterpret_cast<std::uint32_t*>(memory + layout.counts[sample]) + block;
    for (std::int32_t c = 0; c < layout.classes + 2; ++c) {
      const std::uint32_t count = std::exchange(counts[c], 0u);
      if (count == 0) continue;
      if (c < layout.classes)
        std::atomic_ref(table[c * layout.blocks[sample]]).fetch_add(count, std::memory_order_relaxed);
      else
        std::atomic_ref(layout.totals(memory, sample)[c]).fetch_add(count, std::memory_order_relaxed);
    }
  }
};

// Adds the voxels of a piece of a row to the counts by class.
template <class Reader>
void add_row(const Reader& reader, std::int32_t z, std::int32_t y, std::int32_t x, std::int32_t count,
             std::uint32_t* counts) {
  each_run(reader, z, y, x, x + count, [&](std::int32_t of_class, std::int32_t, std::int32_t length) {
    counts[of_class] += static_cast<std::uint32_t>(length);
  });
}
template <class W>
void add_row(const weight_reader<W>& reader, std::int32_t z, std::int32_t y, std::int32_t x, std::int32_t count,
             std::uint32_t* counts) {
  std::uint32_t sum = 0;
  for (const std::int32_t end = x + count; x < end; ++x) sum += reader(z, y, x).weight;
  counts[0] += sum;
}

// Counts a row of one channel of labels and image side by side, without a branch on a voxel.
template <class L, class I>
void add_row(const foreground_reader<L, I>& reader, std::int32_t z, std::int32_t y, std::int32_t x, std::int32_t count,
             std::uint32_t* counts) {
  const auto& [labels, image, threshold] = reader;
  if (image.data == nullptr || labels.channels != 1 || image.channels != 1 || labels.stride[2] != 1 ||
      image.stride[2] != 1) {
    add_row<foreground_reader<L, I>>(reader, z, y, x, count, counts);
    return;
  }
  const L* label = labels.data + labels.offset(z, y, x);
  const I* value = image.data + image.offset(z, y, x);
  std::uint32_t foreground = 0, finite = 0, above = 0;  // of the rest: finite, and above the threshold as well
  for (std::int32_t i = 0; i < count; ++i) {
    const float v = storage<I>::load(value[i]);
    const std::uint32_t is_foreground = label[i] > 0 ? 1 : 0;
    const std::uint32_t is_finite = (float_bits(v) & 0x7f800000u) != 0x7f800000u ? 1 : 0;
    const std::uint32_t is_above = v > threshold ? 1 : 0;
    foreground += is_foreground;
    finite += (is_foreground ^ 1) & is_finite;
    above += (is_foreground ^ 1) & is_finite & is_above;
  }
  counts[0] += above;
  counts[1] += foreground;
  counts[2] += finite - above;
  counts[3] += static_cast<std::uint32_t>(count) - foreground - finite;
}

}  // namespace detail

// Bytes that count_classes writes for a batch, on either executor.
template <class Classes>
std::size_t class_counts_bytes(const Classes& map) {
  map.check();
  return detail::count_layout(map).bytes;
}

// Counts the voxels of each class of each sample in blocks of 4096 linear indices, into memory of class_counts_bytes
// (8-byte aligned). Integers, so that the table is the same from any executor and number of threads.
//   map: label_classes(...), foreground_background(...) or weight_map(...).
// Errors: an empty batch, a view that cannot be read, extents that differ, too little memory, overlapping memory.
template <class Classes>
void count_classes(const cpu& exec, const Classes& map, std::span<std::byte> counts) {
  const detail::count_layout l = detail::check_count(map, counts);
  detail::check_classes_memory(detail::memory_check(exec), map, "count_classes", counts.data());
  std::fill_n(counts.data(), l.bytes, std::byte{0});
  for (std::size_t i = 0; i < map.samples(); ++i) {
    const extent3& n = map.grid(i).extents;
    const detail::class_rows rows(map.reader(i), n, exec.threads);
    detail::parallel_for(exec.threads, rows.tasks(), [&](std::int64_t task) {
      detail::block_counts block{l, counts.data(), i};
      rows(task, [&](const auto& reader, std::int32_t z, std::int32_t y) {
        const std::int64_t row = (z * n[1] + y) * n[2];
        for (std::int64_t voxel = row, end; voxel < row + n[2]; voxel = end) {
          end = std::min(row + n[2], voxel / count_block * count_block + count_block);
          detail::add_row(reader, z, y, static_cast<std::int32_t>(voxel - row), static_cast<std::int32_t>(end - voxel),
                          block.of(voxel));
        }
      });
      block.flush();
    });
    const std::uint32_t* table = reinterpret_cast<const std::uint32_t*>(counts.data() + l.counts[i]);
    for (std::int32_t c = 0; c < l.classes; ++c, table += l.blocks[i])
      l.totals(counts.data(), i)[c] = std::accumulate(table, table + l.blocks[i], std::uint64_t{0});
  }
}

// The counts of sample i. The memory must be readable where this is used: copy a device's table to the host first.
template <class Classes>
class_counts counts_of(const Classes& map, std::span<const std::byte> counts, std::size_t i) {
  const detail::count_layout l(map);
  detail::check_counts_memory(counts, l, "counts_of");
  require(i < map.samples(), {"counts_of"}, "no sample ", i, " in a batch of ", map.samples());
  return l.at(counts.data(), i);
}

}  // namespace suture
