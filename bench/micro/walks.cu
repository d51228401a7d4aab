// SPDX-License-Identifier: Apache-2.0
// The fused kernel of turned CT patches and their labels as it is, and changed in one thing at a time: blocks that a
// multiprocessor is to hold, voxels of a walk, the label loaded ahead of the image and stored behind it, parameters in
// the constant bank in place of shared memory. Every variant has to give the same bits.
//   walks [--tiny]
#include "suture/suture.cuh"

// After the executor it runs on.
#include "../ct_volume.hpp"
#include "micro.cuh"

namespace {

using namespace suture;
using namespace suture::detail;
using half = suture::half;

// The plain loop over the evaluator with another shape, its label stored at once or behind the image.
template <int Blocks, int Depth, bool LabelStoredLast = false>
struct walk {
  template <class Evaluator>
  static constexpr bool possible = true;
  template <class Evaluator>
  struct shape : tile_shape<Evaluator, 1, warp_x, false, Blocks> {
    static constexpr bool deepens = false;
    static void count(tile_counts& tiles, const extent3& n, std::size_t sample) {
      tiles.depth = Depth;
      tile_shape<Evaluator>::count(tiles, n, sample);
    }
  };
  static constexpr bool serves_all = true;

  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static void make(const block_work<Evaluator>& work) {
    if constexpr (LabelStoredLast)
      store_label_last(work);
    else
      column_walk::make<WithLabels, OneChannel>(work);
  }

private:
  template <class Evaluator>
  __device__ __forceinline__ static void store_label_last(const block_work<Evaluator>& work) {
    using image = typename Evaluator::template pair<0>;
    using labels = typename Evaluator::template pair<1>;
    const auto& r = work.r;
    const column_of_thread& at = work.at;
    if (!at.inside) return;
    typename Evaluator::column_addresses to(r, at.z0, at.y, at.x, nullptr);
    column<typename Evaluator::pipeline_type> along(r.sample, at.z0, at.y, at.x);
    SUTURE_NO_UNROLL
    for (std::int32_t z = at.z0; z < at.z1; ++z, along.step(), to.template step<true>(r)) {
      coordinate c[3];
      along.locate(c);
      const auto label = labels::label(r.in[1], to.template from<1>(), c, 0, z, at.y, at.x, work.evaluate.rule);
      const auto value = image::at(r.sample, r.in[0], to.template from<0>(), c, {work.sample_index, 0, z, at.y, at.x},
                                   work.evaluate.rule);
      Evaluator::template store<0>(r, to.template to<0>(), value);
      *to.template to<1>() = label;
    }
  }
};

// The fused kernel, but for parameters that every thread reads where the launch has put them.
template <class Evaluator, class Paths>
__global__ void __launch_bounds__(fused_threads, shape_of<Evaluator, Paths>::blocks)
    constant_kernel(const __grid_constant__ Evaluator evaluate,
                    const __grid_constant__ record_chunk<typename Evaluator::record_type, carried_bytes> carried,
                    tile_counts tiles) {
  const auto sample_index = static_cast<std::int32_t>(blockIdx.y);
  make_block<true, true, Paths>(evaluate, carried.records[blockIdx.y], sample_index, tiles);
}

// Sets of volumes and outputs that take turns, so that they are not left in the L2 cache.
struct scene {
  static constexpr std::size_t batch = 2;
  std::size_t sets;
  bench::ct_volume ct;
  std::vector<std::unique_ptr<micro::memory<std::int16_t>>> images;
  std::vector<std::unique_ptr<micro::memory<std::uint8_t>>> labels;

  scene(const grid& g, std::size_t count) : sets(count), ct(bench::make_ct_volume(g)) {
    for (std::size_t i = 0; i < sets * batch; ++i) {
      images.push_back(std::make_unique<micro::memory<std::int16_t>>(ct.image));
      labels.push_back(std::make_unique<micro::memory<std::uint8_t>>(ct.labels));
    }
  }
  template <class T>
  std::vector<view<const T>> views(const std::vector<std::unique_ptr<micro::memory<T>>>& from, std::size_t set) const {
    std::vector<view<const T>> v;
    for (std::size_t i = 0; i < batch; ++i) v.push_back(contiguous<const T>(from[set * batch + i]->data(), ct.grid));
    return v;
  }
};

auto turned_patches(float degrees, std::int64_t patch) {
  return window{.center = 40, .width = 400} | resample{.spacing_mm = {1, 1, 1}} |
         random_affine{.rotate_deg = {degrees, degrees}} | center_crop{.size = {patch, patch, patch}} |
         random_gamma{.range = {.7f, 1.5f}} | cast<half>{};
}

class rows {
public:
  rows(const micro::device& d, const scene& s, float degrees, std::int64_t patch)
      : d_(d), s_(s), name_(std::to_string(static_cast<int>(degrees)) + " degrees, ") {
    const auto recipe = turned_patches(degrees, patch);
    const std::vector<grid> grids(scene::batch, s.ct.grid);
    const std::uint64_t ids[scene::batch] = {1000, 1001};
    for (std::size_t k = 0; k < s.sets; ++k)
      plans_.push_back(plan(recipe, grids, {.seed = 7, .epoch = static_cast<std::uint32_t>(k), .sample_ids = ids}));
    outputs_ = plans_[0].output_grids();
    voxels_ = static_cast<std::size_t>(outputs_[0].voxels()) * scene::batch;
  }

  template <class Paths>
  void add(const std::string& name) {
    measure<Paths>(name, [](const auto& e, const auto& p, const auto& exec, const auto&... bound) {
      static_cast<void>(e);
      run_by<Paths>(exec, p, bound...);
    });
  }
  template <class Paths>
  void add_constant(const std::string& name) {
    measure<Paths, true>(name, [](const auto& e, const auto& p, const auto& exec, const auto&... bound) {
      using E = std::remove_cvref_t<decltype(e)>;
      record_chunk<typename E::record_type, carried_bytes> carried;
      require(p.size() <= static_cast<std::size_t>(carried.capacity), {"walks"}, "the records do not fit");
      const workspace_layout l = layout(p, bound...);
      workspace_cursor used;
      for (std::size_t i = 0; i < p.size(); ++i)
        carried.records[i] = make_record(p, i, true, l, exec.workspace.data(), used, bound...);
      const tile_counts tiles = count_tiles<E, Paths, true>(false, p, bound...);
      constant_kernel<E, Paths><<<tile_blocks(tiles, p), fused_threads, 0, exec.stream>>>(e, carried, tiles);
      micro::check_cuda(cudaGetLastError(), "constant_kernel");
    });
  }
  bool good() const { return good_; }

private:
  template <class Paths, bool Constant = false, class Queue>
  void measure(const std::string& name, const Queue& queue) {
    const micro::memory<half> image_out(s_.sets * voxels_);
    const micro::memory<std::uint8_t> label_out(s_.sets * voxels_);
    micro::check_cuda(cudaMemset(image_out.data(), 0xff, s_.sets * voxels_ * sizeof(half)), "poison");
    micro::check_cuda(cudaMemset(label_out.data(), 0xff, s_.sets * voxels_), "poison");
    const cuda_workspace workspace(1 << 20);
    const cuda exec{.stream = d_.stream, .workspace = workspace};
    const auto with_set = [&](std::size_t k, const auto& use) {
      const auto in = s_.views(s_.images, k);
      const auto seg = s_.views(s_.labels, k);
      const auto out = batch_views(image_out.data() + k * voxels_, std::span(outputs_));
      const auto seg_out = batch_views(label_out.data() + k * voxels_, std::span(outputs_));
      use(plans_[k], suture::image(in, out), suture::labels(seg, seg_out));
    };
    const auto run = [&](std::size_t k) {
      with_set(k, [&](const auto& p, const auto&... bound) {
        queue(checked(exec, layout(p, bound...), p, bound...), p, exec, bound...);
      });
    };
    for (std::size_t k = 0; k < s_.sets; ++k) run(k);
    const auto images = image_out.values();
    const auto labels = label_out.values();
    if (first_images_.empty()) {
      first_images_ = images;
      first_labels_ = labels;
    }
    if (std::memcmp(images.data(), first_images_.data(), images.size() * sizeof(half)) != 0 ||
        labels != first_labels_) {
      d_.note(name_ + name, "wrong: other bits than the kernel as it is");
      good_ = false;
      return;
    }
    std::size_t k = 0;
    const double seconds = d_.seconds_in_graph(static_cast<int>(s_.sets) * (d_.tiny ? 1 : 8), [&] {
      run(k);
      k = (k + 1) % s_.sets;
    });
    d_.say(name_ + name, 1e6 * seconds, "us");
    with_set(0, [&](const auto& p, const auto&... bound) {
      using E = decltype(checked(exec, layout(p, bound...), p, bound...));
      cudaFuncAttributes a{};
      if constexpr (Constant)
        micro::check_cuda(cudaFuncGetAttributes(&a, constant_kernel<E, Paths>), "attributes");
      else
        micro::check_cuda(cudaFuncGetAttributes(&a, fused_kernel<true, E, true, Paths>), "attributes");
      d_.say(name_ + name + ", registers", a.numRegs, "");
      d_.say(name_ + name + ", bytes of stack", static_cast<double>(a.localSizeBytes), "B");
    });
  }

  const micro::device& d_;
  const scene& s_;
  std::string name_;
  using plan_type = decltype(plan(turned_patches(0, 1), std::vector<grid>{}));
  std::vector<plan_type> plans_;
  std::vector<grid> outputs_;
  std::size_t voxels_ = 0;
  std::vector<half> first_images_;
  std::vector<std::uint8_t> first_labels_;
  bool good_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  const micro::device d("walks", argc, argv);
  const scene s({.extents = d.tiny ? extent3{40, 48, 48} : extent3{160, 320, 320}, .spacing = {1.5625, .8, .8}},
                d.tiny ? 1 : 4);
  bool good = true;
  for (const float degrees : {0.0f, 15.0f}) {
    rows r(d, s, degrees, d.tiny ? 16 : 128);
    r.add<cuda_paths>("as it is");
    r.add<path_list<walk<4, 16>>>("plain walk");
    r.add<path_list<walk<3, 16>>>("plain walk, 3 blocks a multiprocessor");
    r.add<path_list<walk<5, 16>>>("plain walk, 5 blocks a multiprocessor");
    r.add<path_list<walk<4, 8>>>("plain walk of 8");
    r.add<path_list<walk<4, 32>>>("plain walk of 32");
    r.add<path_list<walk<4, 16, true>>>("plain walk, label stored last");
    r.add_constant<path_list<walk<4, 16>>>("plain walk, constant bank");
    r.add_constant<path_list<walk<4, 16, true>>>("plain walk, constant bank, label stored last");
    good = good && r.good();
  }
  return good ? 0 : 1;
}
