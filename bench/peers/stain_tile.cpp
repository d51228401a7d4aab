// SPDX-License-Identifier: Apache-2.0
// Macenko normalisation of one tile on one thread, for comparison with torchstain beside it on the same pixels.
//   stain_tile IMAGE HEIGHT WIDTH
// IMAGE is raw uint8, red, green and blue side by side. Reads commands, one a line, and answers each in one of JSON:
//   time N        fits and normalises N times, as torchstain's NumPy backend does: seconds of the wall clock and of the
//                 processor for each
//   write FILE    does it once and writes the pixels
#include <time.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "suture/suture.hpp"

namespace {

using namespace suture;

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int serve(const std::string& path, std::int64_t height, std::int64_t width) {
  const grid shape{.extents = {1, height, width}};
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * shape.voxels())), result(pixels.size());
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
  require(file.good() && file.peek() == EOF, {"stain_tile"}, path, " does not hold ", shape.voxels(), " pixels");
  const std::vector in{channels_last<const std::uint8_t>(pixels.data(), shape, 3)};
  const std::vector out{channels_last(result.data(), shape, 3)};
  stain_basis fitted;
  const auto recipe = plan(macenko::torchstain.normalize(&fitted) | cast<std::uint8_t>{}, in);
  const auto work = [&] {
    fit(cpu{.threads = 1}, macenko::torchstain.fit, in, everything{}, std::span(&fitted, 1));
    run(cpu{.threads = 1}, recipe, image(in, out));
  };
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, argument;
    words >> command >> argument;
    if (command == "time") {
      std::cout << "{\"wall\": [";
      std::ostringstream processor;
      for (int i = 0, n = std::stoi(argument); i < n; ++i) {
        const double wall = seconds(CLOCK_MONOTONIC), cpu_time = seconds(CLOCK_THREAD_CPUTIME_ID);
        work();
        std::cout << (i > 0 ? ", " : "") << seconds(CLOCK_MONOTONIC) - wall;
        processor << (i > 0 ? ", " : "") << seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_time;
      }
      std::cout << "], \"processor\": [" << processor.str() << "]}" << std::endl;
    } else {
      require(command == "write", {"stain_tile"}, "unknown command ", command);
      work();
      std::ofstream(argument, std::ios::binary)
          .write(reinterpret_cast<const char*>(result.data()), static_cast<std::streamsize>(result.size()));
      std::cout << "{\"status\": \"" << status_name(fitted.status) << "\"}" << std::endl;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    require(argc == 4, {"stain_tile"}, "IMAGE HEIGHT WIDTH are needed");
    return serve(argv[1], std::stoll(argv[2]), std::stoll(argv[3]));
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
