// SPDX-License-Identifier: Apache-2.0
// Patches, grids, points and recipes as they cross from Python: read, checked, and written to results of the exact
// size.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <numeric>
#include <random>

#include "support/abi_request.hpp"
#include "support/expect_says.hpp"
#include "suture/abi/patch.hpp"
#include "suture/abi/plain.hpp"
#include "suture/ops/geometry/flip.hpp"
#include "suture/plan/plan.hpp"

namespace suture {
namespace {

grid grid_of(const extent3& n) { return {.extents = n}; }

// A request whose parts are added one after the other, in the order in which a function reads them.
class asked {
public:
  asked& numbers(std::initializer_list<double> given) {
    f_.numbers.insert(f_.numbers.end(), given);
    return *this;
  }
  asked& size(const extent3& n) {
    return numbers({static_cast<double>(n[0]), static_cast<double>(n[1]), static_cast<double>(n[2])});
  }
  template <class T>
  asked& list(const std::vector<T>& given) {
    f_.lists.push_back({given.data(), static_cast<std::int64_t>(given.size()), sizeof(T)});
    return *this;
  }
  template <class T>
  asked& result(std::vector<T>& given) {
    f_.results.push_back({given.data(), static_cast<std::int64_t>(given.size()), sizeof(T)});
    return *this;
  }
  template <class T>
  asked& input(const std::vector<T>& given, const extent3& n, std::int64_t channels = 1) {
    return bound(f_.inputs, const_cast<T*>(given.data()), n, channels);  // the struct serves outputs as well
  }
  template <class T>
  asked& output(std::vector<T>& given, const extent3& n, std::int64_t channels = 1) {
    return bound(f_.outputs, given.data(), n, channels);
  }
  asked& ids(const std::vector<std::uint64_t>& given) {
    ids_ = given;
    return *this;
  }
  asked& seed(std::uint64_t seed) {
    f_.r.seed = seed;
    return *this;
  }

  template <auto Function>
  void call() {
    f_.get();
    f_.r.samples = f_.inputs.empty() ? 0 : 1;
    f_.r.sample_ids = ids_.data();
    f_.r.id_count = static_cast<std::int64_t>(ids_.size());
    f_.r.threads = 2;
    Function(f_.r);
  }

private:
  template <class T>
  asked& bound(std::vector<abi::bound>& to, T* data, const extent3& n, std::int64_t channels) {
    const view<T> v = contiguous(data, grid_of(n), channels);
    abi::array a{
        data, {n[0], n[1], n[2]}, {v.stride[0], v.stride[1], v.stride[2]}, channels, v.channel_stride, {}, {}, {}, {},
        {}};
    abi::write_grid(v.grid, a);
    arrays_.push_back(a);
    to.push_back({&arrays_.back(), 1, 0});
    return *this;
  }

  std::deque<abi::array> arrays_;
  std::vector<std::uint64_t> ids_;
  filled f_;
};

using counts3 = std::vector<std::int64_t>;
constexpr auto& index_int16 = abi::index_classes<std::int16_t, cpu>;
constexpr auto& select_balanced = abi::select_patches<class_balanced_patch, std::int16_t, void, cpu>;
constexpr auto& average_floats = abi::average<float, cpu>;

TEST(abi_grid, says_how_many_starts_there_are_and_then_which) {
  // More starts than voxels: 600 slices, windows of one slice, half a slice apart.
  counts3 counts(3);
  asked().size({600, 8, 8}).size({1, 8, 8}).numbers({.5}).result(counts).call<abi::sliding_window_grid>();
  EXPECT_EQ(counts, (counts3{1199, 1, 1}));
  counts3 z(1199), y(1), x(1);
  asked()
      .size({600, 8, 8})
      .size({1, 8, 8})
      .numbers({.5})
      .result(counts)
      .result(z)
      .result(y)
      .result(x)
      .call<abi::sliding_window_grid>();
  EXPECT_EQ(std::vector(z.begin(), z.begin() + 8),
            (counts3{0, 0, 1, 2, 2, 2, 3, 4}));  // halves to even, as NumPy rounds
  EXPECT_EQ(z.back(), 599);
  EXPECT_TRUE(std::is_sorted(z.begin(), z.end()));
}

TEST(abi_grid, writes_nothing_into_results_of_another_size) {
  counts3 counts(3), z(1118, -1), y(1), x(1);
  EXPECT_SAYS(asked()
                  .size({600, 8, 8})
                  .size({1, 8, 8})
                  .numbers({.5})
                  .result(counts)
                  .result(z)
                  .result(y)
                  .result(x)
                  .call<abi::sliding_window_grid>(),
              "sliding_window_grid: starts: expected room for 1199 elements, got 1118");
  EXPECT_EQ(z, counts3(1118, -1));
  EXPECT_SAYS(asked().size({6, 8, 8}).size({4, 4, 4}).numbers({.5, .5}).result(counts).call<abi::dense_patch_grid>(),
              "dense_patch_grid: overlap: expected more than 8 numbers");
  EXPECT_SAYS(
      asked().size({6, 8, 8}).size({4, 4, 4}).numbers({0, 0, 0, 0}).result(counts).call<abi::dense_patch_grid>(),
      "dense_patch_grid: request: expected 9 numbers");
  EXPECT_SAYS(asked().size({6, 8, 8}).numbers({1.5, 4, 4, .5}).result(counts).call<abi::sliding_window_grid>(),
              "size: expected a whole number");
  EXPECT_SAYS(
      asked().size({600, 8, 8}).size({1, 8, 8}).numbers({1e-300}).result(counts).call<abi::sliding_window_grid>(),
      "sliding_window_grid: step: expected at most 2^27");
}

TEST(abi_grid, weighs_windows) {
  for (const int kind : {0, 1, 2}) {
    std::vector<float> z(3), y(4), x(5), least(1);
    asked()
        .numbers({static_cast<double>(kind), 3, 4, 5})
        .result(z)
        .result(y)
        .result(x)
        .result(least)
        .call<abi::window_weights>();
    EXPECT_EQ(z[1], 1.0f);  // the middle of three
    EXPECT_EQ(z[0] == 1.0f, kind == 0);
    EXPECT_EQ(least[0], kind == 1 ? 1e-3f : 0.0f);
  }
  std::vector<float> none(1);
  EXPECT_SAYS(asked().numbers({3, 1, 1, 1}).result(none).call<abi::window_weights>(),
              "window: expected a value from 0 to 2");
  EXPECT_SAYS(asked().numbers({0, -1, 1, 1}).result(none).call<abi::window_weights>(), "size: expected 1 to 2097152");
}

TEST(abi_grid, lists_tiles) {
  const std::vector<slide_level> levels = {{400, 600, 1}};
  const std::vector<std::uint8_t> mask(40 * 60, 1);
  counts3 count(1);
  const auto grid = [&] {
    return std::move(asked().numbers({.5, 100, 0, .5, .5, 0}).list(levels).input(mask, {1, 40, 60}).result(count));
  };
  grid().call<abi::grid_tiles>();
  EXPECT_EQ(count[0], 24);
  std::vector<slide_tile> tiles(24);
  grid().result(tiles).call<abi::grid_tiles>();
  EXPECT_EQ(tiles[7].region.y, 100);
  EXPECT_EQ(tiles[7].region.x, 100);
  EXPECT_EQ(tiles[7].tissue, 1);
  std::vector<slide_tile> few(23);
  EXPECT_SAYS(grid().result(few).call<abi::grid_tiles>(), "grid_tiles: tiles: expected room for 24 elements, got 23");
  EXPECT_SAYS(asked()
                  .numbers({.5, 100, 0, .5, .5, 0, 3})
                  .list(levels)
                  .input(mask, {1, 40, 60})
                  .result(count)
                  .call<abi::random_tiles>(),
              "random_tiles: slide_id: expected one, got 0");
  asked()
      .numbers({.5, 100, 0, .5, .5, 0, 3})
      .list(levels)
      .input(mask, {1, 40, 60})
      .ids({7})
      .result(count)
      .call<abi::random_tiles>();
  EXPECT_EQ(count[0], 3);
}

TEST(abi_recipe, nnunet_shape_says_how_many_scales_there_are_and_then_which) {
  std::vector<extent3> enlarged(1), margin(1);
  std::vector<point3> rotation(1);
  std::vector<std::uint8_t> axes(3);
  counts3 count(1);
  const auto shape = [&] {
    return std::move(asked()
                         .numbers({128, 128, 128, 1, 1, 1})
                         .result(enlarged)
                         .result(margin)
                         .result(rotation)
                         .result(axes)
                         .result(count));
  };
  shape().call<abi::nnunet_shape>();
  EXPECT_EQ(rotation[0], (point3{30, 30, 30}));
  EXPECT_EQ(axes, (std::vector<std::uint8_t>{1, 1, 1}));
  EXPECT_EQ(count[0], 4);  // nnU-Net pools 128 voxels five times; the last has no target
  std::vector<point3> scales(4);
  shape().result(scales).call<abi::nnunet_shape>();
  EXPECT_EQ(scales[3], (point3{.0625, .0625, .0625}));
  EXPECT_SAYS(asked().numbers({0, 8, 8, 1, 1, 1}).result(enlarged).call<abi::nnunet_shape>(),
              "patch: expected 1 to 2097152");
  EXPECT_SAYS(asked().numbers({8, 8, 8, 1, -1, 1}).result(enlarged).call<abi::nnunet_shape>(),
              "spacing_mm: expected positive");
}

TEST(abi_points, checks_offsets_and_moves_by_the_maps) {
  const grid g = grid_of({4, 5, 6});
  const auto made = plan(flip{.axes = {true, false, false}}, g);
  const auto maps = made.geometry();
  const std::vector<abi::geometry> given = {{maps.first, static_cast<std::int64_t>(maps.step), 1}};
  const std::vector<point3> points = {{0, 1, 2}, {3, 4, 5}};
  std::vector<located_point> moved(2);
  const auto with = [&](const counts3& offsets) {
    asked().list(given).list(points).list(offsets).result(moved).call<abi::points_to_output>();
  };
  with({0, 2});
  EXPECT_EQ(moved[0].point, (point3{3, 1, 2}));
  EXPECT_EQ(moved[1].point, (point3{0, 4, 5}));
  for (const counts3& wrong :
       {counts3{0, 3}, counts3{0, 1}, counts3{-1, 2}, counts3{0, 2, 2}, counts3{1, 2}, counts3{}})
    EXPECT_SAYS(with(wrong), "to_output: offsets: expected 2 from 0 to 2 in order");
  const std::vector<box> boxes = {{{0, 0, 0}, {1, 2, 3}}};
  std::vector<box_in_source> back(1);
  const counts3 offsets = {0, 1};
  asked().list(given).list(boxes).list(offsets).result(back).call<abi::boxes_to_source>();
  EXPECT_EQ(back[0].envelope.low, (point3{3, 0, 0}));
  EXPECT_EQ(back[0].envelope.high, (point3{4, 2, 3}));
  std::vector<located_point> few(1);
  const counts3 two = {0, 2};
  EXPECT_SAYS(asked().list(given).list(points).list(two).result(few).call<abi::points_to_output>(),
              "room for 2 elements");
}

// Printed by xxhash of Python, 3.6, which is the code of the author of XXH64.
TEST(content_hash, is_that_of_xxhash) {
  const std::pair<std::size_t, std::pair<std::uint64_t, std::uint64_t>> known[] = {
      {0, {0xef46db3751d8e999, 0xc4349fc93c010000}},  {1, {0xa96c7f0ce858bbb7, 0x585882422a6165e7}},
      {4, {0xfa212ae44b3bb23d, 0xa65107f22943365a}},  {13, {0xdadc8a6255b4829b, 0x51106c87c69efbbc}},
      {31, {0x6711d55e306b5d8f, 0x24c4e99ab0404b5e}}, {32, {0x7f7b8e3bc5d6e25, 0x46e99bbda1a814b}},
      {33, {0x9f85eeb4e1cbe9f, 0xd7fe2bfee6e4cded}},  {63, {0xb7c9968c066cb6a5, 0xbd457f9ea47180c8}},
      {64, {0x50d4159a0411632e, 0xa768f350a8e4fcf6}}, {100, {0x9ddada11d3dc2d8f, 0x35546bd9a4779ae4}},
      {1000, {0xbf0bdbcc82eb373, 0x3ecb5d7b5e7c64cf}}};
  for (const auto& [count, hashes] : known) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 + 7);
    EXPECT_EQ(xxh64(bytes), hashes.first) << count;
    EXPECT_EQ(xxh64(bytes, 0x9e3779b97f4a7c15ull), hashes.second) << count;
  }
}

template <class T>
std::uint64_t hash_of(const view<T>& v, int threads = 1) {
  return content_hash(cpu{.threads = threads}, view<const T>(v));
}

TEST(content_hash, changes_with_every_voxel_and_with_no_thread) {
  for (const extent3& n : {extent3{3, 5, 7}, extent3{1, 1, 1}, extent3{2, 1, 40}}) {
    std::vector<std::int16_t> voxels(static_cast<std::size_t>(2 * n[0] * n[1] * n[2]), 1);
    for (const view<std::int16_t>& v :
         {contiguous(voxels.data(), grid_of(n), 2), channels_last(voxels.data(), grid_of(n), 2)}) {
      const std::uint64_t before = hash_of(v);
      EXPECT_EQ(hash_of(v, 3), before);
      for (auto& voxel : voxels) {
        ++voxel;
        EXPECT_NE(hash_of(v), before);
        --voxel;
      }
      EXPECT_EQ(hash_of(v), before);
    }
  }
}

TEST(content_hash, sees_what_a_view_shows_and_nothing_beside_it) {
  std::vector<std::uint8_t> memory(8 * 9 * 10);
  std::iota(memory.begin(), memory.end(), std::uint8_t{0});
  view<std::uint8_t> part{memory.data() + 95, grid_of({3, 4, 5}), {90, 10, 1}, 1, 0};
  const std::uint64_t before = hash_of(part);
  std::vector<char> shown(memory.size(), 0);
  for (std::int64_t z = 0; z < 3; ++z)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t x = 0; x < 5; ++x) shown[static_cast<std::size_t>(95 + 90 * z + 10 * y + x)] = 1;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] ^= 1;
    EXPECT_EQ(hash_of(part) != before, shown[i] != 0) << i;
    memory[i] ^= 1;
  }
  // The other orders of axes, and one that runs backward.
  for (view<std::uint8_t> v : {view<std::uint8_t>{memory.data(), grid_of({3, 4, 5}), {1, 3, 12}, 1, 0},
                               view<std::uint8_t>{memory.data() + 59, grid_of({3, 4, 5}), {-20, -5, -1}, 1, 0},
                               view<std::uint8_t>{memory.data(), grid_of({3, 4, 5}), {20, 5, 0}, 1, 0}}) {
    const std::uint64_t whole = hash_of(v);
    std::uint8_t& last = v.data[v.stride[0] * 2 + v.stride[1] * 3 + v.stride[2] * 4];
    last ^= 1;
    EXPECT_NE(hash_of(v), whole);
    last ^= 1;
  }
}

TEST(content_hash, takes_large_rows_in_pieces) {
  std::vector<std::uint8_t> voxels(1200 * 1000, 3);
  const view<std::uint8_t> v = contiguous(voxels.data(), grid_of({1200, 100, 10}));
  const std::uint64_t before = hash_of(v);
  EXPECT_EQ(hash_of(v, 4), before);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1} << 18, (std::size_t{1} << 18) - 1, voxels.size() - 1}) {
    voxels[i] = 4;
    EXPECT_NE(hash_of(v), before) << i;
    voxels[i] = 3;
  }
  std::vector<std::uint64_t> hashes(1);
  asked().numbers({1}).input(voxels, {1200, 100, 10}).result(hashes).call<abi::content_hash>();
  EXPECT_EQ(hashes[0], before);
  EXPECT_SAYS(asked().numbers({3}).input(voxels, {1200, 100, 10}).result(hashes).call<abi::content_hash>(),
              "size: expected elements of 1, 2 or 4 bytes");
}

std::vector<std::int16_t> random_labels(std::size_t count) {
  std::mt19937 random(5);
  std::vector<std::int16_t> labels(count);
  for (std::size_t i = 0; i < count; ++i)
    labels[i] = i % 4 == 0 ? static_cast<std::int16_t>(random() % 5) - 1 : labels[i - i % 4];
  return labels;
}

struct change {
  std::vector<label_change> table;
  bool keep;
  std::int32_t others;
  std::int32_t operator()(std::int32_t label) const {
    for (const label_change& c : table)
      if (c.from == label) return c.to;
    return keep ? label : others;
  }
};

TEST(abi_class_index, is_that_of_the_labels_as_they_are_stored) {
  const extent3 n{4, 5, 12};
  const auto labels = random_labels(2 * 4 * 5 * 12);
  const change changes[] = {
      {{{3, 1}}, false, 0}, {{{1, 2}, {2, 0}}, true, 0}, {{{-1, 1}, {0, 2}}, false, 7}, {{}, true, 0}};
  for (const change& c : changes)
    for (const bool foreground : {false, true}) {
      const std::int64_t channels = foreground ? 2 : 1;
      const int classes = foreground ? 2 : 3;
      std::vector<class_index*> made(1, nullptr);
      asked()
          .numbers({static_cast<double>(classes), foreground ? 1.0 : 0.0, 1, c.keep ? 0.0 : 1.0,
                    c.keep ? 0.0 : static_cast<double>(c.others)})
          .list(c.table)
          .input(labels, n, channels)
          .result(made)
          .call<index_int16>();
      ASSERT_NE(made[0], nullptr);
      std::vector<std::vector<std::int64_t>> expected(static_cast<std::size_t>(classes));
      for (std::int64_t i = 0; i < 240; ++i) {
        const std::int32_t first = c(labels[static_cast<std::size_t>(i)]),
                           second = c(labels[static_cast<std::size_t>(240 + i)]);
        const std::int32_t of_class = foreground ? first > 0 || second > 0 : first;
        if (of_class >= 0 && of_class < classes) expected[static_cast<std::size_t>(of_class)].push_back(i);
      }
      for (std::int32_t k = 0; k < classes; ++k) {
        const auto& voxels = expected[static_cast<std::size_t>(k)];
        ASSERT_EQ(made[0]->total(k), voxels.size());
        for (std::size_t rank = 0; rank < voxels.size(); ++rank) EXPECT_EQ(made[0]->voxel(k, rank), voxels[rank]);
      }
      asked().list(made).call<abi::free_class_indexes>();
    }
}

TEST(abi_class_index, refuses_what_no_map_can_hold_and_makes_nothing) {
  const auto labels = random_labels(8);
  std::vector<class_index*> made(1, nullptr), two(2, nullptr);
  EXPECT_SAYS(asked().numbers({0, 0, 0}).input(labels, {2, 2, 2}).result(made).call<index_int16>(),
              "classes 0 must be in 1..1024");
  EXPECT_SAYS(asked().numbers({3, 0, 0}).input(labels, {2, 2, 2}).result(two).call<index_int16>(),
              "crop_by_class: indexes: expected room for 1 elements, got 2");
  const std::vector<label_change> twice = {{1, 2}, {1, 3}};
  EXPECT_SAYS(asked().numbers({3, 0, 1, 0, 0}).list(twice).input(labels, {2, 2, 2}).result(made).call<index_int16>(),
              "label 1 stands twice");
  EXPECT_EQ(made[0], nullptr);
}

TEST(abi_patches, are_those_of_the_rule) {
  const extent3 n{6, 7, 8};
  const auto labels = random_labels(336);
  const view<const std::int16_t> map = contiguous(labels.data(), grid_of(n));
  const std::vector<float> ratios = {1, 2, 3};
  const std::vector<std::uint64_t> ids = {11};
  const std::vector<std::uint8_t> no_flags;
  std::vector<patch_choice> got(5), expected(5);
  asked()
      .size({2, 3, 4})
      .numbers({3, 5, 2})
      .list(ratios)
      .list(no_flags)
      .input(labels, n)
      .ids(ids)
      .seed(9)
      .result(got)
      .call<select_balanced>();
  const auto classes = label_classes(map, 3);
  std::vector<std::uint64_t> table(class_counts_bytes(classes) / 8 + 1);
  count_classes(cpu{}, classes, std::as_writable_bytes(std::span(table)));
  select_patches(cpu{}, class_balanced_patch{{2, 3, 4}, ratios}, classes, std::as_bytes(std::span(table)),
                 {.seed = 9, .sample_ids = ids, .patches = 5, .ordinal = 2}, expected);
  for (std::size_t p = 0; p < 5; ++p) {
    EXPECT_EQ(got[p].start, expected[p].start);
    EXPECT_EQ(got[p].voxel, expected[p].voxel);
    EXPECT_EQ(labels[static_cast<std::size_t>(got[p].voxel)], got[p].of_class);
  }
  std::vector<patch_choice> few(4);
  EXPECT_SAYS((asked()
                   .size({2, 3, 4})
                   .numbers({3, 5, 2})
                   .list(ratios)
                   .list(no_flags)
                   .input(labels, n)
                   .ids(ids)
                   .result(few)
                   .call<select_balanced>()),
              "choices: expected room for 5 elements, got 4");
}

TEST(abi_patches, count_as_they_are_counted) {
  const auto labels = random_labels(60);
  std::vector<std::uint64_t> counts(3);
  asked().numbers({3}).input(labels, {3, 4, 5}).result(counts).call<abi::count_classes<std::int16_t, cpu>>();
  for (std::int16_t c = 0; c < 3; ++c)
    EXPECT_EQ(counts[static_cast<std::size_t>(c)],
              static_cast<std::uint64_t>(std::count(labels.begin(), labels.end(), c)));
}

TEST(abi_reassemble, puts_together_what_belongs_to_the_grid) {
  const extent3 image{1, 3, 4}, size{1, 3, 2};
  std::vector<float> patches = {0, 1, 4, 5, 8, 9, 1, 2, 5, 6, 9, 10, 2, 3, 6, 7, 10, 11}, volume(12, -1);
  const counts3 z = {0}, y = {0}, x = {0, 1, 2};
  const auto with = [&](double count, const counts3& along_x) {
    asked()
        .size(image)
        .size(size)
        .numbers({count, 0, 0})
        .list(z)
        .list(y)
        .list(along_x)
        .input(patches, size)
        .output(volume, image)
        .call<abi::reassemble<float, false, cpu>>();
  };
  with(3, x);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(volume[i], static_cast<float>(i));
  EXPECT_SAYS(with(2, x), "reassemble: patches: expected 3 of (1, 3, 2), got 2");
  EXPECT_SAYS(with(2, {0, 1}), "do not cover the volume");
  EXPECT_SAYS(with(2, {0, -1}), "do not cover the volume");
  std::vector<float> coverage(18, 1);
  coverage[0] = 0;
  asked()
      .size(image)
      .size(size)
      .numbers({3, 0, -5})
      .list(z)
      .list(y)
      .list(x)
      .input(patches, size)
      .input(coverage, size)
      .output(volume, image)
      .call<abi::reassemble<float, true, cpu>>();
  EXPECT_EQ(volume[0], -5);
  EXPECT_EQ(volume[1], 1);
}

TEST(abi_average, takes_extents_that_fit) {
  const std::vector<float> restored = {2, 0, 4, 0}, coverage = {1, 0, 1, 0};
  std::vector<float> mean(2), covered(2);
  asked()
      .numbers({2, .001, 9})
      .input(restored, {1, 1, 2})
      .input(coverage, {1, 1, 2})
      .output(mean, {1, 1, 2})
      .output(covered, {1, 1, 2})
      .call<average_floats>();
  EXPECT_EQ(mean, (std::vector<float>{3, 9}));
  EXPECT_EQ(covered, (std::vector<float>{2, 0}));
  EXPECT_SAYS(asked()
                  .numbers({2, .001, 9})
                  .input(restored, {1, 1, 2})
                  .input(coverage, {1, 2, 1})
                  .output(mean, {1, 1, 2})
                  .output(covered, {1, 1, 2})
                  .call<average_floats>(),
              "average: mean: expected extents (1, 1, 2)");
}

}  // namespace
}  // namespace suture
