// SPDX-License-Identifier: Apache-2.0
// Tests whether the host can read an address, so that views of device memory passed to the CPU get an error instead of
// a segmentation fault.
#pragma once

#include <cstdint>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

#include "cpu.hpp"

namespace suture::detail {

// Asks the kernel where that is possible without risk: rt_sigprocmask first reads 8 bytes of a set, and changes nothing
// for a request that does not exist. It takes less than a microsecond. Elsewhere every address counts as readable.
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
// Returns check_memory bound to an executor.
inline auto memory_check(const cpu& exec) {
  return [&exec](const void* p, const site& where, std::string_view role) { check_memory(exec, p, where, role); };
}

}  // namespace suture::detail
