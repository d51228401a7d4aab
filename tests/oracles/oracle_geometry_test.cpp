// SPDX-License-Identifier: Apache-2.0
// Sampling and geometry of the library against SciPy, scikit-image, torch, MONAI, ITK and nibabel. Values agree within
// 1e-5 (linear) and 3e-5 (cubic) of the range of the image; labels and nearest are equal away from ties.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ref/sample.hpp"
#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "suture/ops/geometry/orient.hpp"
#include "suture/ops/geometry/pad.hpp"
#include "suture/ops/value/clamp.hpp"

namespace {

using nlohmann::json;
using reference::interpolation;
using reference::outside;
using reference::size3;
using support::expect_close;
using support::oracle_case;
using support::range_of;

// Calls f with the library's interpolation.
template <class F>
void with_interpolation(interpolation how, F&& f) {
  switch (how) {
    case interpolation::nearest:
      return f(suture::nearest{});
    case interpolation::nearest_even:
      return f(suture::nearest_half_even{});
    case interpolation::linear:
      return f(suture::linear{});
    case interpolation::catmull_rom:
      return f(suture::catmull_rom{});
    case interpolation::torch_cubic:
      return f(suture::torch_cubic{});
    case interpolation::bspline:
      return f(suture::cubic_bspline{});
  }
}

// Calls f with the library's border that follows the rule.
template <class F>
void with_border(outside rule, double constant, F&& f) {
  const auto value = static_cast<float>(constant);
  switch (rule) {
    case outside::edge:
    case outside::clamp_coordinate:
      return f(suture::edge{});
    case outside::reflect:
    case outside::torch_reflect_faces:
      return f(suture::reflect{});
    case outside::mirror:
    case outside::torch_reflect_centers:
      return f(suture::mirror{});
    case outside::wrap:
      return f(suture::wrap{});
    case outside::blend_constant:
      return f(suture::constant{value});
    case outside::half_voxel_constant:
      return f(suture::default_value{value, suture::image_rim::faces});
    case outside::scipy_constant:
      return f(suture::default_value{value, suture::image_rim::centers});
  }
}

double tolerance(interpolation how, double range) {
  if (how == interpolation::nearest || how == interpolation::nearest_even) return 0;
  return (how == interpolation::linear ? 1e-5 : 3e-5) * range;
}

std::vector<float> sampled(const support::any_geometry& geometry, const std::vector<float>& x, const suture::grid& g,
                           const reference::sampling& s) {
  std::vector<float> y;
  with_interpolation(s.how, [&]<class I>(I) {
    with_border(s.rule, s.constant, [&]<class B>(const B& border) {
      y = support::image_result<float>(geometry | suture::sampling<I, B>{.border = border}, x, g);
    });
  });
  return y;
}

// 1 but where a coordinate is so near to where SciPy's result jumps that rounding decides.
std::vector<double> clear_of_rounding(const size3& in, const size3& out, const reference::affine& pull,
                                      const reference::sampling& s) {
  const double rim = s.rule == outside::scipy_constant ? 0 : 100;
  return support::away_from_ties(in, out, pull, 1e-6, s.how == interpolation::nearest, rim, true);
}

bool is_label_map(const oracle_case& c) { return c.input_type("x") == "|u1" && c.params.at("order") == 0; }

SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithScipyAffineTransform,
                   support::calls("scipy.ndimage.affine_transform", [](const oracle_case& c) {
                     return support::is_known_order(c.params) && !is_label_map(c);
                   })) {
  const auto x = c.input<float>("x");
  const size3 in = support::size_from(x.shape);
  const auto size = c.params.at("output_shape").get<size3>();
  const reference::affine pull = support::scipy_pull(c.params);
  const reference::sampling s = support::scipy_sampling(c.params);
  const std::vector<double> mask = clear_of_rounding(in, size, pull, s);
  expect_close(sampled(support::geometry_of(pull, size), x.values, support::voxel_grid(in), s),
               c.output<double>("y").values, tolerance(s.how, range_of(x.values)), mask);
}

SUTURE_ORACLE_TEST(OracleGeometry, MovesLabelsAsScipyDoes,
                   support::calls("scipy.ndimage.affine_transform", is_label_map)) {
  const auto x = c.input<std::uint8_t>("x");
  const size3 in = support::size_from(x.shape);
  const auto size = c.params.at("output_shape").get<size3>();
  const reference::affine pull = support::scipy_pull(c.params);
  const reference::sampling s = support::scipy_sampling(c.params);
  const std::vector<double> mask = clear_of_rounding(in, size, pull, s);
  std::vector<std::uint8_t> y;
  with_border(s.rule, s.constant, [&]<class B>(const B& border) {
    const suture::sampling<suture::linear, B> sampling{.border = border,
                                                       .label_outside = static_cast<std::int32_t>(s.constant)};
    y = support::label_result(support::geometry_of(pull, size) | sampling, x.values, support::voxel_grid(in));
  });
  expect_close(y, c.output<double>("y").values, 0, mask);
}

// Scattered points: each is a sample of its own, a grid of one voxel, read from the same image placed so that this
// voxel falls on the point.
SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithScipyMapCoordinates,
                   support::calls("scipy.ndimage.map_coordinates", [](const oracle_case& c) {
                     return c.inputs.contains("coords") && support::is_known_order(c.params) && !c.has("mode", "wrap");
                   })) {
  const auto x = c.input<float>("x");
  const size3 in = support::size_from(x.shape);
  const reference::sampling s = support::scipy_sampling(c.params);
  const std::vector<double> coords = c.input<double>("coords").values;
  const std::vector<double> expected = c.output<double>("y").values;
  const std::size_t n = expected.size();
  // Coefficients are made anew for every sample, so a part of the points will do.
  const std::size_t stride = s.how == interpolation::bspline ? 20 : 1;
  std::vector<double> part;
  std::vector<suture::view<const float>> sources;
  for (std::size_t i = 0; i < n; i += stride) {
    suture::grid g = support::voxel_grid(in);
    for (int k = 0; k < 3; ++k) g.origin[k] = -coords[static_cast<std::size_t>(k) * n + i];
    sources.push_back(suture::contiguous(x.values.data(), g));
    part.push_back(expected[i]);
  }
  std::vector<float> y(part.size());
  const suture::grid one{};
  std::vector<suture::view<float>> targets;
  for (float& value : y) targets.push_back(suture::contiguous(&value, one));
  with_interpolation(s.how, [&]<class I>(I) {
    with_border(s.rule, s.constant, [&]<class B>(const B& border) {
      const auto plan = suture::plan(support::geometry_to(one) | suture::sampling<I, B>{.border = border}, sources);
      suture::run(suture::cpu{}, plan, suture::image(sources, targets));
    });
  });
  expect_close(y, part, tolerance(s.how, range_of(x.values)));
}

// No counterpart: smoothing before a reduction is a filter; torch's "nearest" forgets half a voxel.
bool is_resize(const oracle_case& c) {
  if (c.op == "torch.nn.functional.interpolate") return c.has("mode", "trilinear") || c.has("mode", "nearest-exact");
  return (c.op == "scipy.ndimage.zoom" || c.op == "skimage.transform.resize") && support::is_known_order(c.params) &&
         !c.has("anti_aliasing", true) && !c.has("mode", "wrap");
}

SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithZoomResizeAndInterpolate, is_resize) {
  const json& p = c.params;
  const bool torch = c.op == "torch.nn.functional.interpolate";
  const auto x = c.input<float>("x");
  const auto expected = c.output<double>("y");
  const size3 in = support::size_from(x.shape);
  const size3 size = support::size_from(expected.shape);
  const bool corners = torch ? p.at("align_corners") == true : !p.value("grid_mode", true);
  const reference::sampling s =
      !torch ? support::scipy_sampling(p)
             : reference::sampling{p.at("mode") == "trilinear" ? interpolation::linear : interpolation::nearest,
                                   outside::edge, 0};
  const suture::grid g = support::voxel_grid(in);
  const auto to =
      support::geometry_of(suture::resize{support::extents(size), corners ? suture::coordinate_map::align_corners
                                                                          : suture::coordinate_map::half_pixel},
                           g);
  std::vector<double> mask;
  if (s.how == interpolation::nearest)
    mask = support::away_from_ties(
        in, size,
        [&](const reference::point& out) {
          reference::point at{};
          for (std::size_t k = 0; k < 3; ++k)
            at[k] = corners ? reference::align_corners(out[k], in[k], size[k])
                            : reference::half_pixel(out[k], in[k], size[k]);
          return at;
        },
        1e-3, true, 100);
  const double range = range_of(x.values);
  std::vector<float> y;
  if (p.value("clip", false) && s.how == interpolation::bspline) {
    const auto [low, high] = std::minmax_element(x.values.begin(), x.values.end());
    with_border(s.rule, s.constant, [&, least = *low, most = *high]<class B>(const B& border) {
      const suture::sampling<suture::cubic_bspline, B> sampling{.border = border};
      y = support::image_result<float>(to | sampling | suture::clamp{.low = least, .high = most}, x.values, g);
    });
  } else {
    y = sampled(to, x.values, g, s);
  }
  expect_close(y, expected.values, tolerance(s.how, range), mask);
}

SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithTorchGridSample,
                   support::calls("torch.nn.functional.grid_sample",
                                  [](const oracle_case& c) { return !c.has("mode", "bicubic"); })) {
  const json& p = c.params;
  const auto x = c.input<float>("x");
  const size3 in = support::size_from(x.shape);
  const auto size = p.at("size").get<size3>();
  const reference::affine pull = support::torch_pull(p.at("theta"), in, size, p.at("align_corners"));
  const reference::sampling s = support::torch_sampling(p);
  std::vector<double> mask;
  if (s.how == interpolation::nearest_even) mask = support::away_from_ties(in, size, pull, 1e-4, true, 100);
  expect_close(sampled(support::geometry_of(pull, size), x.values, support::voxel_grid(in), s),
               c.output<double>("y").values, tolerance(s.how, range_of(x.values)), mask);
}

SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithTorchBicubic,
                   support::calls("torch.nn.functional.grid_sample", [](const oracle_case& c) {
                     return c.has("mode", "bicubic") && c.has("padding_mode", "border") &&
                            c.has("align_corners", false) && c.params.contains("slice_z");
                   })) {
  const auto x = c.input<float>("x");
  const size3 in{1, x.shape[1], x.shape[2]};
  const auto area = static_cast<std::ptrdiff_t>(in[1] * in[2]);
  const auto first = x.values.begin() + c.params.at("slice_z").get<std::ptrdiff_t>() * area;
  const auto expected = c.output<double>("y");
  const size3 size{1, expected.shape[0], expected.shape[1]};
  const json& t = c.params.at("theta");
  const json theta{{t[0][0], t[0][1], 0, t[0][2]}, {t[1][0], t[1][1], 0, t[1][2]}, {0, 0, 1, 0}};
  const reference::affine pull = support::torch_pull(theta, in, size, false);
  expect_close(sampled(support::geometry_of(pull, size), {first, first + area}, support::voxel_grid(in),
                       {interpolation::torch_cubic, outside::edge, 0}),
               expected.values, 3e-5 * range_of(x.values));
}

SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithMonaiAffine, support::calls("monai.transforms.Affine")) {
  const auto x = c.input<float>("x");
  const json& p = c.params;
  const auto triple = [&](const char* name, double factor) {
    const auto v = p.at(name).get<reference::point>();
    return suture::point3{factor * v[0], factor * v[1], factor * v[2]};
  };
  suture::affine op{.rotate_deg = triple("rotate_params", 180 / std::acos(-1.0)),
                    .scale = triple("scale_params", 1),
                    .translate = triple("translate_params", 1),
                    .convention = suture::affine_convention::monai};
  const auto shear = p.at("shear_params").get<std::array<double, 6>>();
  std::copy(shear.begin(), shear.end(), op.shear.v);
  const suture::grid g = support::voxel_grid(support::size_from(x.shape));
  expect_close(sampled(support::geometry_of(op, g), x.values, g, {interpolation::linear, outside::edge, 0}),
               c.output<double>("y").values, 1e-5 * range_of(x.values));
}

suture::grid itk_grid(const json& size, const json& spacing, const json& origin, const json& direction) {
  std::int64_t n[3];
  double s[3];
  double o[3];
  double d[9];
  for (std::size_t k = 0; k < 3; ++k) {
    n[k] = size.at(k);
    s[k] = spacing.at(k);
    o[k] = origin.at(k);
  }
  for (std::size_t k = 0; k < 9; ++k) d[k] = direction.at(k);
  return suture::grid_from_itk(n, s, o, d);
}

// The library turns about the center of the image; other centers go through a matrix.
bool turns_about_center(const json& transform, const suture::grid& g) {
  const suture::point3 center = g.index_to_physical()(g.center());
  bool same = true;
  for (int k = 0; k < 3; ++k)
    same =
        same && std::abs(transform.at("center").at(static_cast<std::size_t>(2 - k)).get<double>() - center[k]) < 1e-6;
  return same;
}

SUTURE_ORACLE_TEST(OracleGeometry, AgreesWithItk, support::calls("itk.ResampleImageFilter", [](const oracle_case& c) {
                     return !c.has("interpolator", "hammingsinc4") &&
                            c.params.at("transform").at("type") != "BSplineTransform";
                   })) {
  const json& p = c.params;
  const json& transform = p.at("transform");
  const auto x = c.input<float>("x");
  const size3 in = support::size_from(x.shape);
  const size3 size = support::itk_size(p.at("out_size"));
  const suture::grid source = itk_grid(p.at("size"), p.at("spacing"), p.at("origin"), p.at("direction"));
  const suture::grid target =
      itk_grid(p.at("out_size"), p.at("out_spacing"), p.at("out_origin"), p.at("out_direction"));
  const bool nearest = p.at("interpolator") == "nn";
  const bool linear = p.at("interpolator") == "linear";
  const reference::sampling s{nearest  ? interpolation::nearest
                              : linear ? interpolation::linear
                                       : interpolation::bspline,
                              outside::half_voxel_constant, p.at("default")};
  const reference::affine pull = support::itk_pull(p);

  std::vector<float> y;
  if (transform.at("type") == "identity") {
    y = sampled(support::geometry_to(target), x.values, source, s);
  } else if (transform.at("type") == "Euler3DTransform" && turns_about_center(transform, source)) {
    suture::affine op{.convention = suture::affine_convention::itk};
    for (int k = 0; k < 3; ++k) {
      op.rotate_deg[k] =
          transform.at("angles_xyz").at(static_cast<std::size_t>(2 - k)).get<double>() * 180 / std::acos(-1.0);
      op.translate[k] = transform.at("translation").at(static_cast<std::size_t>(2 - k));
    }
    y = sampled(support::geometry_of(op, source), x.values, source, s);
  } else {
    y = sampled(support::geometry_of(pull, size), x.values, source, s);
  }
  const std::vector<double> mask = support::away_from_ties(in, size, pull, 1e-6, nearest, 0.5);
  expect_close(y, c.output<double>("y").values, tolerance(s.how, range_of(x.values)), mask);
}

// NIfTI: index (i, j, k) and RAS millimeters, arrays with k fastest; the library: (z, y, x) = (k, j, i) and LPS.
suture::grid nifti_grid(const json& affine, const size3& shape) {
  const reference::affine a = support::nifti_affine(affine);
  const int to_lps[3] = {-1, -1, 1};
  std::int64_t size[3];
  double spacing[3];
  double origin[3];
  double direction[9];
  for (std::size_t j = 0; j < 3; ++j) {
    size[j] = shape[j];
    spacing[j] =
        std::sqrt(a.linear[0][j] * a.linear[0][j] + a.linear[1][j] * a.linear[1][j] + a.linear[2][j] * a.linear[2][j]);
    origin[j] = to_lps[j] * a.offset[j];
    for (std::size_t i = 0; i < 3; ++i) direction[3 * i + j] = to_lps[i] * a.linear[i][j] / spacing[j];
  }
  return suture::grid_from_itk(size, spacing, origin, direction);
}

// k fastest.
template <class T>
suture::view<T> nifti_view(T* data, const suture::grid& g) {
  const std::int64_t nk = g.extents[0];
  const std::int64_t nj = g.extents[1];
  return {data, g, {1, nk, nk * nj}, 1, 0};
}

SUTURE_ORACLE_TEST(OracleGeometry, ReorientsAsNibabelDoes, support::calls("nibabel.orientations")) {
  const auto x = c.input<float>("x");
  const auto expected = c.output<float>("y");
  const suture::grid source = nifti_grid(c.params.at("affine"), support::size_from(x.shape));
  const suture::grid target = nifti_grid(c.params.at("new_affine"), support::size_from(expected.shape));
  const std::string to = c.params.at("target");
  const std::vector<suture::grid> batch{source};
  const auto plan = suture::plan(suture::orient{.to = to}, batch);
  const suture::grid& result = plan.output_grid(0);
  ASSERT_EQ(result.extents, target.extents);
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(result.spacing[k], target.spacing[k], 1e-6);
    EXPECT_NEAR(result.origin[k], target.origin[k], 1e-4);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(result.direction[i][k], target.direction[i][k], 1e-6);
  }
  std::vector<float> y(expected.values.size());
  suture::run(suture::cpu{}, plan, suture::image(nifti_view(x.values.data(), source), nifti_view(y.data(), result)));
  EXPECT_EQ(y, expected.values);
}

SUTURE_ORACLE_TEST(OracleGeometry, ResamplesThroughPhysicalSpaceAsNibabelDoes,
                   support::calls("nibabel.processing.resample_to_output", [](const oracle_case& c) {
                     return c.has("order", 1) && c.has("mode", "constant");
                   })) {
  const auto x = c.input<float>("x");
  const auto expected = c.output<double>("y");
  const size3 shape = support::size_from(x.shape);
  const size3 new_shape = support::size_from(expected.shape);
  const suture::grid source = nifti_grid(c.params.at("affine"), shape);
  const suture::grid target = nifti_grid(c.params.at("new_affine"), new_shape);
  const std::vector<suture::grid> batch{source};
  const suture::sampling<suture::linear, suture::default_value> as_scipy{
      .border = {c.params.at("cval"), suture::image_rim::centers}};
  const auto plan = suture::plan(suture::resample_to{target} | as_scipy, batch);
  std::vector<float> y(expected.values.size());
  suture::run(suture::cpu{}, plan, suture::image(nifti_view(x.values.data(), source), nifti_view(y.data(), target)));
  const reference::affine pull = reference::composed(reference::inverted(support::nifti_affine(c.params.at("affine"))),
                                                     support::nifti_affine(c.params.at("new_affine")));
  expect_close(y, expected.values, 1e-5 * range_of(x.values),
               support::away_from_ties(shape, new_shape, pull, 1e-6, false, 0, true));
}

// Every interpolation under every border, inside, across the rim and far outside, down to images of one voxel.
TEST(ReferenceGeometry, AgreesEverywhere) {
  const size3 sizes[]{{9, 7, 12}, {1, 6, 5}, {2, 1, 3}, {1, 1, 1}};
  const reference::affine rotation =
      reference::composed({{{{0.81, -0.37, 0.22}, {0.45, 0.92, -0.31}, {-0.13, 0.28, 0.77}}}, {-3.3, 1.7, -2.1}}, {});
  std::uint32_t state = 1;
  for (const size3& in : sizes) {
    std::vector<float> x(static_cast<std::size_t>(in[0] * in[1] * in[2]));
    for (float& v : x) {
      state = state * 1664525U + 1013904223U;
      v = static_cast<float>(state >> 16U) / 64 - 500;
    }
    const reference::volume v(in, x);
    const size3 size{in[0] + 9, in[1] + 8, in[2] + 7};
    for (const auto how : {interpolation::nearest, interpolation::nearest_even, interpolation::linear,
                           interpolation::catmull_rom, interpolation::torch_cubic, interpolation::bspline})
      for (const auto rule : {outside::edge, outside::reflect, outside::mirror, outside::wrap, outside::blend_constant,
                              outside::half_voxel_constant, outside::scipy_constant}) {
        const bool cut = rule == outside::half_voxel_constant || rule == outside::scipy_constant;
        SCOPED_TRACE("interpolation " + std::to_string(static_cast<int>(how)) + ", outside " +
                     std::to_string(static_cast<int>(rule)) + ", extents " + std::to_string(in[0]) + " " +
                     std::to_string(in[1]) + " " + std::to_string(in[2]));
        const reference::sampling s{how, rule, 77};
        std::vector<double> mask;
        const double rim = rule == outside::half_voxel_constant ? 0.5 : rule == outside::scipy_constant ? 0 : 100;
        if (cut || tolerance(how, 1) == 0)
          mask = support::away_from_ties(in, size, rotation, 1e-5, tolerance(how, 1) == 0, rim);
        expect_close(sampled(support::geometry_of(rotation, size), x, support::voxel_grid(in), s),
                     reference::resampled(v, size, rotation, s).values, tolerance(how, 1024), mask);
      }
  }
}

TEST(ReferenceGeometry, VotesAsTheReference) {
  const size3 in{8, 9, 10};
  std::vector<std::uint8_t> x(720);
  std::uint32_t state = 7;
  for (auto& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<std::uint8_t>(10 * (1 + (state >> 28U) % 4));
  }
  const reference::volume v(in, x);
  const size3 size{12, 12, 12};
  const reference::affine pull{{{{0.81, -0.37, 0.22}, {0.45, 0.92, -0.31}, {-0.13, 0.28, 0.77}}}, {-1.3, -1.7, -2.1}};
  const auto check = [&](outside rule, const auto& sampling) {
    std::vector<double> expected;
    std::vector<double> clear;  // not within rounding of a tie between two labels
    for (double z = 0; z < 12; ++z)
      for (double y = 0; y < 12; ++y)
        for (double xx = 0; xx < 12; ++xx) {
          const reference::point p = pull({z, y, xx});
          expected.push_back(reference::vote(v, p, rule, 33));
          bool stable = true;
          for (std::size_t k = 0; k < 3; ++k)
            for (const double d : {-1e-5, 1e-5}) {
              reference::point q = p;
              q[k] += d;
              stable = stable && reference::vote(v, q, rule, 33) == expected.back();
            }
          clear.push_back(stable ? 1 : 0);
        }
    expect_close(support::label_result(support::geometry_of(pull, size) | sampling, x, support::voxel_grid(in)),
                 expected, 0, clear);
  };
  check(outside::edge, suture::sampling<suture::linear, suture::edge, suture::vote>{});
  check(outside::mirror, suture::sampling<suture::linear, suture::mirror, suture::vote>{});
  check(outside::blend_constant, suture::sampling<suture::linear, suture::constant, suture::vote>{.label_outside = 33});

  // Exact ties, halfway between labels: the lowest wins.
  const std::vector<std::uint8_t> row{50, 20, 90};
  const size3 line{1, 1, 3};
  const reference::affine half{reference::identity(), {0, 0, 0.5}};
  EXPECT_EQ(support::label_result(
                support::geometry_of(half, line) | suture::sampling<suture::linear, suture::edge, suture::vote>{}, row,
                support::voxel_grid(line)),
            (std::vector<std::uint8_t>{20, 20, 90}));
}

}  // namespace
