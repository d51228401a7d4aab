// SPDX-License-Identifier: Apache-2.0
// One operation of a published recipe, for recipe_operations.py to compare with the library it comes from.
//   recipe_operations plan OPERATION IMAGE SEED             prints the plan of a sample as JSON
//   recipe_operations run OPERATION IMAGE PLAN PREFIX       its result by that plan, edited or not, to PREFIX.image
//   recipe_operations run spatial IMAGE PLAN PREFIX LABELS  and of an int16 label map, to PREFIX.labels
// IMAGE is a float32 .npy file (channel, z, y, x); results are raw voxels.
#include <fstream>
#include <iostream>
#include <string>

#include "support/npy.hpp"
#include "suture/recipe/nnunet.hpp"
#include "suture/replay/json.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

constexpr auto mixture = interval_law::mixture;
constexpr auto nnunet = affine_convention::nnunet;

template <class T>
void write(const std::string& path, const std::vector<T>& voxels) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(voxels.data()), static_cast<std::streamsize>(voxels.size() * sizeof(T)));
  require(stream.good(), {"recipe_operations"}, "cannot write ", path);
}

struct job {
  bool runs;
  support::array<float> image;
  std::uint64_t seed;
  std::string plan, prefix, labels;

  template <class Pipeline>
  void operator()(const Pipeline& pipeline) const {
    const auto& shape = image.shape;
    const grid g{.extents = {shape.at(1), shape.at(2), shape.at(3)}};
    const auto in = contiguous(image.values.data(), g, shape.at(0));
    if (!runs) {
      const std::uint64_t id = 1;
      std::cout << to_json(suture::plan(pipeline, std::span(&g, 1), {.seed = seed, .sample_ids = {&id, 1}})) << '\n';
      return;
    }
    std::ifstream file(plan);
    const auto planned = plan_from_json(pipeline, nlohmann::ordered_json::parse(file));
    const grid to = planned.output_grid(0);
    std::vector<float> out(static_cast<std::size_t>(shape.at(0) * to.voxels()));
    const auto target = contiguous(out.data(), to, shape.at(0));
    if (labels.empty()) {
      run(cpu{}, planned, suture::image(in, target));
    } else {
      const auto map = support::read_npy<std::int16_t>(labels);
      std::vector<std::int16_t> labeled(static_cast<std::size_t>(to.voxels()));
      run(cpu{}, planned, suture::image(in, target),
          suture::labels(contiguous(map.values.data(), g), contiguous(labeled.data(), to)));
      write(prefix + ".labels", labeled);
    }
    write(prefix + ".image", out);
  }
};

void choose(const std::string& operation, const job& j) {
  const extent3 n{j.image.shape.at(1), j.image.shape.at(2), j.image.shape.at(3)};
  if (operation == "spatial") {
    const extent3 patch{n[0] * 2 / 3, n[1] * 2 / 3, n[2] * 2 / 3};
    j(random_affine{.rotate_deg = 30, .convention = nnunet} | random_scale{.range = {.7f, 1.4f}, .convention = nnunet} |
      center_crop{patch} | sampling<linear, constant, vote>{.label_outside = -1});
  } else if (operation == "blur") {
    j(random_gaussian_blur{.kernel = blur_kernel::nnunet, .channel_probability = .7f} | cast<float>{});
  } else if (operation == "brightness") {
    j(per_channel(random_brightness_factor{.law = mixture}) | cast<float>{});
  } else if (operation == "contrast") {
    j(random_patch_contrast{.law = mixture} | cast<float>{});
  } else if (operation == "low_resolution") {
    j(random_low_resolution{.channel_probability = .7f} | cast<float>{});
  } else if (operation == "gamma") {
    j(random_patch_gamma{.law = mixture} | cast<float>{});
  } else if (operation == "inverted_gamma") {
    j(random_patch_gamma{.law = mixture, .invert = true} | cast<float>{});
  } else if (operation == "bias_field") {
    j(random_bias_field{.coefficients = {-.3f, .3f}} | cast<float>{});
  } else if (operation == "gibbs") {
    j(random_gibbs_ringing{} | cast<float>{});
  } else if (operation == "spike") {
    j(random_kspace_spike{.intensity = {9, 11}, .relative = false} | cast<float>{});
  } else if (operation == "sharpen") {
    j(random_sharpen{.kernel = blur_kernel::monai} | cast<float>{});
  } else {
    fail(site{"recipe_operations"}, "there is no operation " + operation);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> a(argv + 1, argv + argc);
    const bool runs = !a.empty() && a[0] == "run";
    suture::require(a.size() == (runs ? 5u : 4u) || (runs && a.size() == 6), {"recipe_operations"},
                    "takes plan OPERATION IMAGE SEED or run OPERATION IMAGE PLAN PREFIX [LABELS]");
    choose(a[1], {runs, support::read_npy<float>(a[2]), runs ? 0 : std::stoull(a[3]), runs ? a[3] : "",
                  runs ? a[4] : "", a.size() == 6 ? a[5] : ""});
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
