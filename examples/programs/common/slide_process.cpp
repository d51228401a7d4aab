// SPDX-License-Identifier: Apache-2.0
// The two processes share a socket: for the one that reads it is standard input. They run the same program, so that
// what they say are the bytes of structures.
#include "slide_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

extern char** environ;

namespace suture::examples {
namespace {

constexpr site here{"slide"};
constexpr const char* service = "--serve-slide";
bool serving = false;  // main() has called serve_slides

#if defined(__has_feature)
#define SUTURE_EXAMPLE_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUTURE_EXAMPLE_SANITIZED 1
#else
#define SUTURE_EXAMPLE_SANITIZED 0
#endif

struct opening {
  double assumed_mpp;
  slide_limits limits;
};
struct request {
  std::int64_t y, x, height, width;
  std::int32_t level;
};
// Before what was asked for, or before the reason why not.
struct reply {
  bool good;
  std::uint64_t bytes;
};
struct description {
  std::uint64_t levels;
  double mpp;
  std::array<std::uint8_t, 3> background;
  std::array<char, 64> mpp_source;
};
constexpr std::uint64_t most_levels = 4096, longest_reason = std::uint64_t{1} << 16;

// Whole or not at all.
bool put(int socket, const void* from, std::size_t size) {
  const auto* bytes = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}
bool get(int socket, void* to, std::size_t size) {
  auto* bytes = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = recv(socket, bytes, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}
template <class T>
bool put(int socket, const T& value) {
  return put(socket, &value, sizeof value);
}
template <class T>
bool get(int socket, T& value) {
  return get(socket, &value, sizeof value);
}

// In the process that reads.

constexpr int parent = STDIN_FILENO;

void limit(decltype(RLIMIT_AS) resource, std::uint64_t most) {
  rlimit now{};
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = std::min<rlim_t>(now.rlim_max, most);
  setrlimit(resource, &now);
}

// Sends what `make` returns, or why it could not; false where nobody listens any more.
template <class F>
bool answer(const F& make) {
  std::string reason;
  try {
    return make();
  } catch (const std::bad_alloc&) {
    reason = "suture: slide: not enough memory to read it";
  } catch (const std::exception& problem) {
    reason = problem.what();
  }
  reason.resize(std::min<std::size_t>(reason.size(), longest_reason));
  return put(parent, reply{false, reason.size()}) && put(parent, reason.data(), reason.size());
}

void serve(const char* path) {
  opening start;
  if (!get(parent, start)) return;
  limit(RLIMIT_CORE, 0);
  if (!SUTURE_EXAMPLE_SANITIZED) limit(RLIMIT_AS, start.limits.memory_bytes);
  std::unique_ptr<slide> s;
  const auto open = [&] {
    s = open_slide(path, start.assumed_mpp);
    const std::vector<slide_level>& levels = s->layout().levels;
    description d{levels.size(), s->layout().mpp, s->background(), {}};
    s->mpp_source().copy(d.mpp_source.data(), d.mpp_source.size() - 1);
    return put(parent, reply{true, sizeof d}) && put(parent, d) &&
           put(parent, levels.data(), levels.size() * sizeof levels[0]);
  };
  // The alarm ends this process, whatever it is doing.
  alarm(start.limits.seconds);
  if (!answer(open) || s == nullptr) return;
  for (;;) {
    alarm(0);
    request r;
    if (!get(parent, r)) return;
    alarm(start.limits.seconds);
    const auto read = [&] {
      const rgb_image region = s->read(r.y, r.x, r.level, r.height, r.width);
      return put(parent, reply{true, region.pixels.size()}) && put(parent, region.pixels.data(), region.pixels.size());
    };
    if (!answer(read)) return;
  }
}

// In the process that asks.

class reading_process {
public:
  reading_process(const std::string& path, const slide_limits& limits) : path_(path), limits_(limits) {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, here, path_,
            ": no socket to read it by: ", std::strerror(errno));
    socket_ = ends[0];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], parent);
    // What libraries have to say of damaged files comes back as the reason.
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string name = "slide_reader", word = service, file = path_;
    char* const arguments[] = {name.data(), word.data(), file.data(), nullptr};
    const int problem = posix_spawn(&process_, "/proc/self/exe", &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (problem == 0) return;
    process_ = -1;
    close(socket_);
    fail(here, path_, ": no process to read it by: ", std::strerror(problem));
  }
  ~reading_process() {
    close(socket_);
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    wait();
  }
  reading_process(const reading_process&) = delete;
  reading_process& operator=(const reading_process&) = delete;

  template <class T>
  void tell(const T& what) {
    require(process_ >= 0, here, ended_);
    if (!put(socket_, what)) explain();
  }
  // The first thing said back: that `bytes` follow, or else why not, which is thrown.
  void expect(std::uint64_t bytes) {
    reply r{};
    if (!get(socket_, r)) explain();
    if (r.good) {
      require(r.bytes == bytes, here, path_, ": the process that reads it answered with ", r.bytes, " bytes, not ",
              bytes);
      return;
    }
    std::string reason(std::min(r.bytes, longest_reason), '\0');
    if (!get(socket_, reason.data(), reason.size())) explain();
    throw error(reason);
  }
  void take(void* to, std::size_t size) {
    if (!get(socket_, to, size)) explain();
  }

private:
  int wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }
  // The process does not answer.
  [[noreturn]] void explain() {
    shutdown(socket_, SHUT_RDWR);
    const int status = wait();
    std::ostringstream text;
    text << path_ << ": ";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
      text << "to read it took more than " << limits_.seconds << " seconds";
    else if (WIFSIGNALED(status))
      text << "the process that reads it was stopped by signal " << WTERMSIG(status) << " ("
           << strsignal(WTERMSIG(status)) << "): damaged, or it needs more than " << (limits_.memory_bytes >> 20)
           << " MiB of memory";
    else
      text << "the process that reads it ended with status " << WEXITSTATUS(status);
    ended_ = text.str();
    fail(here, ended_);
  }

  std::string path_;
  slide_limits limits_;
  int socket_ = -1;
  pid_t process_ = -1;
  std::string ended_;  // why
};

class distant_slide final : public slide {
public:
  distant_slide(const std::filesystem::path& path, double assumed_mpp, const slide_limits& limits)
      : process_(path.string(), limits) {
    name_ = path.filename().string();
    process_.tell(opening{assumed_mpp, limits});
    description d{};
    process_.expect(sizeof d);
    process_.take(&d, sizeof d);
    require(d.levels > 0 && d.levels <= most_levels, here, path.string(), ": ", d.levels, " levels");
    layout_.levels.resize(static_cast<std::size_t>(d.levels));
    process_.take(layout_.levels.data(), layout_.levels.size() * sizeof layout_.levels[0]);
    layout_.mpp = d.mpp;
    background_ = d.background;
    d.mpp_source.back() = '\0';
    mpp_source_ = d.mpp_source.data();
    check_levels();
  }

private:
  void read_inside(std::int64_t y, std::int64_t x, std::int32_t level, rgb_image& into) const override {
    const std::lock_guard lock(mutex_);
    process_.tell(request{y, x, into.height, into.width, level});
    process_.expect(into.pixels.size());
    process_.take(into.pixels.data(), into.pixels.size());
  }

  mutable std::mutex mutex_;
  mutable reading_process process_;
};

}  // namespace

void serve_slides(int argc, char** argv) {
  serving = true;
  if (argc != 3 || std::strcmp(argv[1], service) != 0) return;
  serve(argv[2]);
  _exit(0);
}

std::unique_ptr<slide> open_slide_apart(const std::filesystem::path& path, double assumed_mpp,
                                        const slide_limits& limits) {
  require(serving, here, path.string(), ": main() has not called serve_slides");
  return std::make_unique<distant_slide>(path, assumed_mpp, limits);
}

}  // namespace suture::examples
