// SPDX-License-Identifier: Apache-2.0
// One launch over arrays in one order of axes, for tests/memory_order_sectors, which counts what its warps ask for.
//   memory_order_sectors CHAIN ORDER, CHAIN as in main; ORDER of zyx, zxy, yzx, yxz, xzy, xyz
#include <suture/suture.cuh>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Channels lie side by side, or one volume behind the other.
template <class T>
void set_order(suture::view<T>& v, std::string_view order, bool side_by_side = false) {
  std::int64_t step = side_by_side ? v.channels : 1;
  for (int j = 2; j >= 0; --j) {
    const auto axis = std::string_view("zyx").find(order[static_cast<std::size_t>(j)]);
    v.stride[static_cast<int>(axis)] = step;
    step *= v.grid.extents[static_cast<int>(axis)];
  }
  v.channel_stride = side_by_side ? 1 : step;
}

int synchronized() {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 1;
}

template <class T>
T* device_elements(std::size_t count) {
  std::vector<T> host(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = static_cast<T>((i * 2654435761u) >> 20);
  T* data = nullptr;
  cudaMalloc(&data, count * sizeof(T));
  cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice);
  return data;
}

template <class In, class Out, class Chain>
int launch(const Chain& chain, std::string_view order, const suture::grid& g, std::int64_t channels, bool side_by_side,
           std::size_t draws) {
  const In* const in = device_elements<In>(static_cast<std::size_t>(g.voxels() * channels));
  // Many draws, since a turn about one axis costs more than a turn about another.
  std::vector<std::uint64_t> ids(draws);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector images(ids.size(), suture::view<const In>{in, g, {}, channels, 1});
  for (auto& image : images) set_order(image, order, side_by_side);
  const auto plan = suture::plan(chain, images, {.seed = 1, .sample_ids = ids});
  Out* out = nullptr;
  const suture::grid& to = plan.output_grid(0);
  const std::int64_t elements = to.voxels() * channels;
  cudaMalloc(&out, static_cast<std::size_t>(elements) * ids.size() * sizeof(Out));
  std::vector<suture::view<Out>> outputs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    outputs.push_back({out + static_cast<std::int64_t>(i) * elements, to, {}, channels, 1});
    set_order(outputs.back(), order, side_by_side);
  }
  const auto bound = suture::image(images, outputs);
  const suture::cuda_workspace workspace(suture::workspace_bytes(plan, bound));
  suture::run(suture::cuda{nullptr, workspace}, plan, bound);
  return synchronized();
}

// A ball of 40 in a volume of -100 (156 as a byte): the same voxels in every order.
template <class T>
suture::view<T> in_order(const suture::grid& g, std::string_view order, T*& data) {
  auto v = suture::contiguous(data, g);
  set_order(v, order);
  const suture::extent3& n = g.extents;
  std::vector<T> host(static_cast<std::size_t>(g.voxels()));
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x) {
        const auto along = [&](std::int64_t i, int k) { return (2 * i - n[k]) * (2 * i - n[k]); };
        const bool inside = along(z, 0) + along(y, 1) + along(x, 2) < n[2] * n[2] * 3 / 4;
        host[static_cast<std::size_t>(z * v.stride[0] + y * v.stride[1] + x * v.stride[2])] =
            static_cast<T>(inside ? 40 : -100);
      }
  cudaMalloc(&data, host.size() * sizeof(T));
  cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  v.data = data;
  return v;
}

// Rows of whole words, as volumes have as a rule.
int launch_body_mask(std::string_view order) {
  const suture::grid g{.extents = {64, 64, 64}};
  std::int16_t* in = nullptr;
  std::uint8_t* out = nullptr;
  suture::largest_component_result* result = nullptr;
  cudaMalloc(&result, sizeof *result);
  const auto from = in_order(g, order, in);
  const suture::cuda_workspace workspace(suture::workspace_bytes(suture::mask_work::body_mask{}, from));
  suture::body_mask(suture::cuda{nullptr, workspace}, from, in_order(g, order, out), {result, 1}, {.threshold = 0});
  return synchronized();
}

int launch_levels(std::string_view order) {
  const suture::grid g{.extents = {64, 64, 64}}, half{.extents = {32, 32, 32}}, quarter{.extents = {16, 16, 16}};
  std::uint8_t *in = nullptr, *out = nullptr, *level_1 = nullptr, *level_2 = nullptr;
  const auto from = in_order(g, order, in);
  const std::uint64_t id = 1;
  const auto plan = suture::plan(suture::random_affine{.rotate_deg = 15}, from, {.seed = 1, .sample_ids = {&id, 1}});
  const auto bound =
      suture::labels(from, in_order(g, order, out),
                     suture::deep_supervision(in_order(half, order, level_1), in_order(quarter, order, level_2)));
  const suture::cuda_workspace workspace(suture::workspace_bytes(plan, bound));
  suture::run(suture::cuda{nullptr, workspace}, plan, bound);
  return synchronized();
}

int launch_reassembly(std::string_view order) {
  const suture::extent3 image{64, 64, 64}, size{32, 32, 32};
  const suture::patch_grid grid = suture::sliding_window_grid(image, size);
  float *patches = nullptr, *out = nullptr;
  in_order({.extents = {grid.count() * size[0], size[1], size[2]}}, "zyx", patches);
  const suture::cuda_workspace workspace(suture::workspace_bytes(grid));
  suture::reassemble(suture::cuda{nullptr, workspace}, grid, suture::gaussian_window(size),
                     suture::patch_tensor<float>{patches, 1, 0, grid.count()},
                     in_order({.extents = image}, order, out));
  return synchronized();
}

template <class Chain>
int launch(const Chain& chain, std::string_view order, std::int64_t channels = 1, std::size_t draws = 32) {
  return launch<std::int16_t, suture::half>(chain, order, {.extents = {56, 56, 56}}, channels, false, draws);
}

// Pixels of three bytes.
template <class Chain>
int launch_colors(const Chain& chain, std::string_view order) {
  return launch<std::uint8_t, std::uint8_t>(chain | suture::cast<std::uint8_t>{}, order, {.extents = {1, 96, 96}}, 3,
                                            true, 32);
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
  if (chain == "bias_turn")
    return launch(suture::random_bias_field{} | suture::random_affine{.rotate_deg = 15} | crop | cast, order);
  const auto bends = window | suture::random_affine{.rotate_deg = 15} |
                     suture::random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4} | crop;
  const suture::random_flip flip{.axis_probability = {0, .5f, .5f}};
  if (chain == "elastic") return launch(bends | cast, order);
  if (chain == "elastic_channels") return launch(bends | cast, order, 2);
  if (chain == "colors") return launch_colors(suture::random_color_jitter{}, order);
  if (chain == "flipped_colors") return launch_colors(flip | suture::random_color_jitter{}, order);
  if (chain == "colors_flipped") return launch_colors(suture::random_color_jitter{} | flip, order);
  if (chain == "turned_colors")
    return launch_colors(suture::random_affine{.rotate_deg = {180, 0, 0}} | suture::random_color_jitter{}, order);
  const auto behind_crop = [&](const auto& later) { return launch(window | crop | later | cast, order, 1, 4); };
  if (chain == "blur") return behind_crop(suture::gaussian_blur{.sigma = .8f});
  if (chain == "wide_blur") return behind_crop(suture::gaussian_blur{.sigma = 1.5f});
  if (chain == "median") return behind_crop(suture::median_filter{});
  if (chain == "coarse") return behind_crop(suture::random_low_resolution{.zoom = {.5f, .5f}});
  if (chain == "body_mask") return launch_body_mask(order);
  if (chain == "reassembly") return launch_reassembly(order);
  if (chain == "levels") return launch_levels(order);
  if (chain == "gamma") return behind_crop(suture::random_patch_gamma{});
  return 2;
}
