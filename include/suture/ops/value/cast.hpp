// SPDX-License-Identifier: Apache-2.0
// The element type of the output.
#pragma once

#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/numeric.hpp"

namespace suture {

// Ends a chain: the value as T, rounded to nearest even; integers saturate and NaN becomes 0, half and bfloat16
// overflow to infinity (see storage).
template <class T>
struct cast {
  static_assert(is_image_storage_v<T>,
                "suture: cast<T> needs a storage type: int8, uint8, int16, uint16, int32, float, half or bfloat16");

  static constexpr std::string_view name = "cast";
  static constexpr auto parameters = named();

  SUTURE_FN T operator()(float x) const { return storage<T>::store(x); }

  // operator() for voxels side by side.
  template <int Count>
  SUTURE_INLINE void convert_row(const float (&values)[Count], T (&out)[Count]) const {
    detail::store_row(values, out, Count);
  }
};

}  // namespace suture
