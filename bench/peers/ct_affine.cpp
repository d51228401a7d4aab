// SPDX-License-Identifier: Apache-2.0
// A CT turned by up to 15 degrees, windowed and cut, and its labels, on one thread, for comparison with peers that run
// beside it on the same voxels and parameters.
//   ct_affine IMAGE LABELS NZ NY NX SZ SY SX PATCH
// IMAGE and LABELS are raw int16 and uint8 voxels, SZ SY SX the spacing in mm. Reads commands, one a line, and answers
// each in one line of JSON:
//   parameters    what was drawn: "matrix" (output index -> input index)
//   time N        plans and runs N times: seconds of the wall clock and of the processor for each
//   write FILE    runs and writes the image as float16, then the labels as uint8
#include "program.hpp"
#include "suture/suture.hpp"

namespace {

void serve(char** argv) {
  const suture::grid volume = peers::read_grid(argv + 3);
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

  const auto parameters = [&](std::istream&) {
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
    std::cout << "], \"gamma\": 1}";
  };
  const auto write = [&](std::istream& arguments) {
    std::string path;
    arguments >> path;
    run();
    peers::write_raw(path, image_out, labels_out);
    std::cout << "{\"written\": " << voxels << "}";
  };
  peers::serve({{"parameters", parameters}, {"time", peers::timed(run)}, {"write", write}});
}

}  // namespace

int main(int argc, char** argv) {
  return peers::run_program(argc, argv, "ct_affine IMAGE LABELS NZ NY NX SZ SY SX PATCH", serve);
}
