// SPDX-License-Identifier: Apache-2.0
// Statistics and masks of a volume given as .npy files, for statistics_and_masks.py to compare with other libraries.
//   statistics_and_masks TYPE IMAGE MASK PREFIX
//   statistics_and_masks rgb PICTURE PREFIX
// TYPE is uint8, int16 or float32; MASK is uint8; PICTURE is (row, column, channel) of uint8. Prints numbers as JSON
// and writes masks (uint8) and labels (int32) as raw voxels to PREFIX.name.
#include <iostream>
#include <string>

#include "support/npy.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

struct output {
  std::string prefix;
  bool first = true;

  std::ostream& name(const char* key) {
    std::cout << (first ? "{" : ", ") << '"' << key << "\": ";
    first = false;
    return std::cout;
  }
  template <class Range>
  void list(const char* key, const Range& values) {
    const char* before = "[";
    name(key);
    for (const auto& v : values) std::cout << std::exchange(before, ", ") << v;
    std::cout << ']';
  }
  template <class T>
  void file(const char* key, const std::vector<T>& voxels) const {
    std::ofstream stream(prefix + "." + key, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(voxels.data()), static_cast<std::streamsize>(voxels.size() * sizeof(T)));
    require(stream.good(), {"statistics_and_masks"}, "cannot write ", prefix, ".", key);
  }
};

template <class T>
void report(const support::array<T>& image_file, const support::array<std::uint8_t>& mask_file, output out) {
  const grid g{.extents = {image_file.shape.at(0), image_file.shape.at(1), image_file.shape.at(2)}};
  const auto image = contiguous(image_file.values.data(), g);
  const auto mask = contiguous(mask_file.values.data(), g);
  const cpu exec{};

  moments m{};
  fit(exec, fit_moments{}, image, inside(mask), std::span(&m, 1));
  out.list("moments",
           std::vector<double>{static_cast<double>(m.tally.count), m.mean, m.standard_deviation, m.minimum, m.maximum});
  percentiles<6> p{};
  fit(exec, fit_percentiles<6>{{0, .5, 25, 50, 99.5, 100}}, image, inside(mask), std::span(&p, 1));
  out.list("percentiles", p.value);
  threshold t{};
  fit(exec, fit_otsu{}, image, everything{}, std::span(&t, 1));
  out.name("otsu") << t.value;
  bounding_box_result box{};
  bounding_box(exec, mask, {&box, 1});
  out.list("box", std::vector<int>{box.first[0], box.first[1], box.first[2], box.last[0], box.last[1], box.last[2]});

  std::vector<std::uint8_t> result(mask_file.values.size());
  const auto to = contiguous(result.data(), g);
  const auto write = [&](const char* key, const auto& operation) {
    operation();
    out.file(key, result);
  };
  std::vector<std::int32_t> labels(result.size());
  std::vector<std::uint32_t> counts;
  for (const auto touching : {connectivity::faces, connectivity::edges, connectivity::corners}) {
    label_components(exec, mask, contiguous(labels.data(), g), touching, {&counts.emplace_back(), 1});
    out.file(("labels" + std::to_string(static_cast<int>(touching))).c_str(), labels);
  }
  out.list("components", counts);
  largest_component_result largest{};
  write("largest", [&] { keep_largest_component(exec, mask, to, connectivity::faces, {&largest, 1}); });
  out.name("largest") << largest.voxels;
  write("not_small", [&] { remove_small_components(exec, mask, to, connectivity::corners, 5); });
  write("filled", [&] { fill_holes(exec, mask, to); });
  write("filled_slices", [&] { fill_holes(exec, mask, to, hole_filling::slices); });
  const structuring_element box_element{element_shape::box, {1, 2, 1}}, ball{element_shape::ball, {2, 2, 2}};
  write("eroded", [&] { binary_erosion(exec, mask, to, {}, true); });
  write("dilated", [&] { binary_dilation(exec, mask, to, box_element); });
  write("opened", [&] { binary_opening(exec, mask, to); });
  write("closed", [&] { binary_closing(exec, mask, to, ball); });
  write("body", [&] { body_mask(exec, image, to, {&largest, 1}, {.threshold = 10, .opening_radius = 1}); });
  std::cout << '}' << std::endl;
}

void report_tissue(const support::array<std::uint8_t>& picture, output out) {
  const grid g{.extents = {1, picture.shape.at(0), picture.shape.at(1)}};
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(g.voxels()));
  const auto write = [&](const char* key, const tissue_mask_options& options) {
    tissue_mask_result result{};
    tissue_mask(cpu{}, channels_last(picture.values.data(), g, 3), contiguous(mask.data(), g), {&result, 1}, options);
    out.file(key, mask);
    out.name(key) << result.threshold;
  };
  write("gray", {.rule = tissue_rule::gray});
  write("saturation", {.rule = tissue_rule::saturation});
  write("luminosity", {.rule = tissue_rule::luminosity});
  write("cleaned", {.rule = tissue_rule::gray, .least_size = 30, .dilation_radius = 3});
  std::cout << '}' << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string type = argc > 1 ? argv[1] : "";
  if (argc != (type == "rgb" ? 4 : 5)) {
    std::cerr << "statistics_and_masks TYPE IMAGE MASK PREFIX, or rgb PICTURE PREFIX\n";
    return 2;
  }
  if (type == "rgb") {
    report_tissue(support::read_npy<std::uint8_t>(argv[2]), {argv[3]});
    return 0;
  }
  const auto mask = support::read_npy<std::uint8_t>(argv[3]);
  std::cout.precision(17);
  if (type == "uint8")
    report(support::read_npy<std::uint8_t>(argv[2]), mask, {argv[4]});
  else if (type == "int16")
    report(support::read_npy<std::int16_t>(argv[2]), mask, {argv[4]});
  else
    report(support::read_npy<float>(argv[2]), mask, {argv[4]});
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
