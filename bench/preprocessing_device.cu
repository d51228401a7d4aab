// SPDX-License-Identifier: Apache-2.0
// Fits, masks and patches of one CT of 800 x 512 x 512 int16 voxels on the device, each a captured graph.
//   preprocessing_device [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
// bytes: what the kernels of a step read and write, each byte once a kernel; passes: that over the bytes of the volume.
// They are counted from the extents every kernel walks over and from the runs of the masks, not measured. launches are
// the nodes of the graph, workspace is in bytes. Without a device, and without --tiny under an emulator, there is
// nothing to measure.
#include <benchmark/benchmark.h>

#include <functional>

#include "cuda_machine.cuh"
#include "flag.hpp"

// After the executor it runs on.
#include "ct_volume.hpp"

namespace {

using namespace suture;

template <class T>
class device_memory {
public:
  explicit device_memory(std::size_t n) { check_cuda(cudaMalloc(&data_, n * sizeof(T) + 1), "device_memory"); }
  explicit device_memory(const std::vector<T>& values) : device_memory(values.size()) {
    check_cuda(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "device_memory");
  }
  device_memory(const device_memory&) = delete;
  ~device_memory() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }

private:
  void* data_ = nullptr;
};

// Maximal runs of one value along x: of set voxels, and of the rest.
struct run_counts {
  double set = 0, unset = 0;
};
template <class IsSet>
run_counts count_runs(const grid& g, const IsSet& is_set) {
  run_counts runs;
  for (std::int64_t v = 0; v < g.voxels(); ++v) {
    const bool here = is_set(v);
    if (v % g.extents[2] == 0 || here != is_set(v - 1)) ++(here ? runs.set : runs.unset);
  }
  return runs;
}

struct scene {
  bench::ct_volume ct;
  device_memory<std::int16_t> image;
  device_memory<std::uint8_t> labels, mask, out;
  device_memory<std::int32_t> numbers;
  cudaStream_t stream = nullptr;
  double copy_bandwidth = 1;    // bytes/s
  double volume, voxels, bits;  // bytes of the image, its voxels, bytes of one packed volume
  run_counts body, bone;

  explicit scene(const grid& g)
      : ct(bench::make_ct_volume(g)),
        image(ct.image),
        labels(ct.labels),
        mask(ct.image.size()),
        out(ct.image.size()),
        numbers(ct.image.size()),
        volume(2 * static_cast<double>(g.voxels())),
        voxels(static_cast<double>(g.voxels())),
        bits(static_cast<double>(g.extents[0] * g.extents[1] * ((g.extents[2] + 63) / 64) * 8)),
        body(count_runs(g, [&](std::int64_t v) { return ct.image[static_cast<std::size_t>(v)] > -300; })),
        bone(count_runs(g, [&](std::int64_t v) { return ct.image[static_cast<std::size_t>(v)] > 200; })) {
    check_cuda(cudaStreamCreate(&stream), "stream");
    std::vector<std::uint8_t> bones(ct.image.size());
    for (std::size_t i = 0; i < bones.size(); ++i) bones[i] = ct.image[i] > 200;
    check_cuda(cudaMemcpy(mask.data(), bones.data(), bones.size(), cudaMemcpyHostToDevice), "scene");
  }
  view<const std::int16_t> image_view() const { return contiguous<const std::int16_t>(image.data(), ct.grid); }
  view<const std::uint8_t> label_view() const { return contiguous<const std::uint8_t>(labels.data(), ct.grid); }
  view<const std::uint8_t> mask_view() const { return contiguous<const std::uint8_t>(mask.data(), ct.grid); }
  view<std::uint8_t> out_view() const { return contiguous(out.data(), ct.grid); }
};

using work = std::function<void(const cuda&)>;

void measure(benchmark::State& state, const scene& s, std::size_t workspace_bytes, double bytes, const work& step) {
  const cuda_workspace workspace(std::max<std::size_t>(workspace_bytes, 256));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  check_cuda(cudaEventCreate(&begin), "event");
  check_cuda(cudaEventCreate(&end), "event");
  check_cuda(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal), "capture");
  step(cuda{.stream = s.stream, .workspace = workspace});
  check_cuda(cudaStreamEndCapture(s.stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&ready, graph, 0), "graph");
  std::size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "graph");
  for (auto _ : state) {
    check_cuda(cudaEventRecord(begin, s.stream), "event");
    check_cuda(cudaGraphLaunch(ready, s.stream), "graph");
    check_cuda(cudaEventRecord(end, s.stream), "event");
    check_cuda(cudaEventSynchronize(end), "event");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    state.SetIterationTime(1e-3 * static_cast<double>(milliseconds));
  }
  state.counters["bytes"] = bytes;
  state.counters["bytes/s"] =
      benchmark::Counter(bytes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["pct_copy"] = benchmark::Counter(
      100 * bytes / s.copy_bandwidth * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["passes"] = bytes / s.volume;
  state.counters["launches"] = static_cast<double>(nodes);
  state.counters["workspace"] = static_cast<double>(workspace_bytes);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

void add_row(const scene& s, const std::string& name, std::size_t workspace, double bytes, const work& step) {
  benchmark::RegisterBenchmark(
      name.c_str(),
      [&s, workspace, bytes, step](benchmark::State& state) { measure(state, s, workspace, bytes, step); })
      ->Unit(benchmark::kMicrosecond)
      ->UseManualTime();
}

// Counters of an int16 histogram are cleared, counted into and read: each once.
constexpr double histogram_bytes = 3 * sizeof(histogram_counts<std::int16_t>);

template <class Fit, class Selection>
void add_fit(const scene& s, const char* name, const Fit& how, const Selection& selection, double mask_bytes) {
  const auto result = std::make_shared<device_memory<typename Fit::result>>(1);
  add_row(s, name, workspace_bytes(how, s.image_view()), s.volume + mask_bytes + histogram_bytes,
          [&s, how, selection, result](const cuda& exec) {
            fit(exec, how, s.image_view(), selection, std::span(result->data(), 1));
          });
}

// What finding components touches of a run: its parent as it is planted, read and written as it is united, read as it
// is measured and chosen; its size cleared, summed and read.
constexpr double component_run = 4 * (1 + 2 + 1 + 1 + 1) + 4 * (1 + 2 + 1);
constexpr double background_run = 4 * (1 + 2 + 1);  // planted, united, looked up

void add_masks(const scene& s) {
  const double written = s.voxels;  // a mask of one byte a voxel
  const auto largest = std::make_shared<device_memory<largest_component_result>>(1);
  const auto box = std::make_shared<device_memory<bounding_box_result>>(1);
  const auto count = std::make_shared<device_memory<std::uint32_t>>(1);
  // Packed volumes touched: packed 1; eroded and dilated 2 each; planted, united, measured, searched 1 each, kept 2;
  // planted and united 1 each, closed 2; unpacked 1.
  for (const std::int64_t radius : {0, 1})
    add_row(s, radius == 0 ? "body_mask" : "body_mask/opening", workspace_bytes(mask_work::body_mask{}, s.image_view()),
            s.volume + written + (radius == 0 ? 12 : 16) * s.bits + component_run * s.body.set +
                background_run * s.body.unset,
            [&s, radius, largest](const cuda& exec) {
              body_mask(exec, s.image_view(), s.out_view(), {largest->data(), 1}, {.opening_radius = radius});
            });
  add_row(s, "keep_largest_component", workspace_bytes(mask_work::keep_largest_component{}, s.mask_view()),
          s.voxels + written + 8 * s.bits + component_run * s.bone.set, [&s, largest](const cuda& exec) {
            keep_largest_component(exec, s.mask_view(), s.out_view(), connectivity::faces, {largest->data(), 1});
          });
  // Packed, planted, united, flattened, counted, numbered, written; of a run the parent eight times, the number twice.
  add_row(s, "label_components", workspace_bytes(mask_work::label_components{}, s.mask_view()),
          s.voxels + 4 * s.voxels + 7 * s.bits + 40 * s.bone.set, [&s, count](const cuda& exec) {
            label_components(exec, s.mask_view(), contiguous(s.numbers.data(), s.ct.grid), connectivity::faces,
                             {count->data(), 1});
          });
  add_row(s, "fill_holes/slices", workspace_bytes(mask_work::fill_holes{}, s.mask_view()),
          s.voxels + written + 6 * s.bits + background_run * s.bone.unset,
          [&s](const cuda& exec) { fill_holes(exec, s.mask_view(), s.out_view(), hole_filling::slices); });
  add_row(s, "binary_opening/cross1", workspace_bytes(mask_work::binary_opening{}, s.mask_view()),
          s.voxels + written + 6 * s.bits,
          [&s](const cuda& exec) { binary_opening(exec, s.mask_view(), s.out_view()); });
  add_row(s, "bounding_box", workspace_bytes(mask_work::bounding_box{}, s.image_view()), s.volume + 2 * s.bits,
          [&s, box](const cuda& exec) {
            bounding_box(exec, s.image_view(), {box->data(), 1}, -300);
          });
}

void add_patches(const scene& s) {
  const auto classes = label_classes(s.label_view(), 3);
  const std::size_t table_bytes = class_counts_bytes(classes);
  const auto table = std::make_shared<device_memory<std::byte>>(table_bytes);
  add_row(s, "count_classes", 0, s.voxels + static_cast<double>(table_bytes),
          [&s, table, table_bytes](const cuda& exec) {
            count_classes(exec, label_classes(s.label_view(), 3), std::span(table->data(), table_bytes));
          });
  extent3 size{96, 96, 96};
  for (int k = 0; k < 3; ++k) size[k] = std::min(size[k], s.ct.grid.extents[k]);
  const patch_grid g = sliding_window_grid(s.ct.grid.extents, size);
  const std::int64_t patch = size[0] * size[1] * size[2];
  // The first planes of the volume alone, whose patches fit in memory.
  const grid slab{.extents = {size[0], s.ct.grid.extents[1], s.ct.grid.extents[2]}};
  std::int64_t needed = 0;
  while (needed < g.count() && g.start(needed)[0] < size[0]) ++needed;
  const auto patches = std::make_shared<device_memory<suture::half>>(static_cast<std::size_t>(needed * patch));
  check_cuda(cudaMemset(patches->data(), 0, static_cast<std::size_t>(needed * patch) * sizeof(suture::half)),
             "patches");
  const auto out = std::make_shared<device_memory<float>>(static_cast<std::size_t>(slab.voxels()));
  add_row(s, "reassemble", workspace_bytes(g),
          2 * static_cast<double>(needed * patch) + 4 * static_cast<double>(slab.voxels()),
          [g, size, slab, patches, out, needed](const cuda& exec) {
            reassemble(exec, g, sliding_window_gaussian(size),
                       patch_tensor<suture::half>{patches->data(), 1, 0, needed}, contiguous(out->data(), slab));
          });
}

}  // namespace

int main(int argc, char** argv) {
  const bool tiny = bench::take_flag(argc, argv, "--tiny");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  cudaDeviceProp device{};
  if (!bench::find_device(device, tiny)) return 0;
  bench::cuda_machine machine(device, tiny ? 0 : 0.2);
  scene s({.extents = tiny ? extent3{12, 40, 70} : extent3{800, 512, 512}, .spacing = {1, .8, .8}});
  s.copy_bandwidth = machine.copy_bandwidth();
  const std::vector<view<const std::uint8_t>> labels{s.label_view()};
  add_fit(s, "fingerprint/int16", fit_histogram<std::int16_t>{}, inside(labels), s.voxels);
  add_fit(s, "moments/int16", fit_moments{}, everything{}, 0);
  add_fit(s, "percentiles/int16", fit_percentiles<3>{{.5, 50, 99.5}}, everything{}, 0);
  add_fit(s, "otsu/int16", fit_otsu{}, everything{}, 0);
  add_masks(s);
  add_patches(s);
  bench::add_context(device, machine);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
