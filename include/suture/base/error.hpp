// SPDX-License-Identifier: Apache-2.0
// The library's one exception type, and the start of its messages: operation and sample.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "config.hpp"
#include "message.hpp"

#if !defined(__cpp_exceptions) && !defined(__CUDACC__)
#error "suture: errors are exceptions; compile this file without -fno-exceptions"
#define SUTURE_REFUSED
#else

namespace suture {

// The exception of the library, thrown before anything is launched. what() reads "suture: OPERATION: sample N:
// MESSAGE", or "suture: OPERATION: sample N (id ID): MESSAGE" where the samples of a plan have ids.
class error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// Location of a failed check: the operation's name and the index of the checked sample, -1 if no single one was
// checked.
struct site {
  std::string_view operation;
  std::int64_t sample = -1;
  const std::uint64_t* ids = nullptr;  // of the samples, or null
};

namespace detail {

inline std::string start_of_message(const site& where) {
  std::string text = "suture: ";
  text += where.operation;
  if (where.sample >= 0) text += ": sample " + std::to_string(where.sample);
  if (where.sample >= 0 && where.ids != nullptr) text += " (id " + std::to_string(where.ids[where.sample]) + ')';
  return text + ": ";
}

}  // namespace detail

template <class... Parts>
[[noreturn]] SUTURE_NOINLINE void fail(site where, Parts... parts) {
  std::string text = detail::start_of_message(where);
  (append_text(text, parts), ...);
  throw error(text);
}

template <class... Parts>
SUTURE_INLINE void require(bool ok, const site& where, const Parts&... parts) {
  if (!ok) fail(where, parts...);
}

}  // namespace suture
#endif
