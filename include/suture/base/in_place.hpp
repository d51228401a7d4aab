// SPDX-License-Identifier: Apache-2.0
// Construction of values in existing memory.
#pragma once

#include <new>
#include <type_traits>

namespace suture::detail {

// Memory for a T that is constructed later, in place. To construct the value elsewhere and copy it would be slow: the
// wide loads of the copy wait until the narrow stores before them have reached the cache.
template <class T>
union room {
  room() {}
  T value;
};
// Replaces `old` by the result of make(), constructed in its memory.
template <class T, class Make>
T& make_at(T& old, const Make& make) {
  static_assert(std::is_trivially_copyable_v<T>);
  return *::new (static_cast<void*>(&old)) T(make());
}

}  // namespace suture::detail
