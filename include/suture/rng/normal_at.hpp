// SPDX-License-Identifier: Apache-2.0
// Value operations draw normals at every voxel by normal_at. Four neighbors of a row share a block. On a device their
// threads compute blocks for each other in advance, for several voxels each.
#pragma once

#include "../base/voxel.hpp"
#include "draw.hpp"

namespace suture {

namespace detail {

// The number of normals that a functor uses at every voxel: its `normals`.
template <class F>
inline constexpr int normals_of = 0;
template <class F>
requires requires { F::normals; }
inline constexpr int normals_of<F> = F::normals;

// Normals that the threads of a block computed in advance. A slot holds one channel of one voxel of a thread; threads
// process voxels along z.
struct shared_normals {
  struct range {
    std::int32_t first, count;  // channels that these slots are for
    std::int32_t shift;         // log2 of the slots of a voxel
    std::int32_t stride;        // slots of a voxel
  };
  const float* normals;
  const range* channels;
  std::uint32_t slots;    // a power of two
  std::uint32_t threads;  // elements from one slot to the next

  SUTURE_FN float at(const voxel& v, int field, std::uint32_t thread) const {
    const auto slot = static_cast<std::uint32_t>(v.walk_index * channels->stride + v.channel) % slots;
    return normals[(static_cast<std::uint32_t>(field) * slots + slot) * threads + thread];
  }
};

}  // namespace detail

// Returns the normal of a field at a voxel, for a functor that uses normals at every voxel. The functor states their
// number and returns the fields, so that they can be computed in advance:
//   static constexpr int normals;
//   SUTURE_FN const random_field& normal_field(int number) const;
SUTURE_FN float normal_at(const random_field& field, const voxel& at, [[maybe_unused]] int normal_index = 0) {
#if defined(__CUDA_ARCH__)
  if (at.normals != nullptr) return at.normals->at(at, at.first_normal + normal_index, threadIdx.x);
#endif
  return field.normal(at.element);
}

}  // namespace suture
