// SPDX-License-Identifier: Apache-2.0
// Whole recipes, the same rows for every machine: nnU-Net, brain tumors in four channels, resampling of a whole
// volume, stained tiles. Outputs are poisoned and looked through; those of a device are compared with the host's, bit
// by bit.
#pragma once

#include <cstring>

#include "ct_volume.hpp"
#include "stained_tile.hpp"
#include "suture/recipe/monai_brats.hpp"
#include "suture/recipe/nnunet.hpp"
#include "suture/suture.hpp"
#include "timing.hpp"

namespace bench {

struct recipe_scene {
  suture::extent3 volume{160, 192, 192};  // that patches are cut from
  std::int64_t patch = 128;
  suture::grid whole{.extents = {800, 512, 512}, .spacing = {1.25, 0.7, 0.7}};  // that is resampled
  std::size_t tiles = 256, tile_side = 512, epochs = 16;
};

inline recipe_scene tiny_recipe_scene() {
  return {{24, 32, 40}, 16, {.extents = {10, 24, 28}, .spacing = {1.25, 0.7, 0.7}}, 3, 32, 2};
}

// Inputs of one kind, on the host and as often on the machine as the sets of a row want.
template <class Machine, class T>
class inputs {
public:
  inputs(std::vector<std::vector<T>> host, const suture::grid& g, std::int64_t channels, std::size_t copies,
         bool channels_last = false)
      : host_(std::move(host)), grid_(g), channels_(channels), channels_last_(channels_last) {
    for (std::size_t i = 0; i < copies; ++i) {
      const std::vector<T>& from = host_[i % host_.size()];
      machine_.emplace_back(from.size());
      machine_.back().assign(from.data());
    }
  }
  using view_type = suture::view<const T>;
  std::vector<view_type> batch(std::size_t set, std::size_t size) {
    std::vector<view_type> views;
    for (std::size_t i = 0; i < size; ++i) views.push_back(seen(machine_[(set * size + i) % machine_.size()].data()));
    return views;
  }
  std::vector<view_type> host_batch(std::size_t set, std::size_t size) const {
    std::vector<view_type> views;
    for (std::size_t i = 0; i < size; ++i)
      views.push_back(seen(host_[(set * size + i) % machine_.size() % host_.size()].data()));
    return views;
  }
  const suture::grid& grid() const { return grid_; }

private:
  view_type seen(const T* data) const {
    return channels_last_ ? suture::channels_last<const T>(data, grid_, channels_)
                          : suture::contiguous<const T>(data, grid_, channels_);
  }
  std::vector<std::vector<T>> host_;
  suture::grid grid_;
  std::int64_t channels_;
  bool channels_last_;
  std::vector<typename Machine::template buffer<T>> machine_;
};

// What a row binds: an image of `channels` and labels that leave in `label_channels`, 0 for none.
struct shapes {
  std::size_t batch = 1;
  std::int64_t channels = 1, label_channels = 0;
  double bytes_a_voxel = 0;  // in and out, of an output voxel; 0: an image voxel and its source are counted
  std::size_t epochs = 1;    // plans that take turns
};

template <class Machine, class Chain, class In, class Labels, class... Conversion>
void measure_chain(benchmark::State& state, Machine& machine, const Chain& chain, inputs<Machine, In>& images,
                   Labels* segmentations, const shapes& s, const Conversion&... conversion) {
  using half = suture::half;
  using plan_type = decltype(suture::plan(chain, std::vector<suture::grid>{}));
  constexpr bool labeled = !std::is_same_v<Labels, void*>;
  using label_type = std::conditional_t<sizeof...(Conversion) != 0, std::uint8_t, std::int8_t>;

  const std::vector<suture::grid> grids(s.batch, images.grid());
  std::vector<std::uint64_t> ids(s.batch);
  std::vector<plan_type> plans;
  std::size_t sets = s.epochs;
  double bytes = 0;
  for (std::size_t k = 0; k < sets; ++k) {
    for (std::size_t i = 0; i < s.batch; ++i) ids[i] = 1000 + k * s.batch + i;
    plans.push_back(suture::plan(chain, grids, {.seed = 7, .epoch = 1, .sample_ids = ids}));
    if (k > 0) continue;
    const double channels = static_cast<double>(s.channels);
    bytes = s.bytes_a_voxel > 0 ? s.bytes_a_voxel * static_cast<double>(plans[0].output_grid(0).voxels() * s.batch)
                                : useful_bytes(plans[0], sizeof(In) * channels, sizeof(half) * channels);
    sets =
        std::max(sets, static_cast<std::size_t>(std::clamp(std::ceil(3 * machine.cache_bytes() / bytes), 1.0, 64.0)));
  }
  const std::vector<suture::grid> outputs = plans[0].output_grids();
  const auto voxels = static_cast<std::size_t>(outputs[0].voxels()) * s.batch;
  const std::size_t image_values = voxels * static_cast<std::size_t>(s.channels);
  const std::size_t label_values = voxels * static_cast<std::size_t>(s.label_channels);
  // Fewer outputs than plans may take turns, as long as the caches do not hold them.
  const std::size_t places = std::min<std::size_t>(sets, machine.cache_bytes() > 0 ? 4 : 1);
  typename Machine::template buffer<half> image_memory(places * image_values);
  typename Machine::template buffer<label_type> label_memory(places * label_values);

  const auto with_bindings = [&](auto&& in, auto* segmentation_batch, half* out, label_type* label_out,
                                 const auto& use) {
    const auto out_views = suture::batch_views(out, std::span(outputs), s.channels);
    if constexpr (labeled) {
      const auto label_views = suture::batch_views(label_out, std::span(outputs), s.label_channels);
      return use(suture::image(in, out_views), suture::labels(*segmentation_batch, label_views, conversion...));
    } else {
      static_cast<void>(segmentation_batch), static_cast<void>(label_out);
      return use(suture::image(in, out_views));
    }
  };
  const auto on_machine = [&](std::size_t k, const auto& use) {
    half* const out = image_memory.data() + k % places * image_values;
    label_type* const label_out = label_memory.data() + k % places * label_values;
    const auto in = images.batch(k, s.batch);
    if constexpr (labeled) {
      const auto seg = segmentations->batch(k, s.batch);
      return with_bindings(in, &seg, out, label_out, use);
    } else {
      return with_bindings(in, segmentations, out, label_out, use);
    }
  };
  std::size_t workspace_bytes = 0;
  for (std::size_t k = 0; k < sets; ++k)
    workspace_bytes =
        std::max(workspace_bytes,
                 on_machine(k, [&](const auto&... bound) { return suture::workspace_bytes(plans[k], bound...); }));
  typename Machine::template buffer<std::byte> workspace(workspace_bytes);
  const auto exec = machine.executor(std::span(workspace.data(), workspace_bytes));
  const auto run = [&](std::size_t k) {
    on_machine(k, [&](const auto&... bound) { suture::run(exec, plans[k], bound...); });
  };

  // A device has to give the host's bits in every set, the host elements that were written.
  bool correct = true;
  for (std::size_t k = 0; k < (Machine::on_device ? sets : 1) && correct; ++k) {
    image_memory.poison();
    label_memory.poison();
    run(k);
    const std::vector<half> images_made = image_memory.values();
    const std::vector<label_type> labels_made = label_memory.values();
    const std::span image_result(images_made.data() + k % places * image_values, image_values);
    const std::span label_result(labels_made.data() + k % places * label_values, label_values);
    correct =
        std::none_of(image_result.begin(), image_result.end(), [](half h) { return (h.bits & 0x7fff) > 0x7c00; }) &&
        std::none_of(label_result.begin(), label_result.end(), [](label_type l) { return l == label_type(0xff); });
    if constexpr (Machine::on_device) {
      std::vector<half> image_expected(image_values);
      std::vector<label_type> label_expected(label_values);
      const auto in = images.host_batch(k, s.batch);
      const auto use = [&](const auto&... bound) { suture::run(suture::cpu{}, plans[k], bound...); };
      if constexpr (labeled) {
        const auto seg = segmentations->host_batch(k, s.batch);
        with_bindings(in, &seg, image_expected.data(), label_expected.data(), use);
      } else {
        with_bindings(in, segmentations, image_expected.data(), label_expected.data(), use);
      }
      correct = correct && std::memcmp(image_expected.data(), image_result.data(), image_values * sizeof(half)) == 0 &&
                std::memcmp(label_expected.data(), label_result.data(), label_values) == 0;
    }
  }
  if (!correct) {
    any_failed = true;
    state.SkipWithError("the output is wrong");
    return;
  }
  report(state, machine, sets, run,
         {.bytes = bytes,
          .voxels = static_cast<double>(voxels),
          .workspace = workspace_bytes,
          .stages = plan_type::stages(),
          .mean_of_sets = s.epochs > 1});
  if constexpr (Machine::on_device)
    on_machine(0, [&](const auto&... bound) {
      using evaluator = decltype(suture::prepare(exec, plans[0], bound...));
      state.counters["registers"] = machine.template registers<evaluator>();
    });
}

// Everything the rows read, made when the first row is run.
template <class Machine>
struct recipe_inputs {
  explicit recipe_inputs(const recipe_scene& s) : scene(s) {}

  // Two patches' volumes by four; on a device they exceed its cache.
  static constexpr std::size_t copies = Machine::on_device ? 8 : 2;

  inputs<Machine, float>& normalized() {
    if (!normalized_) {
      const ct_volume ct = make_ct_volume({.extents = scene.volume});
      std::vector<float> values(ct.image.begin(), ct.image.end());
      for (float& v : values) v = (v - 80) / 120;
      normalized_ = std::make_unique<inputs<Machine, float>>(std::vector<std::vector<float>>{std::move(values)},
                                                             ct.grid, 1, copies);
    }
    return *normalized_;
  }
  inputs<Machine, std::int8_t>& classes() {
    if (!classes_) {
      const ct_volume ct = make_ct_volume({.extents = scene.volume});
      classes_ = std::make_unique<inputs<Machine, std::int8_t>>(
          std::vector<std::vector<std::int8_t>>{{ct.labels.begin(), ct.labels.end()}}, ct.grid, 1, copies);
    }
    return *classes_;
  }
  // Four sequences of one brain, background zero; one behind the other, or those of a voxel side by side.
  inputs<Machine, std::int16_t>& sequences(bool side_by_side = false) {
    auto& made = sequences_[side_by_side ? 1 : 0];
    if (!made) {
      const ct_volume ct = make_ct_volume({.extents = scene.volume});
      const std::size_t n = ct.image.size();
      std::vector<std::int16_t> values(4 * n);
      for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t i = 0; i < n; ++i)
          values[side_by_side ? 4 * i + c : c * n + i] =
              static_cast<std::int16_t>(ct.image[i] < -500 ? 0 : 1000 + (ct.image[i] >> c));
      made = std::make_unique<inputs<Machine, std::int16_t>>(std::vector<std::vector<std::int16_t>>{std::move(values)},
                                                             ct.grid, 4, copies, side_by_side);
    }
    return *made;
  }
  inputs<Machine, std::int16_t>& whole() {
    if (!whole_)
      whole_ = std::make_unique<inputs<Machine, std::int16_t>>(
          std::vector<std::vector<std::int16_t>>{make_ct_volume(scene.whole).image}, scene.whole, 1,
          Machine::on_device ? 2 : 1);
    return *whole_;
  }
  inputs<Machine, std::uint8_t>& tiles() {
    if (!tiles_) {
      const auto side = static_cast<std::int64_t>(scene.tile_side);
      const suture::grid g{.extents = {1, side, side}};
      std::vector<std::vector<std::uint8_t>> pixels;
      for (std::size_t i = 0; i < std::min<std::size_t>(scene.tiles, 16); ++i) pixels.push_back(stained_tile(g, i));
      tiles_ = std::make_unique<inputs<Machine, std::uint8_t>>(std::move(pixels), g, 3, scene.tiles, true);
    }
    return *tiles_;
  }

  recipe_scene scene;

private:
  std::unique_ptr<inputs<Machine, float>> normalized_;
  std::unique_ptr<inputs<Machine, std::int8_t>> classes_;
  std::unique_ptr<inputs<Machine, std::int16_t>> sequences_[2], whole_;
  std::unique_ptr<inputs<Machine, std::uint8_t>> tiles_;
};

// Stains of a batch of tiles fitted, applied, or both in turn.
template <class Machine, class MakeChain>
void measure_stains(benchmark::State& state, Machine& machine, recipe_inputs<Machine>& all, const MakeChain& make_chain,
                    bool fits, bool applies) {
  using namespace suture;
  using half = suture::half;
  const std::size_t count = all.scene.tiles;
  const fit_macenko how = macenko::standard.fit;
  const auto in = all.tiles().batch(0, count);
  const double pixels = static_cast<double>(all.tiles().grid().voxels()) * static_cast<double>(count);
  typename Machine::template buffer<stain_basis> fitted(count);
  std::vector<std::uint64_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = i;
  const auto planned = plan(make_chain({fitted.data(), count}), in, {.seed = 7, .epoch = 1, .sample_ids = ids});
  using plan_type = std::remove_const_t<decltype(planned)>;
  const auto outputs = planned.output_grids();
  typename Machine::template buffer<half> memory(3 * static_cast<std::size_t>(pixels));
  const auto out = batch_views(memory.data(), std::span(outputs), 3);
  std::size_t needed = suture::workspace_bytes(planned, image(in, out));
  if constexpr (Machine::on_device) needed = std::max(needed, suture::workspace_bytes(how, in));
  typename Machine::template buffer<std::byte> workspace(needed);
  const auto exec = machine.executor(std::span(workspace.data(), needed));
  const auto run_fit = [&] { fit(exec, how, in, everything{}, std::span(fitted.data(), count)); };
  const auto run_chain = [&] { suture::run(exec, planned, image(in, out)); };

  memory.poison();
  run_fit();
  run_chain();
  const std::vector<half> result = memory.values();
  bool correct = std::none_of(result.begin(), result.end(), [](half h) { return (h.bits & 0x7fff) > 0x7c00; });
  if constexpr (Machine::on_device) {
    std::vector<half> expected(result.size());
    std::vector<stain_basis> host_fitted(count);
    const auto host_in = all.tiles().host_batch(0, count);
    fit(cpu{}, how, host_in, everything{}, std::span(host_fitted));
    const auto host_plan = plan(make_chain(host_fitted), host_in, {.seed = 7, .epoch = 1, .sample_ids = ids});
    suture::run(cpu{}, host_plan, image(host_in, batch_views(expected.data(), std::span(outputs), 3)));
    correct = correct && std::memcmp(expected.data(), result.data(), expected.size() * sizeof(half)) == 0;
  }
  if (!correct) {
    any_failed = true;
    state.SkipWithError("the output is wrong");
    return;
  }
  report(state, machine, 1,
         [&](std::size_t) {
           if (fits) run_fit();
           if (applies) run_chain();
         },
         {.bytes = pixels * ((fits ? 3 : 0) + (applies ? 9 : 0)),
          .voxels = pixels,
          .workspace = needed,
          .stages = (fits ? 1 : 0) + (applies ? plan_type::stages() : 0)});
  state.counters["tiles/s"] = static_cast<double>(count) * state.counters["voxels/s"] / pixels;
}

// Registers every row for a machine, which must outlive the benchmarks.
template <class Machine>
void add_recipe_rows(Machine& machine, recipe_inputs<Machine>& all, const std::string& suffix) {
  using namespace suture;
  using half = suture::half;  // not CUDA's
  const auto add = [&](const std::string& name, const auto& row) {
    benchmark::RegisterBenchmark((name + suffix).c_str(), row)->UseManualTime()->Unit(benchmark::kMicrosecond);
  };
  const std::int64_t side = all.scene.patch;
  const std::string patch = std::to_string(side);
  const std::size_t epochs = all.scene.epochs;

  // The default augmentation of nnU-Net: as frequent as in training, a mean over 2 x 16 samples.
  add("recipe/nnunet/" + patch + "/batch:2", [&machine, &all, side, epochs](benchmark::State& state) {
    const nnunet_shape shape{{side, side, side}};
    extent3 start = shape.enlarged();
    for (int k = 0; k < 3; ++k) start[k] = (all.scene.volume[k] - start[k]) / 2;
    const std::vector<extent3> starts(2, start);
    measure_chain(state, machine, nnunet_v2_8({.shape = shape, .starts = starts}) | cast<half>{}, all.normalized(),
                  &all.classes(), {.batch = 2, .label_channels = 1, .bytes_a_voxel = 4 + 1 + 2 + 1, .epochs = epochs},
                  remap{.table = {{-1, 0}, {1, 1}, {2, 2}}, .others = 0});
  });
  // Four sequences, normalized by their own patch (MONAI), and in one pass.
  const extent3 size{side, side, side};
  add("recipe/monai_brats/4x" + patch + "/batch:2", [&machine, &all, size](benchmark::State& state) {
    measure_chain(state, machine, monai_brats(size) | cast<half>{}, all.sequences(), &all.classes(),
                  {.batch = 2, .channels = 4, .label_channels = 3, .bytes_a_voxel = 8 + 1 + 8 + 3},
                  brats_regions_1_2_3);
  });
  for (const bool side_by_side : {false, true})
    add(std::string(side_by_side ? "recipe/brats_affine_side_by_side/4x" : "recipe/brats_affine/4x") + patch +
            "/batch:2",
        [&machine, &all, size, side_by_side](benchmark::State& state) {
          measure_chain(state, machine,
                        random_affine{.rotate_deg = {15, 15}} | center_crop{size} | random_flip{} |
                            rescale{.slope = .001f, .intercept = -1} | cast<half>{},
                        all.sequences(side_by_side), &all.classes(),
                        {.batch = 2, .channels = 4, .label_channels = 3, .bytes_a_voxel = 8 + 1 + 8 + 3},
                        brats_regions_1_2_3);
        });
  // A whole volume: resampled to 1 mm, and without geometry.
  const extent3& n = all.scene.whole.extents;
  const std::string whole = std::to_string(n[0]) + "x" + std::to_string(n[1]) + "x" + std::to_string(n[2]);
  const auto soft_tissue = window{.center = 40, .width = 400};
  void** const no_labels = nullptr;
  add("recipe/resample/" + whole, [&machine, &all, soft_tissue, no_labels](benchmark::State& state) {
    measure_chain(state, machine, soft_tissue | resample{.spacing_mm = {1, 1, 1}} | cast<half>{}, all.whole(),
                  no_labels, {});
  });
  add("recipe/window_cast/" + whole, [&machine, &all, soft_tissue, no_labels](benchmark::State& state) {
    measure_chain(state, machine, soft_tissue | cast<half>{}, all.whole(), no_labels, {});
  });
  // Stained tiles: the fit, normalization with jitter, and both with a turn.
  const std::string tiles = std::to_string(all.scene.tiles) + "x" + std::to_string(all.scene.tile_side);
  const auto applied = [](std::span<const stain_basis> fitted) {
    return macenko::standard.normalize(fitted) | random_hed_jitter{} | channel_normalize{} | cast<half>{};
  };
  const auto turned = [](std::span<const stain_basis> fitted) {
    return random_affine{.rotate_deg = {180, 0, 0}} | sampling<linear, reflect>{} |
           macenko::standard.normalize(fitted) | random_hed_jitter{} | channel_normalize{} | cast<half>{};
  };
  add("recipe/macenko_fit/" + tiles, [&machine, &all, applied](benchmark::State& state) {
    measure_stains(state, machine, all, applied, true, false);
  });
  add("recipe/macenko_apply_jitter/" + tiles, [&machine, &all, applied](benchmark::State& state) {
    measure_stains(state, machine, all, applied, false, true);
  });
  add("recipe/macenko_fit_apply_jitter_warp/" + tiles,
      [&machine, &all, turned](benchmark::State& state) { measure_stains(state, machine, all, turned, true, true); });
}

}  // namespace bench
