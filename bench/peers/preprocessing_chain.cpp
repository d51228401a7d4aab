// SPDX-License-Identifier: Apache-2.0
// What is done to a CT before training, on one thread, for comparison with peers that run beside it on the same voxels.
//   preprocessing_chain IMAGE LABELS NZ NY NX
// IMAGE and LABELS are raw int16 and uint8 voxels. Reads commands, one a line, and answers each in one line of JSON:
//   time N        runs every step N times: seconds of the wall clock and of the processor for each
//   write PREFIX  the results: numbers as the answer, volumes as PREFIX.body (uint8), PREFIX.scaled, PREFIX.z_score and
//                 PREFIX.resampled (float32)
#include <memory>

#include "program.hpp"
#include "suture/suture.hpp"

namespace {

const suture::cpu one_thread{.threads = 1};

struct preprocessing {
  suture::grid grid;
  std::vector<std::int16_t> image_data;
  std::vector<std::uint8_t> label_data, body_data;
  std::vector<float> scaled_data, z_score_data, resampled_data;

  std::vector<std::byte> memory;
  suture::cpu with_workspace = one_thread;

  suture::moments foreground{};
  suture::percentiles<3> foreground_percentiles{};
  suture::largest_component_result component{};
  suture::bounding_box_result box{};
  suture::threshold otsu{};
  suture::intensity_range range{};
  suture::moments inside_body{};

  explicit preprocessing(const suture::grid& g, const char* image_file, const char* label_file)
      : grid(g),
        image_data(peers::read_raw<std::int16_t>(image_file, g.voxels())),
        label_data(peers::read_raw<std::uint8_t>(label_file, g.voxels())),
        body_data(image_data.size()),
        scaled_data(image_data.size()),
        z_score_data(image_data.size()),
        memory(std::max(suture::workspace_bytes(suture::mask_work::body_mask{}, image()),
                        suture::workspace_bytes(suture::mask_work::bounding_box{}, image())) +
               256) {
    void* start = memory.data();
    std::size_t space = memory.size();
    std::align(256, space - 256, start, space);
    with_workspace.workspace = {static_cast<std::byte*>(start), space};
  }

  suture::view<const std::int16_t> image() const { return suture::contiguous(image_data.data(), grid); }
  suture::view<const std::uint8_t> labels() const { return suture::contiguous(label_data.data(), grid); }
  suture::view<std::uint8_t> body() { return suture::contiguous(body_data.data(), grid); }

  template <class Operation>
  void apply(const Operation& operation, std::vector<float>& out) {
    const auto plan = suture::plan(operation | suture::cast<float>{}, std::span(&grid, 1), {.evaluation = true});
    suture::run(one_thread, plan, suture::image(image(), suture::contiguous(out.data(), grid)));
  }

  // In this order: later steps read what earlier ones leave.
  std::vector<std::pair<const char*, std::function<void()>>> steps() {
    return {
        {"fingerprint",
         [this] {
           suture::histogram<std::int16_t> counts;
           counts.add(one_thread, image(), suture::inside(labels()));
           foreground = counts.moments();
           foreground_percentiles = counts.percentiles({.5, 50, 99.5});
         }},
        {"body_mask",
         [this] {
           suture::body_mask(with_workspace, image(), body(), {&component, 1}, {.opening_radius = 1});
         }},
        {"bounding_box",
         [this] {
           suture::bounding_box(with_workspace, body(), {&box, 1});
         }},
        {"otsu",
         [this] { suture::fit(one_thread, suture::fit_otsu{}, image(), suture::everything{}, std::span(&otsu, 1)); }},
        {"percentile_scale",
         [this] {
           suture::fit(one_thread, suture::fit_range{.lower = .5, .upper = 99.5}, image(), suture::everything{},
                       std::span(&range, 1));
           apply(suture::percentile_scale{.fitted = {&range, 1}}, scaled_data);
         }},
        {"z_score",
         [this] {
           const auto mask = body();
           suture::fit(one_thread, suture::fit_moments{}, image(), suture::inside(mask), std::span(&inside_body, 1));
           apply(suture::z_score{.fitted = {&inside_body, 1}}, z_score_data);
         }},
        {"resample", [this] { resample(); }}};
  }

  // By a cubic B-spline, without overshoot.
  void resample() {
    suture::intensity_range whole{};
    suture::fit(one_thread, suture::fit_range{}, image(), suture::everything{}, std::span(&whole, 1));
    const suture::extent3& n = grid.extents;
    const auto pipeline = suture::resize{{n[0] * 3 / 2, n[1] * 4 / 5, n[2] * 4 / 5}} |
                          suture::sampling<suture::cubic_bspline, suture::edge>{} | suture::limit_to_range{{&whole, 1}};
    const auto plan = suture::plan(pipeline, grid);
    resampled_data.resize(static_cast<std::size_t>(plan.output_grid(0).voxels()));
    suture::run(one_thread, plan,
                suture::image(image(), suture::contiguous(resampled_data.data(), plan.output_grid(0))));
  }
};

void print_moments(const char* name, const suture::moments& m) {
  std::cout << '"' << name << "\": ";
  peers::print_list(std::vector<double>{m.mean, m.standard_deviation, m.minimum, m.maximum});
  std::cout << ", ";
}

void serve(char** argv) {
  preprocessing p(peers::read_extents(argv + 3), argv[1], argv[2]);
  std::cout.precision(17);
  const auto steps = p.steps();
  const auto time = [&](std::istream& arguments) {
    int runs = 0;
    arguments >> runs;
    std::vector<peers::stopwatch> clocks(steps.size());
    for (int i = 0; i < runs; ++i)
      for (std::size_t k = 0; k < steps.size(); ++k) clocks[k].time(steps[k].second);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      std::cout << (k == 0 ? "{\"" : ", \"") << steps[k].first << "\": ";
      clocks[k].print();
    }
    std::cout << '}';
  };
  const auto write = [&](std::istream& arguments) {
    std::string prefix;
    arguments >> prefix;
    for (const auto& step : steps) step.second();
    peers::write_raw(prefix + ".body", p.body_data);
    peers::write_raw(prefix + ".scaled", p.scaled_data);
    peers::write_raw(prefix + ".z_score", p.z_score_data);
    peers::write_raw(prefix + ".resampled", p.resampled_data);
    std::cout << '{';
    print_moments("foreground", p.foreground);
    print_moments("inside_body", p.inside_body);
    std::cout << "\"foreground_percentiles\": ";
    peers::print_list(p.foreground_percentiles.value);
    std::cout << ", \"range\": ";
    peers::print_list(std::vector<double>{p.range.low, p.range.high});
    std::cout << ", \"box\": ";
    peers::print_list(
        std::vector<int>{p.box.first[0], p.box.first[1], p.box.first[2], p.box.last[0], p.box.last[1], p.box.last[2]});
    std::cout << ", \"otsu\": " << p.otsu.value << '}';
  };
  peers::serve({{"time", time}, {"write", write}});
}

}  // namespace

int main(int argc, char** argv) {
  return peers::run_program(argc, argv, "preprocessing_chain IMAGE LABELS NZ NY NX", serve);
}
