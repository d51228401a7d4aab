// SPDX-License-Identifier: Apache-2.0
// The rows of the CT benchmarks, the same for every machine; they ask it for image(i) and labels(i), the i-th volume.
#pragma once

#include <cstring>

#include "ct_volume.hpp"
#include "suture/suture.hpp"
#include "timing.hpp"

namespace bench {

// 1.5625 x 0.8 x 0.8 mm: at 1 mm the output has exactly as many voxels as the part of the input it covers.
struct scene {
  suture::grid volume{.extents = {160, 320, 320}, .spacing = {1.5625, 0.8, 0.8}};
  std::vector<std::int64_t> patches{96, 128};
  suture::extent3 cubic{128, 128, 128};
};

inline scene tiny_scene() { return {{.extents = {40, 48, 48}, .spacing = {1.5625, 0.8, 0.8}}, {16, 24}, {20, 24, 28}}; }

enum class bound { image, labels, both };

// The middle of a volume as a view into it.
template <class T>
suture::view<T> middle(suture::view<T> v, const suture::extent3& extents) {
  for (int k = 0; k < 3; ++k) {
    v.data += (v.grid.extents[k] - extents[k]) / 2 * v.stride[k];
    v.grid.extents[k] = extents[k];
  }
  return v;
}

// What a row times: a whole run, or of a device what a captured graph repeats behind `load`.
enum class timed { run, loaded };

// One row. Several sets of inputs and outputs take turns, so that together they exceed the last cache that a single
// one would stay in.
template <bound What, timed Part = timed::run, class Backend, class Chain>
void measure(benchmark::State& state, Backend& backend, const Chain& chain, const suture::extent3& source,
             std::size_t batch) {
  using half = suture::half;
  constexpr bool with_image = What != bound::labels, with_labels = What != bound::image;
  constexpr double voxel = (with_image ? 2 : 0) + (with_labels ? 1 : 0);  // bytes, in and out alike
  using plan_type = decltype(suture::plan(chain, std::vector<suture::grid>{}));

  const std::vector<suture::grid> grids(batch, middle(backend.image(0), source).grid);
  std::vector<std::uint64_t> ids(batch);
  for (std::size_t i = 0; i < batch; ++i) ids[i] = 1000 + i;
  std::vector<plan_type> plans;
  std::size_t sets = 1;
  double bytes = 0;
  for (std::size_t k = 0; k < sets; ++k) {
    plans.push_back(suture::plan(chain, grids, {.seed = 7, .epoch = static_cast<std::uint32_t>(k), .sample_ids = ids}));
    if (k > 0) continue;
    bytes = useful_bytes(plans[0], voxel, voxel);
    sets = static_cast<std::size_t>(std::clamp(std::ceil(3 * backend.cache_bytes() / bytes), 2.0, 64.0));
  }
  const std::vector<suture::grid> outputs = plans[0].output_grids();
  const auto out_voxels = static_cast<std::size_t>(outputs[0].voxels()) * batch;

  typename Backend::template buffer<half> image_memory(with_image ? sets * out_voxels : 0);
  typename Backend::template buffer<std::uint8_t> label_memory(with_labels ? sets * out_voxels : 0);
  struct set_views {
    std::vector<suture::view<const std::int16_t>> image;
    std::vector<suture::view<const std::uint8_t>> labels;
    std::vector<suture::view<half>> image_out;
    std::vector<suture::view<std::uint8_t>> labels_out;
  };
  std::vector<set_views> views(sets);
  for (std::size_t k = 0; k < sets; ++k) {
    for (std::size_t i = 0; i < batch; ++i) {
      views[k].image.push_back(middle(backend.image(k * batch + i), source));
      views[k].labels.push_back(middle(backend.labels(k * batch + i), source));
    }
    if (with_image) views[k].image_out = suture::batch_views(image_memory.data() + k * out_voxels, std::span(outputs));
    if (with_labels)
      views[k].labels_out = suture::batch_views(label_memory.data() + k * out_voxels, std::span(outputs));
  }
  const auto bind = [&](const set_views& v, const auto& use) {
    if constexpr (What == bound::image)
      return use(suture::image(v.image, v.image_out));
    else if constexpr (What == bound::labels)
      return use(suture::labels(v.labels, v.labels_out));
    else
      return use(suture::image(v.image, v.image_out), suture::labels(v.labels, v.labels_out));
  };
  std::size_t workspace_bytes = 0;
  for (std::size_t k = 0; k < sets; ++k)
    workspace_bytes = std::max(
        workspace_bytes, bind(views[k], [&](const auto&... b) { return suture::workspace_bytes(plans[k], b...); }));
  // What was loaded stays in a workspace, so each set has one of its own.
  const std::size_t workspaces = Part == timed::loaded ? sets : 1, apart = (workspace_bytes + 255) / 256 * 256;
  typename Backend::template buffer<std::byte> workspace(workspaces * apart);
  const auto executor = [&](std::size_t k) {
    return backend.executor(std::span(workspace.data() + k % workspaces * apart, workspace_bytes));
  };
  const auto exec = executor(0);
  const auto run = [&](std::size_t k) {
    bind(views[k], [&](const auto&... b) {
      if constexpr (Part == timed::loaded)
        run_loaded(executor(k), plans[k], b...);
      else
        suture::run(exec, plans[k], b...);
    });
  };
  if constexpr (Part == timed::loaded)
    for (std::size_t k = 0; k < sets; ++k) bind(views[k], [&](const auto&... b) { load(executor(k), plans[k], b...); });

  // A voxel that is never written keeps the poison: NaN, or a label that does not exist.
  image_memory.poison();
  label_memory.poison();
  for (std::size_t k = 0; k < sets; ++k) run(k);
  const std::vector<half> image_result = image_memory.values();
  const std::vector<std::uint8_t> label_result = label_memory.values();
  bool correct =
      std::none_of(image_result.begin(), image_result.end(), [](half h) { return (h.bits & 0x7fff) > 0x7c00; }) &&
      std::all_of(label_result.begin(), label_result.end(), [](std::uint8_t l) { return l < label_count; });
  if constexpr (Backend::on_device) {
    // The host's bits are the device's, in every set.
    std::vector<half> image_expected(with_image ? out_voxels : 0);
    std::vector<std::uint8_t> label_expected(with_labels ? out_voxels : 0);
    set_views host;
    for (std::size_t i = 0; i < batch; ++i) {
      host.image.push_back(middle(backend.host_image(), source));
      host.labels.push_back(middle(backend.host_labels(), source));
    }
    if (with_image) host.image_out = suture::batch_views(image_expected.data(), std::span(outputs));
    if (with_labels) host.labels_out = suture::batch_views(label_expected.data(), std::span(outputs));
    for (std::size_t k = 0; k < sets && correct; ++k) {
      bind(host, [&](const auto&... b) { suture::run(suture::cpu{}, plans[k], b...); });
      correct = std::memcmp(image_expected.data(), image_result.data() + k * image_expected.size(),
                            image_expected.size() * sizeof(half)) == 0 &&
                std::memcmp(label_expected.data(), label_result.data() + k * label_expected.size(),
                            label_expected.size()) == 0;
    }
  }
  if (!correct) {
    any_failed = true;
    state.SkipWithError("the output is wrong");
    return;
  }

  report(state, backend, sets, run,
         {.bytes = bytes,
          .voxels = static_cast<double>(out_voxels),
          .workspace = workspace_bytes,
          .stages = plan_type::stages()});
  if constexpr (Backend::on_device) {
    bind(views[0], [&](const auto&... b) {
      using evaluator = decltype(suture::prepare(exec, plans[0], b...));
      state.counters["registers"] = backend.template registers<evaluator>();
    });
  }
}

// The recipe by which patches are made from CT volumes; every random operation is on or off by its probability.
struct recipe {
  float degrees = 0;
  bool elastic = false, noise = false;
  std::int64_t patch = 96;
};

inline auto ct_recipe(const recipe& r) {
  return suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
         suture::random_affine{.rotate_deg = {r.degrees, r.degrees}} |
         suture::random_elastic{
             .control_spacing_mm = 32, .max_displacement_mm = 8, .probability = r.elastic ? 1.0f : 0.0f} |
         suture::center_crop{.size = {r.patch, r.patch, r.patch}} | suture::random_gamma{.range = {.7f, 1.5f}} |
         suture::gaussian_noise{.sigma = .02f, .probability = r.noise ? 1.0f : 0.0f} | suture::cast<suture::half>{};
}

// The recipe whose type knows no elastic deformation, and without gamma besides.
inline auto rigid_ct_recipe(const recipe& r) {
  return suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
         suture::random_affine{.rotate_deg = {r.degrees, r.degrees}} |
         suture::center_crop{.size = {r.patch, r.patch, r.patch}} | suture::random_gamma{.range = {.7f, 1.5f}} |
         suture::cast<suture::half>{};
}
inline auto plain_ct_recipe(const recipe& r) {
  return suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
         suture::random_affine{.rotate_deg = {r.degrees, r.degrees}} |
         suture::center_crop{.size = {r.patch, r.patch, r.patch}} | suture::cast<suture::half>{};
}

// Registers every row for a backend, which must outlive the benchmarks.
template <class Backend>
void add_rows(Backend& backend, const scene& s, const std::vector<std::size_t>& batches, const std::string& suffix) {
  const auto add = [&]<bound What, timed Part = timed::run>(const std::string& name, const auto& chain,
                                                            const suture::extent3& source, std::size_t batch) {
    benchmark::RegisterBenchmark((name + "/batch:" + std::to_string(batch) + suffix).c_str(),
                                 [&backend, chain, source, batch](benchmark::State& state) {
                                   measure<What, Part>(state, backend, chain, source, batch);
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  using namespace suture;
  const extent3& whole = s.volume.extents;
  for (const std::size_t batch : batches)
    for (const std::int64_t patch : s.patches)
      for (const bool elastic : {false, true})
        for (const bool noise : {false, true})
          for (const int degrees : {0, 5, 15, 30})
            add.template operator()<bound::both>(
                "ct/" + std::to_string(patch) + "/rotate:" + std::to_string(degrees) +
                    "/elastic:" + std::to_string(elastic) + "/noise:" + std::to_string(noise),
                ct_recipe({static_cast<float>(degrees), elastic, noise, patch}), whole, batch);

  // What one thing costs: the recipe without it, beside the row above with the same patch and angle.
  for (const int degrees : {0, 15}) {
    const recipe all{static_cast<float>(degrees), false, false, s.patches.back()};
    const std::string rest = "/" + std::to_string(all.patch) + "/rotate:" + std::to_string(degrees);
    add.template operator()<bound::image>("ct_image" + rest, ct_recipe(all), whole, batches.front());
    add.template operator()<bound::both>("ct_without_elastic" + rest, rigid_ct_recipe(all), whole, batches.front());
    add.template operator()<bound::both>("ct_without_gamma" + rest, plain_ct_recipe(all), whole, batches.front());
    if constexpr (Backend::on_device)
      for (const bool elastic : {false, true}) {
        recipe drawn = all;
        drawn.elastic = elastic;
        add.template operator()<bound::both, timed::loaded>("ct_loaded" + rest + "/elastic:" + std::to_string(elastic),
                                                            ct_recipe(drawn), whole, batches.front());
      }
  }

  // The parts: whole volumes first, then patches.
  const auto to_half = cast<suture::half>{};
  const window soft_tissue{.center = 40, .width = 400};
  add.template operator()<bound::image>("window_cast", soft_tissue | to_half, whole, 1);
  add.template operator()<bound::image>(
      "gamma", random_gamma{.range = {.7f, 1.5f}, .value_range = {-1024, 3071}} | to_half, whole, 1);
  add.template operator()<bound::image>("noise", gaussian_noise{.sigma = 12} | to_half, whole, 1);
  add.template operator()<bound::image>("bias_field", soft_tissue | random_bias_field{} | to_half, whole, 1);
  add.template operator()<bound::image>("poisson_noise", soft_tissue | poisson_noise{.counts = 100} | to_half, whole,
                                        1);
  add.template operator()<bound::image>("histogram_shift", soft_tissue | random_histogram_shift{} | to_half, whole, 1);
  add.template operator()<bound::image>(
      "coarse_dropout", soft_tissue | random_coarse_dropout{.holes = 8, .size = {16, 64, 64}} | to_half, whole, 1);
  add.template operator()<bound::image>("gamma_per_channel", soft_tissue | per_channel(random_gamma{}) | to_half, whole,
                                        1);
  add.template operator()<bound::image>("resample", soft_tissue | resample{.spacing_mm = {1, 1, 1}} | to_half, whole,
                                        1);
  add.template operator()<bound::image>(
      "cubic_bspline", affine{.rotate_deg = {15, 15, 15}} | sampling<cubic_bspline, mirror>{} | to_half, s.cubic, 1);
  const std::int64_t side = s.patches.front();
  const center_crop patch{.size = {side, side, side}};
  for (const std::size_t batch : batches) {
    add.template operator()<bound::image>("affine", affine{.rotate_deg = {15, 15, 15}} | patch | to_half, whole, batch);
    add.template operator()<bound::image>(
        "elastic", random_elastic{.control_spacing_mm = 32, .max_displacement_mm = 8} | patch | to_half, whole, batch);
    add.template operator()<bound::labels>("labels_nearest", affine{.rotate_deg = {15, 15, 15}} | patch, whole, batch);
    add.template operator()<bound::labels>(
        "labels_vote", affine{.rotate_deg = {15, 15, 15}} | sampling<linear, constant, vote>{} | patch, whole, batch);
    add.template operator()<bound::labels>(
        "labels_majority", affine{.rotate_deg = {15, 15, 15}} | sampling<linear, constant, majority>{} | patch, whole,
        batch);
  }
}

}  // namespace bench
