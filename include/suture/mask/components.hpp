// SPDX-License-Identifier: Apache-2.0
// Connected components of masks: numbered, the largest one, or those of a least size. They are found by union-find over
// runs of set voxels along x.
#pragma once

#include "loops.hpp"

namespace suture {

// The neighbors that count as connected to a voxel. In an image of one slice `faces` is 4-connectivity, the other two
// are 8-connectivity.
enum class connectivity : std::int32_t {
  faces = 1,    // 6 neighbors
  edges = 2,    // 18 neighbors
  corners = 3,  // 26 neighbors
};

// The largest component of a sample.
//   voxels  its size; 0 when the mask is empty
struct largest_component_result {
  mask_status status;
  std::uint32_t voxels;
};

namespace detail::masks {

// The components of a mask, each a tree whose nodes are its runs: maximal sequences of set voxels along x. Nodes are
// stored by slot. The slot of a run follows from its first voxel, since two runs of a row begin at least two voxels
// apart. Slots ascend with the linear index, and the root of a tree is its smallest slot, so roots do not depend on the
// order in which runs are united. Slot 0 is no run; it represents the outside of the volume.
struct run_forest {
  bit_volume bits;
  std::uint64_t flip;  // all ones: components of the background
  std::uint32_t* parent;

  SUTURE_FN std::uint64_t word(std::int32_t z, std::int32_t y, std::int32_t w) const {
    return (bits.row(z, y)[w] ^ flip) & bits.inside(w);
  }
  SUTURE_FN std::uint64_t word_or_none(std::int32_t z, std::int32_t y, std::int32_t w) const {
    return w < 0 || w >= bits.row_words ? 0 : word(z, y, w);
  }
  // Returns the first bits of the runs that begin in the word.
  SUTURE_FN std::uint64_t starts(std::int32_t z, std::int32_t y, std::int32_t w) const {
    const std::uint64_t a = word(z, y, w);
    return a & ~(a << 1 | word_or_none(z, y, w - 1) >> 63);
  }
  SUTURE_FN std::uint32_t slot(std::int32_t z, std::int32_t y, std::int32_t start) const {
    const auto row =
        static_cast<std::uint32_t>(z) * static_cast<std::uint32_t>(bits.extents[1]) + static_cast<std::uint32_t>(y);
    return 1 + row * (static_cast<std::uint32_t>(bits.extents[2] + 1) / 2) + static_cast<std::uint32_t>(start) / 2;
  }
  // Returns the slot of the run that contains voxel x, which must be set.
  SUTURE_FN std::uint32_t slot_of(std::int32_t z, std::int32_t y, std::int32_t x) const {
    std::int32_t w = x / 64;
    std::uint64_t gaps = ~word(z, y, w) & (~std::uint64_t{0} >> (63 - x % 64));
    while (gaps == 0 && w > 0) gaps = ~word(z, y, --w);
    return slot(z, y, gaps == 0 ? 0 : w * 64 + 64 - leading_zeros(gaps));
  }
  // Returns the number of voxels of the run that begins at x.
  SUTURE_FN std::uint32_t length(std::int32_t z, std::int32_t y, std::int32_t x) const {
    std::int32_t w = x / 64;
    std::uint64_t gaps = ~word(z, y, w) & (~std::uint64_t{0} << (x % 64));
    while (gaps == 0 && w + 1 < bits.row_words) gaps = ~word(z, y, ++w);
    const std::int32_t end = gaps == 0 ? (w + 1) * 64 : w * 64 + trailing_zeros(gaps);
    return static_cast<std::uint32_t>((end < bits.extents[2] ? end : bits.extents[2]) - x);
  }
  // Returns the root of the tree of slot s.
  SUTURE_FN std::uint32_t find(std::uint32_t s) const {
    std::uint32_t up = load_relaxed(parent + s);
    while (up != s) {
      const std::uint32_t next = load_relaxed(parent + up);
      if (next != up) store_relaxed(parent + s, next);  // halves the path; any ancestor is a valid parent
      s = up;
      up = next;
    }
    return s;
  }
  // Makes the root the parent of s and changes no other parent: `find` could restore an ancestor where another thread
  // has written the root.
  SUTURE_FN void flatten(std::uint32_t s) const {
    std::uint32_t up = load_relaxed(parent + s);
    for (std::uint32_t next = load_relaxed(parent + up); next != up; next = load_relaxed(parent + up)) {
      store_relaxed(parent + s, next);  // at once, for other paths through s
      up = next;
    }
  }
  // Joins the trees of two slots. Other threads may join trees at the same time.
  SUTURE_FN void unite(std::uint32_t a, std::uint32_t b) const {
    while (true) {
      a = find(a);
      b = find(b);
      if (a == b) return;
      const std::uint32_t high = a > b ? a : b, low = a > b ? b : a;
      const std::uint32_t seen = exchange_if(parent + high, high, low);
      if (seen == high) return;
      a = seen;
      b = low;
    }
  }
};

inline std::size_t run_slots(const extent3& n) { return static_cast<std::size_t>(1 + n[0] * n[1] * ((n[2] + 1) / 2)); }

// Calls f(x, slot) for each run that begins in the word.
template <class F>
SUTURE_FN void for_runs(const run_forest& forest, std::int32_t z, std::int32_t y, std::int32_t w, const F& f) {
  for (std::uint64_t s = forest.starts(z, y, w); s != 0; s &= s - 1) {
    const std::int32_t x = w * 64 + trailing_zeros(s);
    f(x, forest.slot(z, y, x));
  }
}

// Returns the bits of word w whose runs have a root for which passes(root) holds.
template <class Passes>
SUTURE_FN std::uint64_t runs_that_pass(const run_forest& forest, std::int32_t z, std::int32_t y, std::int32_t w,
                                       const Passes& passes) {
  std::uint64_t kept = 0;
  for (std::uint64_t left = forest.word(z, y, w); left != 0;) {
    const std::int32_t first = trailing_zeros(left);
    const std::uint64_t gaps = ~(left >> first);  // never 0 but for a full word
    const std::int32_t count = gaps == 0 ? 64 : trailing_zeros(gaps);
    const std::uint64_t piece = (~std::uint64_t{0} >> (64 - count)) << first;
    if (passes(forest.find(forest.slot_of(z, y, w * 64 + first)))) kept |= piece;
    left &= ~piece;
  }
  return kept;
}

// Makes every run a tree of its own, and its size 0 if there are sizes.
struct plant_runs {
  run_forest forest;
  std::uint32_t* sizes = nullptr;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    if ((z | y | w) == 0) forest.parent[0] = 0;
    for_runs(forest, z, y, w, [&](std::int32_t, std::uint32_t slot) {
      forest.parent[slot] = slot;
      if (sizes != nullptr) sizes[slot] = 0;
    });
  }
};

// Unites the runs of a word with touching runs of rows before it.
struct unite_runs {
  run_forest forest;
  std::int32_t reach;  // along how many axes the indices of connected neighbors may differ: a connectivity as a number
  bool planar;         // whether only voxels of one slice are connected

  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    const std::uint64_t a = forest.word(z, y, w);
    if (a == 0) return;
    if (y > 0) rows(a, z, y, z, y - 1, w, reach > 1);
    if (planar || z == 0) return;
    rows(a, z, y, z - 1, y, w, reach > 1);
    if (reach == 1) return;
    if (y > 0) rows(a, z, y, z - 1, y - 1, w, reach > 2);
    if (y + 1 < forest.bits.extents[1]) rows(a, z, y, z - 1, y + 1, w, reach > 2);
  }

  // Unites the runs of row (z, y) with those of row (z1, y1) that have voxels of the same x; if `slanted`, also with
  // those whose x differs by one.
  SUTURE_FN void rows(std::uint64_t a, std::int32_t z, std::int32_t y, std::int32_t z1, std::int32_t y1, std::int32_t w,
                      bool slanted) const {
    const std::uint64_t b = forest.word(z1, y1, w);
    const std::uint64_t a_before = forest.word_or_none(z, y, w - 1), b_before = forest.word_or_none(z1, y1, w - 1);
    const std::uint64_t both = a & b;
    join(both & ~(both << 1 | (a_before & b_before) >> 63), 0, z, y, z1, y1, w);
    if (!slanted) return;
    const std::uint64_t a_after = forest.word_or_none(z, y, w + 1), b_after = forest.word_or_none(z1, y1, w + 1);
    join(a & ~b & (b << 1 | b_before >> 63) & ~(a << 1 | a_before >> 63), -1, z, y, z1, y1, w);
    join(a & ~b & (b >> 1 | b_after << 63) & ~(a >> 1 | a_after << 63), 1, z, y, z1, y1, w);
  }
  SUTURE_FN void join(std::uint64_t where, std::int32_t shift, std::int32_t z, std::int32_t y, std::int32_t z1,
                      std::int32_t y1, std::int32_t w) const {
    for (; where != 0; where &= where - 1) {
      const std::int32_t x = w * 64 + trailing_zeros(where);
      forest.unite(forest.slot_of(z, y, x), forest.slot_of(z1, y1, x + shift));
    }
  }
};

// Builds the forest of a mask, and clears the sizes if there are any. Afterwards find(slot) is the root of the
// component of a run.
template <class Loops>
void grow_forest(Loops& loops, const run_forest& forest, connectivity touching, std::uint32_t* sizes = nullptr) {
  loops.words(forest.bits, plant_runs{forest, sizes});
  loops.words(forest.bits, unite_runs{forest, static_cast<std::int32_t>(touching), false});
}

// Adds the length of every run to the size at the root of its component.
struct sum_sizes {
  run_forest forest;
  std::uint32_t* sizes;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    for_runs(forest, z, y, w, [&](std::int32_t x, std::uint32_t slot) {
      add_relaxed(sizes + forest.find(slot), forest.length(z, y, x));
    });
  }
};

// Finds the largest component, and among equally large ones the first. Its key has the size in the upper 32 bits and
// the complement of the root in the lower; *best becomes the largest key.
struct find_largest {
  run_forest forest;
  const std::uint32_t* sizes;
  std::uint64_t* best;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    for_runs(forest, z, y, w, [&](std::int32_t, std::uint32_t slot) {
      if (forest.parent[slot] == slot) raise_to(best, static_cast<std::uint64_t>(sizes[slot]) << 32 | ~slot);
    });
  }
};
struct keep_best {
  run_forest forest;
  const std::uint64_t* best;
  bit_volume out;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    const std::uint32_t root = ~static_cast<std::uint32_t>(*best);
    out.row(z, y)[w] = runs_that_pass(forest, z, y, w, [&](std::uint32_t r) { return r == root; });
  }
};
struct keep_large {
  run_forest forest;
  const std::uint32_t* sizes;
  std::uint32_t least;
  bit_volume out;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    out.row(z, y)[w] = runs_that_pass(forest, z, y, w, [&](std::uint32_t r) { return sizes[r] >= least; });
  }
};
struct report_largest {
  const std::uint64_t* best;
  largest_component_result* result;
  SUTURE_FN void operator()(std::int64_t) const {
    const auto voxels = static_cast<std::uint32_t>(*best >> 32);
    *result = {voxels > 0 ? mask_status::ok : mask_status::empty, voxels};
  }
};

// The workspace of operations on components.
struct component_layout {
  bit_volume a, b;
  std::uint32_t *parent, *sizes;
  std::uint64_t* best;

  component_layout(arena& memory, const extent3& n)
      : a(memory.bits(n)),
        b(memory.bits(n)),
        parent(memory.allocate<std::uint32_t>(run_slots(n))),
        sizes(memory.allocate<std::uint32_t>(run_slots(n))),
        best(memory.allocate<std::uint64_t>(1)) {}
};

// Sets b to the largest component of a. The upper 32 bits of *l.best become its size.
template <class Loops>
void largest_of(Loops& loops, const component_layout& l, const bit_volume& a, const bit_volume& b,
                connectivity touching) {
  const run_forest forest{a, 0, l.parent};
  loops.each(1, set_zero<std::uint64_t>{l.best});
  grow_forest(loops, forest, touching, l.sizes);
  loops.words(a, sum_sizes{forest, l.sizes});
  loops.words(a, find_largest{forest, l.sizes, l.best});
  loops.words(a, keep_best{forest, l.best, b});
}

// Sets b to the components of a that have at least `least` voxels.
template <class Loops>
void large_of(Loops& loops, const component_layout& l, const bit_volume& a, const bit_volume& b, connectivity touching,
              std::uint32_t least) {
  const run_forest forest{a, 0, l.parent};
  grow_forest(loops, forest, touching, l.sizes);
  loops.words(a, sum_sizes{forest, l.sizes});
  loops.words(a, keep_large{forest, l.sizes, least, b});
}

// Components are numbered in two levels: roots are counted in chunks of words and in groups of chunks. The totals of
// the chunks and groups before a root give its number.
inline constexpr std::int64_t chunk_words = 256, group_chunks = 256;

// Makes the root of every run its parent.
struct flatten_runs {
  run_forest forest;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    for_runs(forest, z, y, w, [&](std::int32_t, std::uint32_t slot) { forest.flatten(slot); });
  }
};

// The words of a mask in linear order, divided into chunks. roots(chunk, f) calls f(slot) for the roots of a chunk.
struct word_range {
  run_forest forest;
  std::int64_t words;

  template <class F>
  SUTURE_FN void roots(std::int64_t chunk, const F& f) const {
    const std::int64_t last = (chunk + 1) * chunk_words < words ? (chunk + 1) * chunk_words : words;
    for (std::int64_t i = chunk * chunk_words; i < last; ++i) {
      const std::int64_t row = i / forest.bits.row_words;
      for_runs(forest, static_cast<std::int32_t>(row / forest.bits.extents[1]),
               static_cast<std::int32_t>(row % forest.bits.extents[1]),
               static_cast<std::int32_t>(i % forest.bits.row_words), [&](std::int32_t, std::uint32_t slot) {
                 if (forest.parent[slot] == slot) f(slot);
               });
    }
  }
};
struct count_chunk {
  word_range range;
  std::uint32_t* chunks;
  SUTURE_FN void operator()(std::int64_t chunk) const {
    std::uint32_t n = 0;
    range.roots(chunk, [&](std::uint32_t) { ++n; });
    chunks[chunk] = n;
  }
};
// Replaces each count by the sum of the counts before it in its piece; total[i] becomes the sum of piece i.
struct totals_before {
  std::uint32_t* counts;
  std::int64_t n, piece;
  std::uint32_t* total;
  SUTURE_FN void operator()(std::int64_t i) const {
    std::uint32_t sum = 0;
    for (std::int64_t k = i * piece; k < (i + 1) * piece && k < n; ++k) {
      const std::uint32_t count = counts[k];
      counts[k] = sum;
      sum += count;
    }
    total[i] = sum;
  }
};
struct number_chunk {
  word_range range;
  const std::uint32_t *chunks, *groups;
  std::uint32_t* numbers;
  SUTURE_FN void operator()(std::int64_t chunk) const {
    std::uint32_t n = groups[chunk / group_chunks] + chunks[chunk];
    range.roots(chunk, [&](std::uint32_t slot) { numbers[slot] = ++n; });
  }
};
struct write_labels {
  run_forest forest;
  const std::uint32_t* numbers;
  strided<std::int32_t> out;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    const bool set = forest.word(z, y, x / 64) >> (x % 64) & 1;
    *out.at(z, y, x) = set ? static_cast<std::int32_t>(numbers[forest.parent[forest.slot_of(z, y, x)]]) : 0;
  }
};
struct sum_labels {
  run_forest forest;
  const std::uint32_t* numbers;
  std::uint32_t* sizes;
  std::uint32_t capacity;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    for_runs(forest, z, y, w, [&](std::int32_t x, std::uint32_t slot) {
      const std::uint32_t component = numbers[forest.parent[slot]];
      if (component <= capacity) add_relaxed(sizes + component - 1, forest.length(z, y, x));
    });
  }
};

struct label_layout {
  bit_volume bits;
  std::uint32_t *parent, *numbers;
  std::int64_t words, chunks, groups;
  std::uint32_t *chunk_counts, *group_counts;

  label_layout(arena& memory, const extent3& n)
      : bits(memory.bits(n)),
        parent(memory.allocate<std::uint32_t>(run_slots(n))),
        numbers(memory.allocate<std::uint32_t>(run_slots(n))),
        words(n[0] * n[1] * bits.row_words),
        chunks((words + chunk_words - 1) / chunk_words),
        groups((chunks + group_chunks - 1) / group_chunks),
        chunk_counts(memory.allocate<std::uint32_t>(static_cast<std::size_t>(chunks))),
        group_counts(memory.allocate<std::uint32_t>(static_cast<std::size_t>(groups))) {}
};

}  // namespace detail::masks

namespace mask_work {
// About 4.2 bytes a voxel, if rows have a multiple of 64 voxels.
using label_components = needs<detail::masks::label_layout>;
}  // namespace mask_work

// label_components: numbers the connected components of masks 1, 2, ... in the order of their first voxels (z, y, x
// with x fastest); 0 stays 0.
//   in      views of any storage type, one channel; a voxel counts when it is not zero (a NaN does not)
//   out     int32 labels; may not overlap an input
//   counts  one per sample: the number of components; 0 if the mask is empty
//   sizes   none, or one span per sample for the numbers of voxels of components 1, 2, ... A shorter span takes the
//           first ones; elements beyond the last component become 0
// counts and sizes are in memory that the executor writes: device memory for cuda.
// Errors: views that do not match, more than 2^32 - 2 voxels, a workspace too small. Source: scipy.ndimage.label
// (the same numbers).
template <class Executor, class In, class Out>
void label_components(const Executor& exec, const In& inputs, const Out& outputs, connectivity touching,
                      std::span<std::uint32_t> counts, std::span<const std::span<std::uint32_t>> sizes = {}) {
  using namespace detail::masks;
  constexpr std::string_view name = "label_components";
  using T = std::remove_const_t<view_element_t<In>>;
  const auto in = as_views(inputs);
  const auto out = as_views(outputs);
  static_assert(std::is_same_v<view_element_t<Out>, std::int32_t>, "suture: labels are written as std::int32_t");
  check_mask_views(in, out, name, false);
  mask_loops<Executor>::check_memory_of(exec, out, {name}, "output: ");
  check_mask_results(exec, counts, in, name);
  require(sizes.empty() || sizes.size() == in.size(), {name}, sizes.size(), " sizes for ", in.size(), " samples");
  for_masks<label_layout>(exec, in, name, [&](auto& loops, const label_layout& l, std::size_t i) {
    loops.pack(strided_of<const T>(in[i]), is_set<T>{}, l.bits);
    const run_forest forest{l.bits, 0, l.parent};
    grow_forest(loops, forest, touching);
    loops.words(l.bits, flatten_runs{forest});
    const word_range range{forest, l.words};
    loops.each(l.chunks, count_chunk{range, l.chunk_counts});
    loops.each(l.groups, totals_before{l.chunk_counts, l.chunks, group_chunks, l.group_counts});
    loops.each(1, totals_before{l.group_counts, l.groups, l.groups, counts.data() + i});
    loops.each(l.chunks, number_chunk{range, l.chunk_counts, l.group_counts, l.numbers});
    loops.voxels(l.bits.extents, write_labels{forest, l.numbers, strided_of(out[i])});
    if (sizes.empty() || sizes[i].empty()) return;
    const auto room = std::min<std::size_t>(sizes[i].size(), 0xffffffffu);
    loops.each(static_cast<std::int64_t>(room), set_zero<std::uint32_t>{sizes[i].data()});
    loops.words(l.bits, sum_labels{forest, l.numbers, sizes[i].data(), static_cast<std::uint32_t>(room)});
  });
}

namespace mask_work {
// About 4.3 bytes a voxel, if rows have a multiple of 64 voxels.
using keep_largest_component = needs<detail::masks::component_layout>;
using remove_small_components = needs<detail::masks::component_layout>;
}  // namespace mask_work

// keep_largest_component: keeps the largest connected component of a mask; of equally large ones, the one whose first
// voxel comes first. An empty mask stays empty, with status `empty`.
//   in       views of any storage type, one channel; a voxel counts when it is not zero (a NaN does not)
//   out      uint8 masks of 0 and 1; may be the input itself, but not overlap it otherwise
//   results  one per sample, in memory that the executor writes (device memory for cuda)
// Errors: those of label_components. Source: scipy.ndimage.label, bincount.
template <class Executor, class In, class Out>
void keep_largest_component(const Executor& exec, const In& in, const Out& out, connectivity touching,
                            std::span<largest_component_result> results) {
  using namespace detail::masks;
  constexpr std::string_view name = "keep_largest_component";
  check_mask_results(exec, results, as_views(in), name);
  mask_to_mask<component_layout>(exec, in, out, name, [&](auto& loops, const component_layout& l, std::size_t i) {
    largest_of(loops, l, l.a, l.b, touching);
    loops.each(1, report_largest{l.best, results.data() + i});
    return l.b;
  });
}

// remove_small_components: keeps the connected components of at least `least` voxels.
// Views: those of keep_largest_component. Errors: those of label_components, a least size outside 0 .. 2^32 - 1.
// Source: skimage.morphology.remove_small_objects (min_size = least).
template <class Executor, class In, class Out>
void remove_small_components(const Executor& exec, const In& in, const Out& out, connectivity touching,
                             std::int64_t least) {
  using namespace detail::masks;
  constexpr std::string_view name = "remove_small_components";
  require(least >= 0 && least <= 0xffffffff, {name}, "least size ", least, " must be in 0..2^32 - 1");
  mask_to_mask<component_layout>(exec, in, out, name, [&](auto& loops, const component_layout& l, std::size_t) {
    large_of(loops, l, l.a, l.b, touching, static_cast<std::uint32_t>(least));
    return l.b;
  });
}

}  // namespace suture
