// SPDX-License-Identifier: Apache-2.0
// A CT turned by up to 15 degrees, windowed and cut, and its labels, on one thread, for comparison with peers that run
// beside it on the same voxels and parameters.
//   ct_affine IMAGE LABELS NZ NY NX SZ SY SX PATCH
// IMAGE and LABELS are raw int16 and uint8 voxels, SZ SY SX the spacing in mm. Reads commands, one a line, and answers
// each in one line of JSON:
//   parameters    what was drawn: "matrix" (output index -> input index)
//   time N        plans and runs N times: seconds of the wall clock and of the processor for each
//   write FILE    runs and writes the image as float16, then the labels as uint8
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "program.hpp"
#include "suture/suture.hpp"

int main(int argc, char** argv) try {
  if (argc != 10) {
    std::cerr << "ct_affine IMAGE LABELS NZ NY NX SZ SY SX PATCH\n";
    return 2;
  }
  suture::grid volume;
  for (int k = 0; k < 3; ++k) {
    volume.extents[k] = std::atoll(argv[3 + k]);
    volume.spacing[k] = std::atof(argv[6 + k]);
  }
  check(volume, {"ct_affine"});
  const auto image_in = peers::read_raw<std::int16_t>(argv[1], volume.voxels());
  const auto labels_in = peers::read_raw<std::uint8_t>(argv[2], volume.voxels());
  const std::int64_t patch = std::atoll(argv[9]);
  const auto plan = [&] {
    const auto recipe = suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
                        suture::random_affine{.rotate_deg = {15, 15}} |
                        suture::center_crop{.size = {patch, patch, patch}} | suture::cast<suture::half>{};
    const std::uint64_t id = 5;
    return suture::plan(recipe, std::span(&volume, 1), {.seed = 7, .epoch = 1, .sample_ids = std::span(&id, 1)});
  };
  const suture::grid out_grid = plan().output_grid(0);
  const auto voxels = static_cast<std::size_t>(out_grid.voxels());
  peers::batch_memory<suture::half> image_out(voxels);
  peers::batch_memory<std::uint8_t> labels_out(voxels);
  const auto from = suture::contiguous<const std::int16_t>(image_in.data(), volume);
  const auto labels_from = suture::contiguous<const std::uint8_t>(labels_in.data(), volume);
  const auto to = suture::contiguous(image_out.data(), out_grid);
  const auto labels_to = suture::contiguous(labels_out.data(), out_grid);
  const auto run = [&] {
    suture::run(suture::cpu{.threads = 1}, plan(), suture::image(from, to), suture::labels(labels_from, labels_to));
  };

  for (std::string command; std::cin >> command;) {
    if (command == "parameters") {
      const auto planned = plan();
      const auto& g = planned.geometry(0);
      const suture::affine_map matrix = g.to_source * g.to_deformed;
      std::cout.precision(17);
      std::cout << "{\"matrix\": [";
      for (int i = 0; i < 3; ++i) {
        std::cout << (i ? ", " : "");
        peers::print_list(
            std::vector<double>{matrix.linear[i][0], matrix.linear[i][1], matrix.linear[i][2], matrix.offset[i]});
      }
      std::cout << "], \"gamma\": 1}" << std::endl;
    } else if (command == "time") {
      int runs = 0;
      std::cin >> runs;
      peers::stopwatch clock;
      for (int i = 0; i < runs; ++i) clock.time(run);
      clock.print();
      std::cout << std::endl;
    } else if (command == "write") {
      std::string path;
      std::cin >> path;
      run();
      std::ofstream file(path, std::ios::binary);
      file.write(reinterpret_cast<const char*>(image_out.data()), static_cast<std::streamsize>(2 * voxels));
      file.write(reinterpret_cast<const char*>(labels_out.data()), static_cast<std::streamsize>(voxels));
      suture::require(file.good(), {"ct_affine"}, "cannot write ", path);
      std::cout << "{\"written\": " << voxels << "}" << std::endl;
    } else {
      std::cerr << "ct_affine: unknown command " << command << '\n';
      return 2;
    }
  }
} catch (const suture::error& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
