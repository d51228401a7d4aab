// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <fstream>
#include <iostream>
#include <new>
#include <string_view>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "suture/base/config.hpp"

namespace suture::examples {

int run_example(const std::string& name, const std::function<int()>& program, const std::string& advice) {
  if (!advice.empty()) std::cerr << advice << '\n';
  try {
    return program();
  } catch (const std::bad_alloc&) {
    std::cerr << name << ": not enough memory; a smaller batch, patch or tile needs less\n";
  } catch (const std::exception& problem) {
    std::cerr << name << ": " << reason_of(problem) << '\n';
  }
  return 1;
}

std::string reason_of(const std::exception& problem) {
  constexpr std::string_view own = "suture: ";
  std::string_view reason = problem.what();
  if (reason.starts_with(own)) reason.remove_prefix(own.size());
  return std::string(reason);
}

std::optional<int> parse_options(CLI::App& app, int argc, char** argv, const std::function<void()>& check) {
  try {
    app.parse(argc, argv);
    check();
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& problem) {
    const std::string program = argv[0];
    std::cerr << program.substr(program.rfind('/') + 1) << ": " << problem.what() << " (see --help)\n";
    return 2;
  }
  return {};
}

void add_backend_option(CLI::App& app, std::string& backend) {
  app.add_option("--backend", backend, "where the work is done; auto takes a GPU if there is one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
}

void add_ct_sample_option(CLI::App& app, std::string& sample) {
  app.add_option(
         "--sample", sample,
         "data to try, without --image: a CT of the abdomen (default), the head CT of a Debian package, fetched "
         "once, or a synthetic abdomen")
      ->check(CLI::IsMember({"abdomen", "head", "phantom"}));
}

std::string chosen_backend(const std::string& asked, const std::string& why_no_cuda) {
  if (asked == "cuda") require(why_no_cuda.empty(), site{"--backend cuda"}, why_no_cuda);
  return asked == "auto" ? why_no_cuda.empty() ? "cuda" : "cpu" : asked;
}

report begin_report(const std::string& example, const std::string& backend, const std::string& device) {
  report result;
  result["example"] = example;
  result["version"] = std::to_string(SUTURE_VERSION_MAJOR) + "." + std::to_string(SUTURE_VERSION_MINOR) + "." +
                      std::to_string(SUTURE_VERSION_PATCH);
  result["backend"] = backend;
  result["device"] = device;
  return result;
}

std::string sheet_title(const std::string& modality, std::size_t shown, std::size_t count, const std::string& things,
                        const std::string& work, const std::string& backend) {
  return modality + ": " + std::to_string(shown) + " of " + std::to_string(count) + " " + things + ", " + work +
         " on the " + (backend == "cuda" ? "GPU" : "CPU");
}

void end_report(const std::filesystem::path& folder, const report& result) {
  std::cerr << "contact sheet: " << (folder / "contact_sheet.png").string() << '\n';
  write_report(folder / "report.json", result);
}

std::string cpu_description(int threads) {
#if defined(_OPENMP)
  if (threads == 0) threads = omp_get_max_threads();
#else
  threads = 1;
#endif
  std::string model = "CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  return model + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace suture::examples
