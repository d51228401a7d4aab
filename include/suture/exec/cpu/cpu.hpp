// SPDX-License-Identifier: Apache-2.0
// The CPU executor and how it divides work. Threads come from OpenMP if the including file is compiled with it. They
// only divide the work: the bits do not depend on their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#if defined(_OPENMP)
#include <omp.h>
#if __has_include(<pthread.h>)
#include <pthread.h>
#define SUTURE_WATCHES_FORKS
#endif
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#endif

#include "../../base/error.hpp"
#include "../../base/float_mode.hpp"

namespace suture {

inline namespace SUTURE_BUILD {

// The executor on the host. threads = 0 takes OpenMP's default. `workspace` belongs to the caller, is aligned to 256
// bytes and has workspace_bytes(plan, ...) bytes; without one, a run allocates it. Besides, a run allocates rows or a
// plane for each thread. Where noise or another operation that depends on the position comes before a rotation or
// resampling, it also allocates a float for each source voxel that is read. Memory that the host cannot read, such as a
// device's, is refused unless check_memory is false.
struct cpu {
  int threads = 0;
  std::span<std::byte> workspace = {};
  bool check_memory = true;
};

}  // namespace SUTURE_BUILD

namespace detail {

#if defined(SUTURE_WATCHES_FORKS)
// After fork() a process has one thread, but libgomp still counts on the others: its next parallel region would wait
// for them forever.
struct fork_watch {
  bool had_threads = false;   // just before a fork
  bool lost_threads = false;  // in a fork: this process then uses one thread
};
inline fork_watch forks;
inline const int forks_are_watched = pthread_atfork(
    [] {
#if defined(__GLIBC__) && __has_include(<sys/single_threaded.h>)
      forks.had_threads = __libc_single_threaded == 0;
#else
      forks.had_threads = true;  // it may have had some
#endif
    },
    nullptr, [] { forks.lost_threads = forks.lost_threads || forks.had_threads; });
inline bool threads_are_lost() { return forks.lost_threads; }
#else
inline bool threads_are_lost() { return false; }
#endif

// Returns the number of threads for the setting `threads`.
inline int thread_count(int threads) {
  require(threads >= 0, {"cpu"}, "threads ", threads, " must not be negative; 0 takes all");
#if defined(_OPENMP)
  if (threads_are_lost()) return 1;
  return threads > 0 ? threads : omp_get_max_threads();
#else
  return 1;
#endif
}

// Calls f(i) for i in [0, n), in any order, on any thread, in the floating-point mode of the caller: threads of OpenMP
// keep the mode that they were started in. An exception must not leave f: OpenMP ends the program then.
template <class F>
void parallel_for(int threads, std::int64_t n, const F& f) {
  [[maybe_unused]] const int count = thread_count(threads);
#if defined(_OPENMP)
  if (count != 1 && n > 1) {
    const unsigned mode = float_mode();
#pragma omp parallel num_threads(count)
    {
      const scoped_float_mode as_caller(mode);
#pragma omp for schedule(dynamic)
      for (std::int64_t i = 0; i < n; ++i) f(i);
    }
    return;
  }
#endif
  for (std::int64_t i = 0; i < n; ++i) f(i);
}

}  // namespace detail
}  // namespace suture
