// SPDX-License-Identifier: Apache-2.0
// One launch over arrays in one order of axes, for tests/memory_order_sectors, which counts what its warps ask for.
//   memory_order_sectors CHAIN ORDER, CHAIN of window, crop, resample, turn, noise, elastic; ORDER of zyx, zxy, yzx, yxz, xzy, xyz
#include <suture/suture.cuh>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

template <class T>
void set_order(suture::view<T>& v, std::string_view order) {
  std::int64_t step = 1;
  for (int j = 2; j >= 0; --j) {
    const auto axis = std::string_view("zyx").find(order[static_cast<std::size_t>(j)]);
    v.stride[static_cast<int>(axis)] = step;
    step *= v.grid.extents[static_cast<int>(axis)];
  }
}

template <class Chain>
int launch(const Chain& chain, std::string_view order) {
  const suture::grid g{.extents = {56, 56, 56}};
  const auto voxels = static_cast<std::size_t>(g.voxels());
  std::vector<std::int16_t> host(voxels);
  for (std::size_t i = 0; i < voxels; ++i) host[i] = static_cast<std::int16_t>((i * 2654435761u) >> 20);
  std::int16_t* in = nullptr;
  cudaMalloc(&in, voxels * sizeof host[0]);
  cudaMemcpy(in, host.data(), voxels * sizeof host[0], cudaMemcpyHostToDevice);
  // Many draws, since a turn about one axis costs more than a turn about another.
  std::vector<std::uint64_t> ids(32);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector images(ids.size(), suture::contiguous<const std::int16_t>(in, g));
  for (auto& image : images) set_order(image, order);
  const auto plan = suture::plan(chain, images, {.seed = 1, .sample_ids = ids});
  suture::half* out = nullptr;
  const auto out_voxels = static_cast<std::size_t>(plan.output_grid(0).voxels()) * ids.size();
  cudaMalloc(&out, out_voxels * sizeof(suture::half));
  auto outputs = suture::batch_views(out, plan.output_grids());
  for (auto& output : outputs) set_order(output, order);
  const auto bound = suture::image(images, outputs);
  const suture::cuda_workspace workspace(suture::workspace_bytes(plan, bound));
  suture::run(suture::cuda{nullptr, workspace}, plan, bound);
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string chain = argv[1], order = argv[2];
  const suture::window window{.center = 40, .width = 400};
  const suture::random_crop crop{.size = {40, 40, 40}};
  const suture::cast<suture::half> cast{};
  const auto moves = [&](double spacing_mm, float turns) {
    return window | suture::resample{.spacing_mm = spacing_mm} |
           suture::random_affine{.rotate_deg = 15, .probability = turns} | crop | cast;
  };
  if (chain == "window") return launch(window | cast, order);
  if (chain == "crop") return launch(moves(1, 0), order);
  if (chain == "resample") return launch(moves(1.25, 0), order);
  if (chain == "turn") return launch(moves(1, 1), order);
  if (chain == "noise")
    return launch(window | crop | suture::random_bias_field{} | suture::gaussian_noise{.sigma = .02f} | cast, order);
  if (chain == "elastic")
    return launch(window | suture::random_affine{.rotate_deg = 15} |
                      suture::random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4} | crop | cast,
                  order);
  return 2;
}
