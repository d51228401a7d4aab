// SPDX-License-Identifier: Apache-2.0
// Macenko normalization of one tile on one thread, for comparison with torchstain beside it on the same pixels.
//   stain_tile IMAGE HEIGHT WIDTH
// IMAGE is raw uint8, red, green and blue side by side. Reads commands, one a line, and answers each in one of JSON:
//   time N        fits and normalizes N times, as torchstain's NumPy backend does: seconds of the wall clock and of the
//                 processor for each
//   write FILE    does it once and writes the pixels
#include "program.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

void serve(char** argv) {
  const grid shape{.extents = {1, std::atoll(argv[2]), std::atoll(argv[3])}};
  check(shape, {"stain_tile"});
  const auto pixels = peers::read_raw<std::uint8_t>(argv[1], 3 * shape.voxels());
  std::vector<std::uint8_t> result(pixels.size());
  const std::vector in{channels_last(pixels.data(), shape, 3)};
  const std::vector out{channels_last(result.data(), shape, 3)};
  stain_basis fitted;
  const auto recipe = plan(macenko::torchstain.normalize({&fitted, 1}) | cast<std::uint8_t>{}, in);
  const auto work = [&] {
    fit(cpu{.threads = 1}, macenko::torchstain.fit, in, everything{}, std::span(&fitted, 1));
    run(cpu{.threads = 1}, recipe, image(in, out));
  };
  const auto write = [&](std::istream& arguments) {
    std::string path;
    arguments >> path;
    work();
    peers::write_raw(path, result);
    std::cout << "{\"status\": \"" << status_name(fitted.status) << "\"}";
  };
  peers::serve({{"time", peers::timed(work)}, {"write", write}});
}

}  // namespace

int main(int argc, char** argv) { return peers::run_program(argc, argv, "stain_tile IMAGE HEIGHT WIDTH", serve); }
