// SPDX-License-Identifier: Apache-2.0
// The bytes are the numbers of a plan: extents, spacings, strides, and every parameter of some chains, whatever floats
// they are. What is accepted is run, and each voxel must be what the evaluator gives for it alone.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "fuzz.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using fuzz::must_hold;

class numbers {
public:
  numbers(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::uint8_t byte() { return at_ < end_ ? *at_++ : std::uint8_t{0}; }
  // Mostly small, now and then any 64 bits.
  std::int64_t integer() {
    const std::uint8_t how = byte();
    if (how < 0xe0) return how;
    if (how < 0xf0) return -std::int64_t{byte()};
    return static_cast<std::int64_t>(word<std::uint64_t>());
  }
  // A plain number, a special one, or any bits.
  float real() {
    constexpr float special[] = {
        0,     -0.0f,   1,      -1,      .5f,   2,     1e-45f, 1e-38f,
        1e30f, 3.4e38f, -3e38f, 4194304, 1e-6f, 90.0f, -360,   std::numeric_limits<float>::infinity()};
    const std::uint8_t how = byte();
    if (how < 0xc0) return (static_cast<float>(how) - 96) / 16;
    if (how < 0xd0) return special[how & 15];
    if (how < 0xd1) return std::numeric_limits<float>::quiet_NaN();
    if (how < 0xe0) return static_cast<float>(byte()) * 16 - 2048;
    return word<float>();
  }
  double wide() { return static_cast<double>(real()); }
  bool flag() { return (byte() & 1) != 0; }
  template <class Enum>
  Enum choice(int count) {
    return static_cast<Enum>(byte() % count);
  }
  interval range() {
    const float low = real(), high = flag() ? low : real();
    return {low, high};
  }
  point3 point() {
    const double z = wide(), y = wide(), x = wide();
    return {z, y, x};
  }
  extent3 extents() {
    const std::int64_t z = integer(), y = integer(), x = integer();
    return {z, y, x};
  }

private:
  template <class T>
  T word() {
    std::uint8_t raw[sizeof(T)];
    for (auto& each : raw) each = byte();
    T result;
    std::memcpy(&result, raw, sizeof result);
    return result;
  }
  const std::uint8_t *at_, *end_;
};

constexpr std::int64_t most_voxels = 4096;

// Every voxel of a run against the evaluator's.
template <class Chain>
void check_chain(numbers& n, const Chain& operations, std::int64_t channels) {
  grid g{.extents = {1 + n.byte() % 7, 1 + n.byte() % 9, 1 + n.byte() % 40}, .spacing = {1, 1, 1}};
  if (n.flag()) g.extents = n.extents();
  if (n.flag()) g.spacing = n.point();
  if (n.flag()) g.origin = n.point();
  if (n.flag()) g.direction[n.byte() % 3][n.byte() % 3] = n.wide();
  const std::uint64_t id = n.byte();
  const settings s{.seed = n.byte(), .epoch = n.byte(), .sample_ids = {&id, 1}, .evaluation = n.byte() > 250};
  const auto p = plan(operations, std::vector{g}, s);
  using pipeline = typename std::remove_cvref_t<decltype(p)>::pipeline_type;
  using Out = typename pipeline::result_type;
  const grid& to = p.output_grid(0);
  if (g.voxels() > most_voxels || to.voxels() > most_voxels) return;
  const auto voxels = static_cast<std::size_t>(g.voxels() * channels);
  std::vector<std::int16_t> values(voxels);
  for (auto& v : values) v = static_cast<std::int16_t>(n.byte() * 16 - 1024);
  std::vector<std::uint8_t> map(static_cast<std::size_t>(g.voxels()));
  for (auto& v : map) v = static_cast<std::uint8_t>(n.byte() % 4);
  std::vector<Out> out(static_cast<std::size_t>(to.voxels() * channels));
  std::vector<std::uint8_t> map_out(static_cast<std::size_t>(to.voxels()));
  view<const std::int16_t> in = contiguous<const std::int16_t>(values.data(), g, channels);
  // Strides from the bytes are followed where they stay in memory.
  if (n.flag()) {
    for (int k = 0; k < 3; ++k) in.stride[k] = n.integer();
    std::int64_t reach = (channels - 1) * in.channel_stride;
    for (int k = 0; k < 3; ++k) {
      if (in.stride[k] < 0 || in.stride[k] > most_voxels) return;
      reach += (g.extents[k] - 1) * in.stride[k];
    }
    if (reach >= static_cast<std::int64_t>(voxels)) return;
  }
  const auto pair = image(in, contiguous(out.data(), to, channels));
  const auto maps = labels(contiguous<const std::uint8_t>(map.data(), g), contiguous(map_out.data(), to));
  const std::size_t bytes = workspace_bytes(p, pair, maps);
  if (bytes > (std::size_t{1} << 24)) return;
  run(cpu{.threads = 1}, p, pair, maps);

  struct aligned {
    void operator()(std::byte* at) const { ::operator delete (at, std::align_val_t{256}); }
  };
  const std::unique_ptr<std::byte[], aligned> space(
      static_cast<std::byte*>(::operator new (bytes + 1, std::align_val_t{256})));
  const auto evaluate = prepare(cpu{.threads = 1, .workspace = {space.get(), bytes}}, p, pair, maps);
  std::size_t i = 0;
  const auto whole = static_cast<std::size_t>(to.voxels());
  for (std::int32_t z = 0; z < to.extents[0]; ++z)
    for (std::int32_t y = 0; y < to.extents[1]; ++y)
      for (std::int32_t x = 0; x < to.extents[2]; ++x, ++i) {
        for (std::int32_t c = 0; c < channels; ++c) {
          Out alone{};
          if constexpr (pipeline::is_color)
            alone = evaluate(0, z, y, x).c[c];
          else
            alone = evaluate(0, z, y, x, c);
          must_hold(std::memcmp(&alone, &out[static_cast<std::size_t>(c) * whole + i], sizeof alone) == 0,
                    "a run gives what the evaluator gives");
        }
        must_hold(evaluate.template get<1>(0, z, y, x) == map_out[i],
                  "a run gives the labels that the evaluator gives");
      }
}

value_range range_of(numbers& n) {
  const float low = n.real();
  return {low, n.flag() ? low : n.real()};
}

void patches(numbers& n) {
  const auto chain = window{.center = n.real(), .width = n.real(), .low = n.real(), .high = n.real()} |
                     resample{.spacing_mm = n.point(), .map = n.choice<coordinate_map>(5), .extents = n.extents()} |
                     random_affine{.rotate_deg = n.real(),
                                   .scale = {range_of(n), range_of(n), range_of(n)},
                                   .shear = range_of(n),
                                   .translate = n.real(),
                                   .isotropic_scale = n.flag(),
                                   .convention = n.choice<affine_convention>(7)} |
                     random_elastic{.control_spacing_mm = n.wide(),
                                    .max_displacement_mm = n.wide(),
                                    .locked_borders = n.byte() % 4,
                                    .allow_folding = n.flag(),
                                    .control_points = {n.byte() % 9, n.byte() % 9, n.byte() % 9},
                                    .mesh = n.choice<mesh_span>(3),
                                    .limit_to_safe = n.flag()} |
                     crop_or_pad{n.extents()} | sampling<linear, reflect>{} |
                     random_gamma{.range = n.range(), .value_range = n.range()} |
                     gaussian_noise{.sigma = n.range(), .mean = n.real()} | cast<suture::half>{};
  check_chain(n, chain, 2);
}

void splines(numbers& n) {
  matrix3 linear{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (n.flag()) linear[i][j] = n.wide();
  const auto chain = rescale{.slope = n.real(), .intercept = n.real()} | clamp{n.real(), n.real()} |
                     affine_matrix{.linear = linear, .translation = n.point(), .about_center = n.flag()} |
                     pad{.before = n.extents(), .after = n.extents()} |
                     crop{.start = n.extents(), .size = n.extents()} |
                     sampling<cubic_bspline, constant, vote>{.border = {.value = n.real()}, .label_outside = n.byte()} |
                     sigmoid_window{.center = n.real(), .width = n.real(), .low = n.real(), .high = n.real()} |
                     rician_noise{.sigma = n.range(), .mean = n.real()} | cast<std::int16_t>{};
  check_chain(n, chain, 1);
}

void filters(numbers& n) {
  const auto chain =
      random_flip{} | pad_to{n.extents()} | brightness{n.real()} |
      gaussian_blur{.sigma = {n.wide(), n.wide(), n.wide()}, .kernel = n.choice<blur_kernel>(3), .truncate = n.real()} |
      random_patch_contrast{.range = n.range(), .law = n.choice<interval_law>(3), .preserve_range = n.flag()} |
      random_low_resolution{.zoom = n.range(), .pick = n.choice<coarse_pick>(2)} |
      random_patch_gamma{.range = n.range(), .invert = n.flag(), .retain_statistics = n.flag()} |
      random_coarse_shuffle{.holes = {n.byte() % 40, n.byte() % 40}, .size = n.extents(), .max_size = n.extents()} |
      random_gibbs_ringing{.alpha = n.range()} | patch_z_score{.nan = n.real()};
  check_chain(n, chain, 2);
}

void values(numbers& n) {
  const auto chain =
      scale_intensity{.a_min = n.real(), .a_max = n.real(), .b_min = n.real(), .b_max = n.real(), .clip = n.flag()} |
      random_bias_field{.coefficients = n.range(), .degree = n.byte() % 8, .basis = n.choice<bias_basis>(2)} |
      random_histogram_shift{.control_points = {n.byte(), n.byte()}, .value_range = n.range()} |
      random_coarse_dropout{.holes = {n.byte() % 40, n.byte() % 40},
                            .size = n.extents(),
                            .max_size = n.extents(),
                            .fill = n.range(),
                            .keep_holes = n.flag(),
                            .may_leave = n.flag()} |
      poisson_noise{.counts = n.range(), .law = n.choice<interval_law>(3)} | invert{n.real()} |
      contrast{.factor = n.real(), .pivot = n.real()} | suture::gamma{.exponent = n.real(), .range = n.range()};
  check_chain(n, chain, 1);
}

void colors(numbers& n) {
  const auto chain = random_hed_jitter{} | random_rot90{.max_quarter_turns = n.byte() % 5} |
                     random_scale{.range = n.range(), .law = n.choice<interval_law>(3)} |
                     sampling<catmull_rom, mirror, majority>{} |
                     random_color_jitter{.brightness = n.range(),
                                         .contrast = n.range(),
                                         .saturation = n.range(),
                                         .hue = n.range(),
                                         .pivot = n.real(),
                                         .random_order = n.flag(),
                                         .white = n.real()} |
                     random_hsv_jitter{.hue = n.range(), .saturation = n.range(), .value = n.range()} |
                     stain_jitter{.alpha = {n.real(), n.real()}, .beta = {n.real(), n.real()}, .white = n.real()} |
                     cast<std::uint8_t>{};
  check_chain(n, chain, 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  numbers n(data, size);
  fuzz::accepted([&] {
    switch (n.byte() % 5) {
      case 0:
        return patches(n);
      case 1:
        return splines(n);
      case 2:
        return filters(n);
      case 3:
        return values(n);
      default:
        return colors(n);
    }
  });
  return 0;
}
