// SPDX-License-Identifier: Apache-2.0
// Structs that cross the C ABI of a compiled chain or function: plain structs that any language can fill, and no
// exception.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "../image/view.hpp"
#if defined(__SSE__)
#include <immintrin.h>
#endif

// Whatever else is hidden, these functions are found by name.
#if defined(_WIN32)
#define SUTURE_ABI extern "C" __declspec(dllexport)
#else
#define SUTURE_ABI extern "C" __attribute__((visibility("default")))
#endif

namespace suture::abi {

// A view without its element type, which the module that was compiled for it knows. Where only a box of the voxels lies
// in memory, box_size is above 0, and `data` and the strides are those of the box: data is the address of its first
// voxel. A plan is made without voxels: data may be null, and a run then gets inputs of its own.
struct array {
  void* data;
  std::int64_t extents[3], stride[3], channels, channel_stride;  // strides in elements, along (z, y, x)
  std::int64_t box_first[3], box_size[3];                        // along (z, y, x); a size of 0: all voxels
  double spacing[3], origin[3], direction[9];
};

// The views of one bound thing: one for each sample, or one alone, and `step` bytes lie between samples.
struct bound {
  const array* arrays;
  std::int64_t count, step;
};

// Elements that a function reads: how many there are, and the bytes of one, which the module compares with its own
// type.
struct list {
  const void* data;
  std::int64_t count, size;
};

// Elements that a function writes, in memory of the caller.
struct result {
  void* data;
  std::int64_t count, size;
};

// The version of these structs. A module says which one it was compiled for, and a request which one it was made for.
inline constexpr std::uint32_t version = 3;

// The one argument of what a module offers. What is not asked for may be left 0.
struct request {
  std::uint32_t version, bytes;  // of this struct
  const double* numbers;         // every number, in the order in which they are read
  std::int64_t number_count;
  const list* lists;
  std::int64_t list_count;
  const bound* inputs;  // of each image, label map, ... that is read
  std::int64_t input_count;
  const bound* outputs;
  std::int64_t output_count;
  const result* results;
  std::int64_t result_count;
  std::int64_t samples;
  const std::uint64_t* sample_ids;  // null: none
  std::int64_t id_count;            // 0, or as many as samples
  std::uint64_t seed;
  std::uint32_t epoch;
  std::uint32_t image;  // which image of the sample this is: each has noise of its own
  std::int32_t evaluation;
  std::int32_t threads;
  std::int32_t same_ids;  // the same id may stand twice
  std::int32_t reserved;
  void* stream;
  void* workspace;
  std::uint64_t workspace_bytes;
};

static_assert(sizeof(array) == 30 * 8 && sizeof(bound) == 24 && sizeof(list) == 24 && sizeof(result) == 24 &&
              sizeof(request) == 21 * 8);

inline suture::grid grid_of(const array& a) {
  suture::grid g;
  for (int i = 0; i < 3; ++i) {
    g.extents[i] = a.extents[i];
    g.spacing[i] = a.spacing[i];
    g.origin[i] = a.origin[i];
    for (int j = 0; j < 3; ++j) g.direction[i][j] = a.direction[3 * i + j];
  }
  return g;
}
inline void write_grid(const suture::grid& g, array& a) {
  for (int i = 0; i < 3; ++i) {
    a.extents[i] = g.extents[i];
    a.spacing[i] = g.spacing[i];
    a.origin[i] = g.origin[i];
    for (int j = 0; j < 3; ++j) a.direction[3 * i + j] = g.direction[i][j];
  }
}

// The sentence of the last call of this thread that failed.
inline std::string& last_error() {
  static thread_local std::string text;
  return text;
}

// Calls f with the floating-point mode that the bits are promised for, whatever the process has set (flush-to-zero,
// say), and leaves that as it was. 0: done; 1: refused, 2: failed, and last_error says why.
template <class F>
int guarded(const F& f) {
#if defined(__SSE__)
  struct mode {
    unsigned before = _mm_getcsr();
    mode() { _mm_setcsr(0x1f80); }
    ~mode() { _mm_setcsr(before); }
  } const ieee;
#endif
  try {
    f();
    return 0;
  } catch (const error& e) {
    last_error() = e.what();
    return 1;
  } catch (const std::exception& e) {
    last_error() = e.what();
    return 2;
  }
}

}  // namespace suture::abi
