// SPDX-License-Identifier: Apache-2.0
// The work that bench/peers.py gives to peers on a GPU, done and timed by suture: two turned CT patches with their
// labels, and stained tiles fitted and normalized.
//   device_work FOLDER [--tiny]
// Leaves in FOLDER what peers read and what suture made of it, raw, and prints one line of JSON: extents, maps from an
// output index to an index of the volume, parameters, and microseconds of a run as median of captured graphs.
#include "suture/suture.cuh"

// After the executor it runs on.
#include "../ct_volume.hpp"
#include "../micro/micro.cuh"
#include "../stained_tile.hpp"
#include "program.hpp"

namespace {

using namespace suture;
using half = suture::half;

constexpr float low = -160, high = 240, exponent = 1.2f;

void print_extents(const char* name, const extent3& n) {
  std::printf("\"%s\": [%lld, %lld, %lld], ", name, static_cast<long long>(n[0]), static_cast<long long>(n[1]),
              static_cast<long long>(n[2]));
}

// One volume in memory of its own for every sample of every set, as augmentation reads it.
void turned_patches(const micro::device& d, const std::string& folder) {
  constexpr std::size_t batch = 2;
  const std::size_t sets = d.tiny ? 1 : 6;
  const std::int64_t patch = d.tiny ? 16 : 128;
  const bench::ct_volume ct = bench::make_ct_volume(
      {.extents = d.tiny ? extent3{40, 48, 48} : extent3{160, 320, 320}, .spacing = {1.5625, .8, .8}});
  std::vector<std::unique_ptr<micro::memory<std::int16_t>>> images;
  std::vector<std::unique_ptr<micro::memory<std::uint8_t>>> labels;
  for (std::size_t i = 0; i < sets * batch; ++i) {
    images.push_back(std::make_unique<micro::memory<std::int16_t>>(ct.image));
    labels.push_back(std::make_unique<micro::memory<std::uint8_t>>(ct.labels));
  }
  const auto recipe = window{.center = 40, .width = 400} | resample{.spacing_mm = {1, 1, 1}} |
                      random_affine{.rotate_deg = {15, 15}} | center_crop{.size = {patch, patch, patch}} |
                      suture::gamma{.exponent = exponent} | cast<half>{};
  const std::uint64_t ids[batch] = {1000, 1001};
  const auto planned = plan(recipe, std::vector<grid>(batch, ct.grid), {.seed = 7, .epoch = 1, .sample_ids = ids});
  const std::vector<grid> outputs = planned.output_grids();
  const auto voxels = static_cast<std::size_t>(outputs[0].voxels()) * batch;
  const micro::memory<half> image_out(sets * voxels);
  const micro::memory<std::uint8_t> label_out(sets * voxels);
  const auto bind = [&](std::size_t k, const auto& use) {
    std::vector<view<const std::int16_t>> in;
    std::vector<view<const std::uint8_t>> seg;
    for (std::size_t i = k * batch; i < (k + 1) * batch; ++i) {
      in.push_back(contiguous<const std::int16_t>(images[i]->data(), ct.grid));
      seg.push_back(contiguous<const std::uint8_t>(labels[i]->data(), ct.grid));
    }
    const auto out = batch_views(image_out.data() + k * voxels, std::span(outputs));
    const auto seg_out = batch_views(label_out.data() + k * voxels, std::span(outputs));
    return use(suture::image(in, out), suture::labels(seg, seg_out));
  };
  const cuda_workspace workspace(bind(0, [&](const auto&... b) { return workspace_bytes(planned, b...); }));
  const cuda exec{.stream = d.stream, .workspace = workspace};
  std::size_t k = 0;
  const double seconds = d.seconds_in_graph(static_cast<int>(sets) * (d.tiny ? 1 : 10), [&] {
    bind(k, [&](const auto&... b) { run(exec, planned, b...); });
    k = (k + 1) % sets;
  });
  std::vector<half> image_made = image_out.values();
  std::vector<std::uint8_t> labels_made = label_out.values();
  image_made.resize(voxels);
  labels_made.resize(voxels);
  peers::write_raw(folder + "/ct.raw", ct.image);
  peers::write_raw(folder + "/ct_labels.raw", ct.labels);
  peers::write_raw(folder + "/ct_made.raw", image_made);
  peers::write_raw(folder + "/ct_labels_made.raw", labels_made);

  std::printf("\"ct\": {");
  print_extents("volume", ct.grid.extents);
  print_extents("patch", outputs[0].extents);
  std::printf("\"low\": %g, \"high\": %g, \"gamma\": %.9g, \"sets\": %zu, \"matrices\": [", low, high, exponent, sets);
  for (std::size_t i = 0; i < batch; ++i) {
    const auto& g = planned.geometry(i);
    const affine_map m = g.to_source * g.to_deformed;
    for (int r = 0; r < 3; ++r)
      std::printf("%s[%.17g, %.17g, %.17g, %.17g]%s",
                  r   ? ", "
                  : i ? ", ["
                      : "[",
                  m.linear[r][0], m.linear[r][1], m.linear[r][2], m.offset[r], r == 2 ? "]" : "");
  }
  std::printf("], \"us\": %.6g}", 1e6 * seconds);
}

void stained_tiles(const micro::device& d, const std::string& folder) {
  const std::size_t count = d.tiny ? 2 : 256, made = std::min<std::size_t>(count, 16);
  const std::int64_t side = d.tiny ? 128 : 512;  // of which the first 90 rows may be glass
  const grid g{.extents = {1, side, side}};
  const auto values = static_cast<std::size_t>(3 * side * side);
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < count; ++i) {
    if (i < made) {
      const auto tile = bench::stained_tile(g, i);
      pixels.insert(pixels.end(), tile.begin(), tile.end());
    } else {
      pixels.insert(pixels.end(), pixels.begin() + static_cast<std::ptrdiff_t>(i % made * values),
                    pixels.begin() + static_cast<std::ptrdiff_t>((i % made + 1) * values));
    }
  }
  const micro::memory<std::uint8_t> from(pixels), to(pixels.size());
  const micro::memory<stain_basis> fitted(count);
  std::vector<view<const std::uint8_t>> in;
  std::vector<view<std::uint8_t>> out;
  for (std::size_t i = 0; i < count; ++i) {
    in.push_back(channels_last<const std::uint8_t>(from.data() + i * values, g, 3));
    out.push_back(channels_last(to.data() + i * values, g, 3));
  }
  const auto planned = plan(macenko::torchstain.normalize({fitted.data(), count}) | cast<std::uint8_t>{}, in);
  const fit_macenko how = macenko::torchstain.fit;
  const cuda_workspace workspace(std::max(workspace_bytes(how, in), workspace_bytes(planned, image(in, out))));
  const cuda exec{.stream = d.stream, .workspace = workspace};
  const double seconds = d.seconds_in_graph(d.tiny ? 1 : 4, [&] {
    fit(exec, how, in, everything{}, std::span(fitted.data(), count));
    run(exec, planned, image(in, out));
  });
  std::vector<std::uint8_t> result = to.values();
  pixels.resize(made * values);
  result.resize(made * values);
  peers::write_raw(folder + "/tiles.raw", pixels);
  peers::write_raw(folder + "/tiles_made.raw", result);
  std::printf("\"stains\": {\"count\": %zu, \"different\": %zu, \"side\": %lld, \"us\": %.6g}", count, made,
              static_cast<long long>(side), 1e6 * seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "device_work FOLDER [--tiny]\n");
    return 2;
  }
  const std::string folder = argv[1];
  argv[1] = argv[0];
  const micro::device d("device_work", argc - 1, argv + 1);
  std::printf("{\"device\": \"%s\", \"emulated\": %s, ", d.properties.name, d.emulated ? "true" : "false");
  turned_patches(d, folder);
  std::printf(", ");
  stained_tiles(d, folder);
  std::printf("}\n");
}
