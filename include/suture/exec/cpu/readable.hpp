// SPDX-License-Identifier: Apache-2.0
// Whether the host can read at an address: views of a device's memory that are given to the CPU are told of, and not
// met by a segmentation fault.
#pragma once

#include <cstdint>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

#include "cpu.hpp"

namespace suture::detail {

// Asks the kernel, where that can be done at no risk: rt_sigprocmask reads 8 bytes of a set ahead of all else, and
// changes nothing for a request that does not exist. It takes less than a microsecond. Elsewhere every address counts
// as readable.
inline bool host_can_read([[maybe_unused]] const void* p) {
#if defined(__linux__) && defined(SYS_rt_sigprocmask)
  const auto set = reinterpret_cast<std::uintptr_t>(p) & ~std::uintptr_t{7};  // on the same page
  const int before = errno;
  constexpr long no_request = -1;
  const bool unreadable = syscall(SYS_rt_sigprocmask, no_request, set, nullptr, 8L) == -1 && errno == EFAULT;
  errno = before;
  return !unreadable;
#else
  return true;
#endif
}

inline void check_memory(const cpu& exec, const void* p, const site& where, std::string_view role = "") {
  if (!exec.check_memory || p == nullptr) return;
  require(host_can_read(p), where, role, "pointer ", p,
          " cannot be read on the host; is it device memory? (check_memory = false of the executor skips this check)");
}
// check_memory on one executor, for callers that go through pointers.
inline auto memory_check(const cpu& exec) {
  return [&exec](const void* p, const site& where, std::string_view role) { check_memory(exec, p, where, role); };
}

}  // namespace suture::detail
