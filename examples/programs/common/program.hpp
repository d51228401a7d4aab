// SPDX-License-Identifier: Apache-2.0
// What every example does the same way: command line, errors, backends by name, the head of its report.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report.hpp"
#include "suture/base/build_advice.hpp"
#include "suture/base/error.hpp"
#include "suture/base/vec.hpp"

namespace suture::examples {

// main(): runs `program`; an exception becomes "NAME: reason" on standard error and exit status 1. Says ahead of it
// what of the flags that the caller was compiled with makes it slow.
int run_example(const std::string& name, const std::function<int()>& program,
                const std::string& advice = build_advice());

// What an exception says, without the name of the library ahead of it.
std::string reason_of(const std::exception& problem);

// Reads the command line, then calls `check`, which may throw CLI::ParseError. Help is printed and gives exit status 0,
// a mistake is explained on standard error and gives 2; otherwise nothing.
std::optional<int> parse_options(
    CLI::App& app, int argc, char** argv, const std::function<void()>& check = [] {});

// --backend auto, cpu or cuda.
void add_backend_option(CLI::App& app, std::string& backend);
// --sample abdomen, head or phantom, of the programs on CT.
void add_ct_sample_option(CLI::App& app, std::string& sample);
// "cpu" or "cuda". `why_no_cuda` says why there is no GPU to use, or nothing. Throws suture::error if CUDA was asked
// for and cannot be had.
std::string chosen_backend(const std::string& asked, const std::string& why_no_cuda);

// Name, version and backend of an example, the first lines of its report.
report begin_report(const std::string& example, const std::string& backend, const std::string& device);

// What a job that makes patches in batches takes from the command line, and says of it in its report.
template <class Job>
void add_job_options(CLI::App& app, Job& j, int most_patches) {
  app.add_option("--batch-size", j.batch_size, "number of patches made at once")->check(CLI::Range(1, 65535));
  app.add_option("--threads", j.threads, "threads of the CPU backend, 0: all there are")->check(CLI::Range(0, 4096));
  app.add_option("--seed", j.seed, "number that everything random follows from");
  app.add_option("--epoch", j.epoch, "pass over the data; each draws its own random numbers");
  app.add_option("--count", j.count, "number of patches in all")->check(CLI::Range(1, most_patches));
}
template <class Job>
void report_job(report& result, const Job& j) {
  result["seed"] = j.seed;
  result["epoch"] = j.epoch;
  result["evaluation"] = j.evaluation;
  result["count"] = j.count;
  result["batch_size"] = j.batch_size;
}

template <class Statistics>
void report_runs(report& result, const Statistics& spent) {
  result["stages"] = spent.stages;
  result["launches"] = spent.launches;
  result["workspace_bytes"] = spent.workspace_bytes;
  result["seconds"] = spent.seconds;
}

// The title of a contact sheet: "CT, window -160 .. 240 HU: 6 of 16 patches, augmented on the CPU".
std::string sheet_title(const std::string& modality, std::size_t shown, std::size_t count, const std::string& things,
                        const std::string& work, const std::string& backend);
// Says where the contact sheet of a job is and writes the report beside it.
void end_report(const std::filesystem::path& folder, const report& result);

// The model of the CPU and the threads a run takes; 0: all.
std::string cpu_description(int threads);

// Three values, or one for all axes. Throws CLI::ValidationError for two, or more than three.
template <class To, class From>
vec3<To> triple(const std::vector<From>& values, const char* flag) {
  if (values.size() != 1 && values.size() != 3)
    throw CLI::ValidationError(flag, "takes one number or three (z y x), not " + std::to_string(values.size()));
  vec3<To> result{};
  for (int k = 0; k < 3; ++k) result[k] = values[values.size() == 1 ? 0 : static_cast<std::size_t>(k)];
  return result;
}

}  // namespace suture::examples
