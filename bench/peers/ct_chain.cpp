// SPDX-License-Identifier: Apache-2.0
// The CT recipe on one thread, for comparison with peers that run beside it on the same voxels and parameters.
//   ct_chain IMAGE LABELS NZ NY NX SZ SY SX PATCH DEGREES ELASTIC
// IMAGE and LABELS are raw int16 and uint8 voxels, SZ SY SX the spacing in mm, ELASTIC 0 or 1. Reads commands, one a
// line, and answers each in one line of JSON:
//   parameters    what was drawn: "matrix" (deformed or output index -> input index), "start" of the patch in the
//                 deformed grid, "cells_per_voxel" of its control grid, "control_points" and "coefficients" in voxels,
//                 "gamma" and "noise"
//   time N        plans and runs N times: seconds of the wall clock and of the processor for each
//   write FILE    runs without noise and writes the image as float16, then the labels as uint8
#include "program.hpp"
#include "suture/suture.hpp"

namespace {

using peers::print_list;

struct problem {
  suture::grid volume;
  std::vector<std::int16_t> image;
  std::vector<std::uint8_t> labels;
  std::int64_t patch;
  float degrees;
  bool elastic;

  auto plan(float sigma) const {
    const auto recipe = suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
                        suture::random_affine{.rotate_deg = {degrees, degrees}} |
                        suture::random_elastic{
                            .control_spacing_mm = 32, .max_displacement_mm = 8, .probability = elastic ? 1.0f : 0.0f} |
                        suture::random_crop{.size = {patch, patch, patch}} |
                        suture::random_gamma{.range = {1.2f, 1.2f}} | suture::gaussian_noise{.sigma = sigma} |
                        suture::cast<suture::half>{};
    const std::uint64_t id = 5;
    return suture::plan(recipe, std::span(&volume, 1), {.seed = 7, .epoch = 1, .sample_ids = std::span(&id, 1)});
  }
};

void print_parameters(const problem& p) {
  const auto plan = p.plan(.02f);
  const auto& g = plan.geometry(0);
  const suture::affine_map matrix = p.elastic ? g.to_source : g.to_source * g.to_deformed;
  std::cout.precision(17);
  std::cout << "{\"matrix\": [";
  for (int i = 0; i < 3; ++i) {
    std::cout << (i ? ", " : "");
    print_list(std::vector<double>{matrix.linear[i][0], matrix.linear[i][1], matrix.linear[i][2], matrix.offset[i]});
  }
  std::cout << "], \"gamma\": " << 1.2f << ", \"noise\": " << .02f;
  if (p.elastic) {
    const suture::deformation& d = g.drawn;
    std::cout << ", \"start\": ";
    print_list(g.to_deformed.offset.v);
    std::cout << ", \"cells_per_voxel\": ";
    print_list(std::vector<double>{d.to_control.linear[0][0], d.to_control.linear[1][1], d.to_control.linear[2][2]});
    std::cout << ", \"control_points\": ";
    print_list(d.control_points.v);
    std::vector<float> coefficients;
    for (int k = 0; k < 3; ++k)
      for (std::int32_t z = 0; z < d.control_points[0]; ++z)
        for (std::int32_t y = 0; y < d.control_points[1]; ++y)
          for (std::int32_t x = 0; x < d.control_points[2]; ++x)
            coefficients.push_back(suture::control_value(d, k, z, y, x));
    std::cout << ", \"coefficients\": ";
    print_list(coefficients);
  }
  std::cout << "}";
}

void serve(char** argv) {
  problem p;
  p.volume = peers::read_grid(argv + 3);
  p.image = peers::read_raw<std::int16_t>(argv[1], p.volume.voxels());
  p.labels = peers::read_raw<std::uint8_t>(argv[2], p.volume.voxels());
  p.patch = std::atoll(argv[9]);
  p.degrees = static_cast<float>(std::atof(argv[10]));
  p.elastic = std::atoi(argv[11]) != 0;

  const suture::grid out_grid = p.plan(0).output_grid(0);
  const auto voxels = static_cast<std::size_t>(out_grid.voxels());
  peers::batch_memory<suture::half> image_out(voxels);
  peers::batch_memory<std::uint8_t> labels_out(voxels);
  const auto image_in = suture::contiguous<const std::int16_t>(p.image.data(), p.volume);
  const auto labels_in = suture::contiguous<const std::uint8_t>(p.labels.data(), p.volume);
  const auto image_view = suture::contiguous(image_out.data(), out_grid);
  const auto labels_view = suture::contiguous(labels_out.data(), out_grid);
  const auto image = suture::image(image_in, image_view);
  const auto labels = suture::labels(labels_in, labels_view);

  const auto parameters = [&](std::istream&) { print_parameters(p); };
  const auto run = [&](float sigma) { suture::run(suture::cpu{.threads = 1}, p.plan(sigma), image, labels); };
  const auto write = [&](std::istream& arguments) {
    std::string path;
    arguments >> path;
    run(0);
    peers::write_raw(path, image_out, labels_out);
    std::cout << "{\"written\": " << voxels << "}";
  };
  peers::serve({{"parameters", parameters}, {"time", peers::timed([&] { run(.02f); })}, {"write", write}});
}

}  // namespace

int main(int argc, char** argv) {
  return peers::run_program(argc, argv, "ct_chain IMAGE LABELS NZ NY NX SZ SY SX PATCH DEGREES ELASTIC", serve);
}
