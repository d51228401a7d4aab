// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace suture::examples {

progress::progress(std::string what, std::int64_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(clock::now()),
      shown_(start_) {
  if (terminal_) show(false);
}

progress::~progress() {
  // After an error the line is left as it stands, but the next message begins on its own line.
  if (!finished_ && terminal_) std::fputc('\n', stderr);
}

void progress::advance(std::int64_t steps) {
  done_ = std::min(done_ + steps, total_);
  const auto now = clock::now();
  if (now - shown_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000))) return;
  shown_ = now;
  show(false);
}

void progress::finish() {
  if (finished_) return;
  finished_ = true;
  show(true);
}

void progress::show(bool last) {
  const double seconds = std::chrono::duration<double>(clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  char speed[32];
  if (rate > 0 && rate < 1)
    std::snprintf(speed, sizeof speed, "%.1f s each", 1 / rate);
  else
    std::snprintf(speed, sizeof speed, "%.1f/s", rate);
  char tail[64];
  if (last || rate <= 0) {
    std::snprintf(tail, sizeof tail, "%.1f s", seconds);
  } else {
    const auto left = static_cast<long>(static_cast<double>(total_ - done_) / rate + 0.5);
    std::snprintf(tail, sizeof tail, "%ld:%02ld left", left / 60, left % 60);
  }
  const auto done = static_cast<long long>(done_), total = static_cast<long long>(total_);
  if (!terminal_) {
    std::fprintf(stderr, "%s: %lld of %lld, %s, %s\n", what_.c_str(), done, total, speed, tail);
    return;
  }
  constexpr int width = 30;
  const int filled = total_ > 0 ? static_cast<int>(done_ * width / total_) : width;
  char bar[width + 1];
  for (int i = 0; i < width; ++i) bar[i] = i < filled ? '#' : '.';
  bar[width] = 0;
  std::fprintf(stderr, "\r\033[K%s [%s] %lld/%lld  %s  %s%s", what_.c_str(), bar, done, total, speed, tail,
               last ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace suture::examples
