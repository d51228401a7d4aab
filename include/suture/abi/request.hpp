// SPDX-License-Identifier: Apache-2.0
// The structs that cross the C ABI of a module, the shared library of a compiled chain or function. Any language can
// fill them; no exception crosses. The caller owns all memory that they point to.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "../base/float_mode.hpp"
#include "../image/view.hpp"

// Exports a function under its C name, even from a module compiled with hidden visibility.
#if defined(_WIN32)
#define SUTURE_ABI extern "C" __declspec(dllexport)
#else
#define SUTURE_ABI extern "C" __attribute__((visibility("default")))
#endif

namespace suture::abi {

// A view without its element type, which the module knows. If only a box of the voxels is in memory, box_size is above
// 0, `data` is the address of the first voxel of the box, and the strides are those of the box. `data` may be null in a
// request of suture_plan, which reads no voxels; requests of suture_run then have inputs of their own.
struct array {
  void* data;
  std::int64_t extents[3], stride[3], channels, channel_stride;  // strides in elements, along (z, y, x)
  std::int64_t box_first[3], box_size[3];                        // along (z, y, x); a size of 0: all voxels
  double spacing[3], origin[3], direction[9];
};

// The arrays of one input or output: one for each sample, or a single one for samples that are `step` bytes apart.
struct bound {
  const array* arrays;
  std::int64_t count, step;
};

// Elements that a function reads. `size` is the bytes of one, which the module compares with its own type.
struct list {
  const void* data;
  std::int64_t count, size;
};

// Elements that a function writes to memory of the caller. `size` is as in `list`.
struct result {
  void* data;
  std::int64_t count, size;
};

// The version of these structs. suture_version() of a module returns the one with which it was compiled; it refuses
// requests of another version.
inline constexpr std::uint32_t version = 3;

// The only argument of most functions of a module. Members that a function does not use may be 0.
struct request {
  std::uint32_t version, bytes;  // both of this struct
  const double* numbers;         // all numbers, in the order in which they are read
  std::int64_t number_count;
  const list* lists;
  std::int64_t list_count;
  const bound* inputs;  // images, label maps, ... that are read
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
  std::uint32_t image;  // settings::image, the number of the image among those of a sample
  std::int32_t evaluation;
  std::int32_t threads;
  std::int32_t same_ids;  // 1 if an id may occur twice
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

// Returns the message of the last error in this thread.
inline std::string& last_error() {
  static thread_local std::string text;
  return text;
}

// Sets last_error, or a shorter text if there is no memory for the message. Returns `status`.
inline int failed(int status, const char* message) noexcept {
  try {
    last_error() = message;
  } catch (...) {
    last_error() = "no memory left";  // short enough for the string to hold without memory
  }
  return status;
}

// Calls f in the default floating-point mode of this thread, in which results are reproducible, and then restores the
// mode that the thread had (such as flush-to-zero). Runs on the CPU give it to their threads.
// Returns 0; 1 if f threw suture::error, 2 for any other exception, with the message in last_error.
template <class F>
int guarded(const F& f) noexcept {
  const suture::detail::scoped_float_mode ieee(suture::detail::default_float_mode);
  try {
    f();
    return 0;
  } catch (const error& e) {
    return failed(1, e.what());
  } catch (const std::exception& e) {
    return failed(2, e.what());
  } catch (...) {
    return failed(2, "suture: an exception that is no std::exception");
  }
}

}  // namespace suture::abi
