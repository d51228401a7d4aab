// SPDX-License-Identifier: Apache-2.0
// The floating-point mode of a thread on x86 processors: rounding, and whether subnormal numbers are flushed to zero.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace suture::detail {

#if defined(__SSE__)
inline constexpr unsigned default_float_mode = 0x1f80;  // of IEEE 754
inline unsigned float_mode() { return _mm_getcsr(); }

// Gives this thread a floating-point mode and, at the end of its life, the one before.
class scoped_float_mode {
public:
  explicit scoped_float_mode(unsigned mode) { _mm_setcsr(mode); }
  scoped_float_mode(const scoped_float_mode&) = delete;
  scoped_float_mode& operator=(const scoped_float_mode&) = delete;
  ~scoped_float_mode() { _mm_setcsr(before_); }

private:
  unsigned before_ = _mm_getcsr();
};
#else
inline constexpr unsigned default_float_mode = 0;
inline unsigned float_mode() { return default_float_mode; }
struct scoped_float_mode {
  explicit scoped_float_mode(unsigned) {}
};
#endif

}  // namespace suture::detail
