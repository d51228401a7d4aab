// SPDX-License-Identifier: Apache-2.0
// Progress on standard error: a bar with rate and time left on a terminal, else a plain line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace suture::examples {

class progress {
public:
  // `total` steps of something, for example progress("patches", 64).
  progress(std::string what, std::int64_t total);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void advance(std::int64_t steps = 1);
  void finish();

private:
  using clock = std::chrono::steady_clock;
  void show(bool last);

  std::string what_;
  std::int64_t total_, done_ = 0;
  bool terminal_, finished_ = false;
  clock::time_point start_, shown_;
};

}  // namespace suture::examples
