// SPDX-License-Identifier: Apache-2.0
// What every example does the same way: command line, errors, backends by name, the head of its report.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report.hpp"
#include "suture/core/error.hpp"
#include "suture/core/vec.hpp"

namespace suture::examples {

// main(): runs `program`; an exception becomes "NAME: reason" on standard error and exit status 1.
int run_example(const std::string& name, const std::function<int()>& program);

// Reads the command line, then calls `check`, which may throw CLI::ParseError. Help is printed and gives exit status 0,
// a mistake is explained on standard error and gives 2; otherwise nothing.
std::optional<int> parse_options(
    CLI::App& app, int argc, char** argv, const std::function<void()>& check = [] {});

// --backend auto, cpu or cuda.
void add_backend_option(CLI::App& app, std::string& backend);
// "cpu" or "cuda". `why_no_cuda` says why there is no GPU to use, or nothing. Throws suture::error if CUDA was asked
// for and cannot be had.
std::string chosen_backend(const std::string& asked, const std::string& why_no_cuda);

// Name, version and backend of an example, the first lines of its report.
report begin_report(const std::string& example, const std::string& backend, const std::string& device);

// The model of the CPU and the threads a run takes; 0: all.
std::string cpu_description(int threads);

// Three values, or one for all axes.
template <class To, class From>
vec3<To> triple(const std::vector<From>& values, const char* flag) {
  require(values.size() == 1 || values.size() == 3, site{flag}, "takes one number or three (z y x), not ",
          values.size());
  vec3<To> result{};
  for (int k = 0; k < 3; ++k) result[k] = values[values.size() == 1 ? 0 : static_cast<std::size_t>(k)];
  return result;
}

}  // namespace suture::examples
