// SPDX-License-Identifier: Apache-2.0
// Functions of a request that are no templates of an element type, and the module (a shared library with a C ABI) that
// exports all of them. One compiled module serves every type; modules of other functions are compiled for each.
#pragma once

#include <memory>

#include "../patch/class_index.hpp"
#include "../patch/content_hash.hpp"
#include "../patch/label_runs.hpp"
#include "mask.hpp"
#include "parameters.hpp"
#include "patch_grid.hpp"
#include "points.hpp"
#include "recipe.hpp"

namespace suture::abi {

namespace detail {

template <class T>
void write_hashes(reader& r) {
  const auto views = r.input<T>("arrays");
  const auto hashes = r.result<std::uint64_t>("hashes", r.request().samples);
  r.finish();
  for (std::size_t i = 0; i < views.size(); ++i)
    hashes[i] = suture::content_hash(cpu{.threads = r.request().threads}, views[i],
                                     {"content_hash", static_cast<std::int64_t>(i)});
}

}  // namespace detail

// Computes a hash of the content of each sample (content_hash.hpp). Number: bytes per element, 1, 2 or 4. Input: arrays
// of any type of that size. Result: a hash for each sample.
inline void content_hash(const request& given) {
  reader r(given, "content_hash");
  switch (r.next<std::int32_t>("size")) {
    case 1:
      return detail::write_hashes<std::uint8_t>(r);
    case 2:
      return detail::write_hashes<std::uint16_t>(r);
    case 4:
      return detail::write_hashes<std::uint32_t>(r);
    default:
      fail(r.where(), "size: expected elements of 1, 2 or 4 bytes");
  }
}

// Deletes class indexes that index_classes or index_from_runs returned. List: pointers to them.
inline void free_class_indexes(const request& given) {
  reader r(given, "crop_by_class");
  const auto indexes = r.list<class_index*>("indexes");
  r.finish();
  for (class_index* const index : indexes) delete index;
}

// Builds a class index from the stored runs of a label map (label_runs.hpp). The caller owns it and frees it by
// free_class_indexes. Numbers: those of index_classes in abi/patch.hpp. Lists: the bytes of the runs; the table of a
// remap. Results: a pointer to the index; the extents of the map along (z, y, x).
inline void index_from_runs(const request& given) {
  reader r(given, "crop_by_class");
  const auto bytes = r.list<std::byte>("class_index");
  const auto classes = r.next<std::int32_t>("classes");
  const auto foreground = r.next<bool>("foreground");
  remap change;
  if (r.next<bool>("remapped")) change = r.next<remap>("remap");
  const auto handle = r.result<class_index*>("indexes", 1);
  const auto extents = r.result<std::int64_t>("extents", 3);
  r.finish();
  const label_runs runs = label_runs::from_bytes(bytes, r.where());
  auto made = std::make_unique<class_index>(suture::index_classes(runs, classes, change, foreground, r.where()));
  for (int k = 0; k < 3; ++k) extents[static_cast<std::size_t>(k)] = runs.extents()[k];
  handle[0] = made.release();
}

}  // namespace suture::abi

// Defines the exported function suture_NAME, which calls suture::abi::NAME with a request. It returns the status of
// `guarded`: 0, or another number with the message in suture_error().
#define SUTURE_ABI_PLAIN(name)                                   \
  SUTURE_ABI int suture_##name(const suture::abi::request* r) {  \
    return suture::abi::guarded([&] { suture::abi::name(*r); }); \
  }

// Defines the exported functions of the module. Use it once, in the source file of the shared library.
#define SUTURE_ABI_PLAIN_MODULE         \
  SUTURE_ABI_MODULE                     \
  SUTURE_ABI_PLAIN(boxes_to_output)     \
  SUTURE_ABI_PLAIN(boxes_to_source)     \
  SUTURE_ABI_PLAIN(content_hash)        \
  SUTURE_ABI_PLAIN(crop_foreground)     \
  SUTURE_ABI_PLAIN(dense_patch_grid)    \
  SUTURE_ABI_PLAIN(free_class_indexes)  \
  SUTURE_ABI_PLAIN(grid_tiles)          \
  SUTURE_ABI_PLAIN(index_from_runs)     \
  SUTURE_ABI_PLAIN(nnunet_shape)        \
  SUTURE_ABI_PLAIN(points_to_output)    \
  SUTURE_ABI_PLAIN(points_to_source)    \
  SUTURE_ABI_PLAIN(random_tiles)        \
  SUTURE_ABI_PLAIN(sliding_window_grid) \
  SUTURE_ABI_PLAIN(window_weights)
