// SPDX-License-Identifier: Apache-2.0
// The default training augmentation of nnU-Net on one thread, from the preprocessed volume to the image and the targets
// of deep supervision, for comparison with batchgeneratorsv2 that runs beside it on the same volume and places.
//   nnunet_chain IMAGE LABELS NZ NY NX PATCH
// IMAGE and LABELS are raw float32 and int8 voxels. Reads commands, one a line, and answers each in one line of JSON:
//   enlarged            the size of the enlarged patch and the scales of the smaller targets
//   time Z Y X ...      a patch for each place of an enlarged patch, which may leave the volume: plans and runs it;
//                       seconds of the wall clock and of the processor for each
#include "program.hpp"
#include "suture/recipe/nnunet.hpp"
#include "suture/suture.hpp"

namespace {

void serve(char** argv) {
  const suture::grid volume = peers::read_extents(argv + 3);
  const auto image_in = peers::read_raw<float>(argv[1], volume.voxels());
  const auto labels_in = peers::read_raw<std::int8_t>(argv[2], volume.voxels());
  const std::int64_t side = std::atoll(argv[6]);
  const suture::nnunet_shape shape{{side, side, side}};
  const auto scales = suture::nnunet_deep_supervision_scales(shape.patch, volume.spacing);

  const std::vector from{suture::contiguous(image_in.data(), volume)};
  const std::vector labels_from{suture::contiguous(labels_in.data(), volume)};
  peers::batch_memory<float> image_out(static_cast<std::size_t>(side * side * side));
  peers::batch_memory<std::int8_t> labels_out(image_out.size());
  std::vector<peers::batch_memory<std::int8_t>> smaller_out;
  for (const auto& scale : scales) {
    const suture::extent3 n = level_extents(shape.patch, scale);
    smaller_out.emplace_back(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  }
  std::uint64_t id = 0;
  const auto run = [&](const suture::extent3& start) {
    const std::uint64_t ids[] = {id++};
    const auto planned = suture::plan(suture::nnunet_v2_8({.shape = shape, .starts = {&start, 1}}), from,
                                      {.seed = 1, .sample_ids = ids});
    const auto grids = planned.output_grids();
    std::vector<std::vector<suture::view<std::int8_t>>> smaller;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const std::vector level{level_grid(grids[0], level_extents(shape.patch, scales[i]))};
      smaller.push_back(suture::batch_views(smaller_out[i].data(), level));
    }
    suture::run(suture::cpu{.threads = 1}, planned, suture::image(from, suture::batch_views(image_out.data(), grids)),
                suture::labels(labels_from, suture::batch_views(labels_out.data(), grids), suture::remap{{{-1, 0}}},
                               suture::deep_supervision(smaller)));
  };

  const auto enlarged = [&](std::istream&) {
    const suture::extent3 n = shape.enlarged();
    std::cout << "{\"enlarged\": ";
    peers::print_list(std::vector<std::int64_t>{n[0], n[1], n[2]});
    std::cout << ", \"scales\": [";
    for (std::size_t i = 0; i < scales.size(); ++i) {
      std::cout << (i != 0 ? ", " : "");
      peers::print_list(std::vector<double>{scales[i][0], scales[i][1], scales[i][2]});
    }
    std::cout << "]}";
  };
  const auto time = [&](std::istream& places) {
    peers::stopwatch clock;
    for (suture::extent3 start{}; places >> start[0] >> start[1] >> start[2];) clock.time([&] { run(start); });
    clock.print();
  };
  peers::serve({{"enlarged", enlarged}, {"time", time}});
}

}  // namespace

int main(int argc, char** argv) {
  return peers::run_program(argc, argv, "nnunet_chain IMAGE LABELS NZ NY NX PATCH", serve);
}
