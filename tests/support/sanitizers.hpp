// SPDX-License-Identifier: Apache-2.0
// Which sanitizer a test is compiled with. Sanitizers look at the library's walks, so what is slow under them and is no
// part of that may be left to the plain build, which compares everything.
#pragma once

#ifdef __has_feature  // clang++
#define SUTURE_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define SUTURE_TEST_HAS_FEATURE(x) 0
#endif

namespace support {

#if defined(__SANITIZE_ADDRESS__) || SUTURE_TEST_HAS_FEATURE(address_sanitizer)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || SUTURE_TEST_HAS_FEATURE(thread_sanitizer)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

inline constexpr bool any_sanitizer = address_sanitizer || thread_sanitizer;

}  // namespace support
