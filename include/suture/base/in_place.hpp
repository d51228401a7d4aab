// SPDX-License-Identifier: Apache-2.0
// Values made where they stay.
#pragma once

#include <new>
#include <type_traits>

namespace suture::detail {

// Room for a T that is made later, where it stays. What is written number by number and then copied whole, in larger
// pieces, waits until all of it has arrived in the cache.
template <class T>
union room {
  room() {}
  T value;
};
// Makes what `make` returns in the place of `old`.
template <class T, class Make>
T& make_at(T& old, const Make& make) {
  static_assert(std::is_trivially_copyable_v<T>);
  return *::new (static_cast<void*>(&old)) T(make());
}

}  // namespace suture::detail
