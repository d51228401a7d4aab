// SPDX-License-Identifier: Apache-2.0
// The reference against what SciPy, scikit-image, ITK, torch, MONAI, nibabel, batchgenerators and pydicom return.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "ref/coordinates.hpp"
#include "ref/elastic.hpp"
#include "ref/intensity.hpp"
#include "ref/rotation.hpp"
#include "ref/sample.hpp"
#include "support/expect_close.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"

namespace {

using namespace reference;
using nlohmann::json;
using support::expect_close;
using support::oracle_case;
using support::range_of;
using support::volume_from;

// Expected volumes are stored as float32: half a unit in the last place at 4096.
const double stored = 1.3e-4;

TEST(OracleReference, AgreesWithScipyAffineTransform) {
  support::for_each_oracle(support::calls("scipy.ndimage.affine_transform"), [](const oracle_case& c) {
    if (!support::is_known_order(c.params)) return;
    const sampling s = support::scipy_sampling(c.params);
    const volume y = resampled(volume_from(c.input<double>("x")), c.params.at("output_shape").get<size3>(),
                               support::scipy_pull(c.params), s);
    const bool jumps = s.how == interpolation::nearest || s.rule == outside::scipy_constant;
    expect_close(y.values, c.output<double>("y").values, stored,
                 jumps ? c.output<double>("ok").values : std::vector<double>{});
  });
}

TEST(OracleReference, AgreesWithScipyMapCoordinates) {
  support::for_each_oracle(support::calls_one_of({"scipy.ndimage.map_coordinates", "scipy.ndimage.spline_filter"},
                                                 [](const oracle_case& c) { return !c.inputs.contains("disp"); }),
                           [](const oracle_case& c) {
                             const volume x = volume_from(c.input<double>("x"));
                             const auto expected = c.output<double>("y");
                             if (c.op == "scipy.ndimage.spline_filter") {
                               const border rule = c.params.at("mode") == "mirror"    ? border::mirror
                                                   : c.params.at("mode") == "reflect" ? border::reflect
                                                                                      : border::wrap;
                               expect_close(bspline_prefilter(x, rule).values, expected.values,
                                            2.5e-4);  // float32, up to 8192
                               return;
                             }
                             // "wrap" is SciPy's legacy period of n - 1.
                             if (!support::is_known_order(c.params) || c.params.at("mode") == "wrap") return;
                             const sampling s = support::scipy_sampling(c.params);
                             const prepared source = prepare(x, s);
                             const std::vector<double> p = c.input<double>("coords").values;
                             const std::size_t n = p.size() / 3;
                             std::vector<double> y;
                             for (std::size_t i = 0; i < n; ++i) y.push_back(source({p[i], p[n + i], p[2 * n + i]}, s));
                             expect_close(y, expected.values, 1e-9);
                           });
}

TEST(OracleReference, AgreesWithZoomResizeAndInterpolate) {
  support::for_each_oracle(
      support::calls_one_of({"scipy.ndimage.zoom", "skimage.transform.resize", "torch.nn.functional.interpolate"}),
      [](const oracle_case& c) {
        const json& p = c.params;
        if (p.value("anti_aliasing", false) || p.at("mode") == "area") return;
        const volume x = volume_from(c.input<double>("x"));
        const auto expected = c.output<double>("y");
        const size3 size = support::size_from(expected.shape);
        const bool torch = c.op == "torch.nn.functional.interpolate";
        const bool corners = torch ? p.at("align_corners") == true : !p.value("grid_mode", true);

        if (torch && p.at("mode") != "trilinear") {
          volume y(size);
          for (integer i = 0; i < size[0]; ++i)
            for (integer j = 0; j < size[1]; ++j)
              for (integer k = 0; k < size[2]; ++k) {
                const auto nearest = p.at("mode") == "nearest" ? torch_nearest : torch_nearest_exact;
                y.at(i, j, k) = x.at(nearest(i, x.size[0], size[0]), nearest(j, x.size[1], size[1]),
                                     nearest(k, x.size[2], size[2]));
              }
          expect_close(y.values, expected.values, 0);
          return;
        }

        const auto pull = [&](const point& out) {
          point in{};
          for (std::size_t k = 0; k < 3; ++k)
            in[k] = corners ? align_corners(out[k], x.size[k], size[k]) : half_pixel(out[k], x.size[k], size[k]);
          return in;
        };
        const sampling s = torch ? sampling{} : support::scipy_sampling(p);
        volume y = resampled(x, size, pull, s);
        if (p.value("clip", false)) {
          const statistics limits = statistics_of(x.values);
          for (double& v : y.values) v = std::clamp(v, limits.min, limits.max);
        }
        std::vector<double> mask;  // nearest: sizes that are simple fractions put voxels exactly between two
        if (s.how == interpolation::nearest) mask = support::away_from_ties(x.size, size, pull, 1e-9, true, 100);
        expect_close(y.values, expected.values, torch ? 1e-5 * range_of(x.values) : stored, mask);
      });
}

TEST(OracleReference, AgreesWithTorchGrids) {
  support::for_each_oracle(
      support::calls_one_of({"torch.nn.functional.affine_grid", "torch.nn.functional.grid_sample"}),
      [](const oracle_case& c) {
        const json& p = c.params;
        if (c.op == "torch.nn.functional.affine_grid") {
          const auto size = p.at("size").get<size3>();
          const bool corners = p.at("align_corners");
          const affine normalized =
              composed(inverted(support::torch_unnormalize(size, corners)),
                       support::reversed(support::torch_pull(p.at("theta"), size, size, corners)));
          std::vector<double> grid;
          for (integer z = 0; z < size[0]; ++z)
            for (integer y = 0; y < size[1]; ++y)
              for (integer x = 0; x < size[2]; ++x) {
                const point n = normalized({static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)});
                grid.insert(grid.end(), n.begin(), n.end());
              }
          expect_close(grid, c.output<double>("grid").values, 1e-6);
        } else if (c.op == "torch.nn.functional.grid_sample" && p.at("mode") != "bicubic") {
          const volume x = volume_from(c.input<double>("x"));
          const auto size = p.at("size").get<size3>();
          const affine pull = support::torch_pull(p.at("theta"), x.size, size, p.at("align_corners"));
          const sampling s = support::torch_sampling(p);
          std::vector<double> mask;
          if (s.how == interpolation::nearest_even) mask = support::away_from_ties(x.size, size, pull, 1e-4, true, 100);
          expect_close(resampled(x, size, pull, s).values, c.output<double>("y").values, 1e-5 * range_of(x.values),
                       mask);
        }
      });
}

// Two-dimensional bicubic, on one slice.
TEST(OracleReference, AgreesWithTorchBicubic) {
  support::for_each_oracle(
      support::calls("torch.nn.functional.grid_sample",
                     [](const oracle_case& c) {
                       return c.has("mode", "bicubic") && c.has("padding_mode", "border") &&
                              c.params.contains("slice_z");
                     }),
      [](const oracle_case& c) {
        const volume x = volume_from(c.input<double>("x"));
        const std::size_t area = static_cast<std::size_t>(x.size[1] * x.size[2]);
        const auto first =
            x.values.begin() + static_cast<std::ptrdiff_t>(c.params.at("slice_z").get<std::size_t>() * area);
        const volume slice({1, x.size[1], x.size[2]},
                           std::vector<double>(first, first + static_cast<std::ptrdiff_t>(area)));
        const auto expected = c.output<double>("y");
        const size3 size{1, expected.shape[0], expected.shape[1]};
        const json& t = c.params.at("theta");
        const json theta{{t[0][0], t[0][1], 0, t[0][2]}, {t[1][0], t[1][1], 0, t[1][2]}, {0, 0, 1, 0}};
        const volume y = resampled(slice, size, support::torch_pull(theta, slice.size, size, false),
                                   {interpolation::torch_cubic, outside::edge, 0});
        expect_close(y.values, expected.values, 3e-5 * range_of(x.values));
      });
}

TEST(OracleReference, AgreesWithMonaiAffine) {
  support::for_each_oracle(support::calls("monai.transforms.Affine"), [](const oracle_case& c) {
    const volume x = volume_from(c.input<double>("x"));
    const json& p = c.params;
    const affine relative =
        monai_affine(p.at("rotate_params").get<point>(), p.at("shear_params").get<std::array<double, 6>>(),
                     p.at("translate_params").get<point>(), p.at("scale_params").get<point>());
    affine pull = about(relative.linear, x.center(), x.center());
    for (std::size_t k = 0; k < 3; ++k) pull.offset[k] += relative.offset[k];
    expect_close(resampled(x, x.size, pull, {interpolation::linear, outside::clamp_coordinate, 0}).values,
                 c.output<double>("y").values, 1e-5 * range_of(x.values));
  });
}

TEST(OracleReference, AgreesWithMonaiRotate) {
  support::for_each_oracle(support::calls("monai.transforms.Rotate"), [](const oracle_case& c) {
    const volume x = volume_from(c.input<double>("x"));
    const auto expected = c.output<double>("y");
    const volume out(support::size_from(expected.shape));
    const affine relative = monai_affine(c.params.at("angle").get<point>(), {}, {}, {1, 1, 1});
    const affine rotation = about(relative.linear, x.center(), out.center());
    // MONAI 1.2 normalizes this map by the faces of the image and samples it with align_corners, by the centers of
    // the outermost voxels: a slight extra anisotropic scaling.
    const auto stretch = [](const size3& size) {
      return support::reversed(
          composed(support::torch_unnormalize(size, true), inverted(support::torch_unnormalize(size, false))));
    };
    const affine pull = composed(stretch(x.size), composed(rotation, inverted(stretch(out.size))));
    expect_close(resampled(x, out.size, pull, {interpolation::linear, outside::blend_constant, 0}).values,
                 expected.values, 1e-5 * range_of(x.values));
  });
}

TEST(OracleReference, AgreesWithItkResampling) {
  support::for_each_oracle(support::calls("itk.ResampleImageFilter"), [](const oracle_case& c) {
    const json& p = c.params;
    if (p.at("interpolator") == "hammingsinc4") return;
    const volume x = volume_from(c.input<double>("x"));
    const size3 size = support::itk_size(p.at("out_size"));
    const json& transform = p.at("transform");

    std::function<point(const point&)> pull;
    std::vector<double>
        inside;  // of the domain of the B-spline; on its faces rounding decides whether ITK moves a point
    if (transform.at("type") == "BSplineTransform") {
      // The domain spans the outermost voxel centers; coefficients are millimeters along x, y, z.
      const std::vector<double> values = c.input<double>("coefs").values;
      const auto mesh = support::itk_size(transform.at("mesh_size"));
      const size3 grid{mesh[0] + 3, mesh[1] + 3, mesh[2] + 3};
      std::array<volume, 3> coefficients;
      for (std::size_t k = 0; k < 3; ++k) {
        const auto count = static_cast<std::ptrdiff_t>(values.size() / 3);
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(2 - k) * count;
        coefficients[k] = volume(grid, std::vector<double>(first, first + count));
      }
      const auto displacement = [=](const point& v) {
        point q{};
        for (std::size_t k = 0; k < 3; ++k)
          q[k] = v[k] * static_cast<double>(mesh[k]) / static_cast<double>(x.size[k] - 1);
        return point{bspline_field(coefficients[0], q), bspline_field(coefficients[1], q),
                     bspline_field(coefficients[2], q)};
      };
      const auto spacing = support::reversed(p.at("spacing").get<point>());
      pull = [=](const point& v) {
        const point u = displacement(v);
        return point{v[0] + u[0] / spacing[0], v[1] + u[1] / spacing[1], v[2] + u[2] / spacing[2]};
      };
      inside = support::away_from_ties(
          x.size, size, [](const point& v) { return v; }, 1e-9, false, 0);
      if (c.outputs.contains("disp")) {
        std::vector<double> inside_field;
        for (const double i : inside) inside_field.insert(inside_field.end(), 3, i);
        std::vector<double> field;
        for (integer i = 0; i < size[0]; ++i)
          for (integer j = 0; j < size[1]; ++j)
            for (integer k = 0; k < size[2]; ++k) {
              const point u = displacement({static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)});
              field.insert(field.end(), {u[2], u[1], u[0]});
            }
        expect_close(field, c.output<double>("disp").values, 1e-5, inside_field);
      }
    } else {
      pull = support::itk_pull(p);
    }

    const sampling s{p.at("interpolator") == "nn"       ? interpolation::nearest
                     : p.at("interpolator") == "linear" ? interpolation::linear
                                                        : interpolation::bspline,
                     outside::half_voxel_constant, p.at("default")};
    std::vector<double> mask = support::away_from_ties(x.size, size, pull, 1e-6, s.how == interpolation::nearest, 0.5);
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (!inside.empty() && inside[i] == 0) mask[i] = 0;
    expect_close(resampled(x, size, pull, s).values, c.output<double>("y").values,
                 s.how == interpolation::bspline ? 1e-3 : 2 * stored, mask);
  });
}

TEST(OracleReference, BuildsTheEulerTransformOfItk) {
  const auto turns = [](const oracle_case& c) { return c.params.at("transform").at("type") == "Euler3DTransform"; };
  support::for_each_oracle(support::calls("itk.ResampleImageFilter", turns), [](const oracle_case& c) {
    const json& t = c.params.at("transform");
    const auto angles = t.at("angles_xyz").get<point>();
    const matrix expected = support::matrix_from(t.at("matrix"));
    const matrix built = itk_euler(angles[0], angles[1], angles[2]);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(built[i][j], expected[i][j], 1e-14);
    const auto offset = t.at("offset").get<point>();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(support::itk_transform(t).offset[i], offset[i], 1e-11);
  });
}

TEST(OracleReference, AgreesWithNibabelResampling) {
  support::for_each_oracle(support::calls("nibabel.processing.resample_to_output"), [](const oracle_case& c) {
    const volume x = volume_from(c.input<double>("x"));  // axes i, j, k
    const size3 size = c.params.at("new_shape").get<size3>();
    const affine pull = composed(inverted(support::nifti_affine(c.params.at("affine"))),
                                 support::nifti_affine(c.params.at("new_affine")));
    const sampling s{interpolation::linear, outside::scipy_constant, c.params.at("cval")};
    expect_close(resampled(x, size, pull, s).values, c.output<double>("y").values, stored,
                 support::away_from_ties(x.size, size, pull, 1e-6, false, 0));
  });
}

TEST(OracleReference, AgreesWithWarpsByDisplacement) {
  support::for_each_oracle(
      support::calls_one_of({"scipy.ndimage.map_coordinates", "batchgenerators.interpolate_img"}),
      [](const oracle_case& c) {
        const bool warp = c.inputs.contains("disp") && c.op == "scipy.ndimage.map_coordinates";
        const bool interpolate = c.op == "batchgenerators.interpolate_img" && !c.params.value("is_seg", false);
        if (!warp && !interpolate) return;
        const volume x = volume_from(c.input<double>("x"));
        const auto field = c.input<double>(warp ? "disp" : "coords");
        const size3 size{field.shape[1], field.shape[2], field.shape[3]};
        const auto pull = [&](const point& v) {
          point p = warp ? v : point{};
          const auto at =
              static_cast<std::size_t>((static_cast<integer>(v[0]) * size[1] + static_cast<integer>(v[1])) * size[2] +
                                       static_cast<integer>(v[2]));
          for (std::size_t k = 0; k < 3; ++k) p[k] += field.values[k * field.values.size() / 3 + at];
          return p;
        };
        expect_close(resampled(x, size, pull, support::scipy_sampling(c.params)).values, c.output<double>("y").values,
                     stored, c.output<double>("ok").values);
      });
}

TEST(OracleReference, AgreesWithBatchgenerators) {
  support::for_each_oracle(support::calls("batchgenerators: rotate_coords_3d, scale_coords"), [](const oracle_case& c) {
    const json& p = c.params;
    const matrix m = batchgenerators_linear({p.at("angle_x"), p.at("angle_y"), p.at("angle_z")}, p.at("scale"));
    const auto center = p.at("center").get<point>();
    const std::vector<double> mesh = c.input<double>("mesh_elastic").values;
    const std::size_t n = mesh.size() / 3;
    std::vector<double> coords(mesh.size());
    for (std::size_t i = 0; i < n; ++i) {
      const point moved = product(m, point{mesh[i], mesh[n + i], mesh[2 * n + i]});
      for (std::size_t k = 0; k < 3; ++k) coords[k * n + i] = moved[k] + center[k];
    }
    expect_close(coords, c.output<double>("coords").values, 1e-5);
  });
}

// batchgenerators writes a label where its linear indicator reaches one half; there the vote must name the same one.
TEST(OracleReference, VotesAsLinearIndicatorsDo) {
  support::for_each_oracle(
      support::calls("batchgenerators.interpolate_img", [](const oracle_case& c) { return c.has("is_seg", true); }),
      [](const oracle_case& c) {
        const volume x = volume_from(c.input<double>("x"));
        const std::vector<double> coords = c.input<double>("coords").values;
        const std::size_t n = coords.size() / 3;
        std::vector<double> winners;
        std::vector<double> clear;
        for (std::size_t i = 0; i < n; ++i) {
          double weight = 0;
          winners.push_back(
              vote(x, {coords[i], coords[n + i], coords[2 * n + i]}, outside::scipy_constant, 0, &weight));
          clear.push_back(weight > 0.5 + 1e-4 ? 1 : 0);
        }
        expect_close(winners, c.output<double>("y").values, 0, clear);
      });
}

TEST(OracleReference, AgreesWithIntensityOperations) {
  support::for_each_oracle(
      support::calls_one_of({"pydicom apply_windowing (DICOM PS3.3 C.11.2.1)", "monai.transforms.ScaleIntensityRange",
                             "batchgenerators.augment_gamma", "batchgenerators.augment_contrast",
                             "monai.transforms.AdjustContrast", "skimage.exposure.adjust_gamma"}),
      [](const oracle_case& c) {
        const json& p = c.params;
        std::vector<double> y;
        double tolerance = 0;
        if (c.op.starts_with("pydicom apply_windowing")) {
          const double low = p.at("out_min");
          const double high = p.at("out_max");
          const auto window = p.at("function") == "LINEAR"         ? window_linear
                              : p.at("function") == "LINEAR_EXACT" ? window_linear_exact
                                                                   : window_sigmoid;
          for (const double v : c.input<double>("x").values)
            y.push_back(window(v, p.at("center"), p.at("width"), low, high));
          tolerance = 4 * 0x1p-23 * (high - low);
        } else if (c.op == "monai.transforms.ScaleIntensityRange") {
          for (const double v : c.input<double>("x").values)
            y.push_back(scale_range(v, p.at("a_min"), p.at("a_max"), p.at("b_min"), p.at("b_max"), p.at("clip")));
          tolerance = 4 * 0x1p-23 * range_of(y);
        } else if (c.op == "batchgenerators.augment_gamma") {
          // batchgenerators drew the exponent between the recorded end and 1; one number, told by the whole
          // image.
          const std::vector<double> x = c.input<double>("x").values;
          const double drawn = exponent_between(x, c.output<double>("y").values, p.at("invert_image"));
          const double end = p.at("gamma");
          EXPECT_GE(drawn, std::min(end, 1.0));
          EXPECT_LE(drawn, std::max(end, 1.0));
          y = gamma(x, drawn, p.at("invert_image"), p.at("retain_stats"));
          tolerance = 2e-6 * range_of(y);
        } else if (c.op == "batchgenerators.augment_contrast") {
          y = contrast(c.input<double>("x").values, p.at("factor"), p.at("preserve_range"));
          tolerance = 2e-6 * range_of(y);
        } else if (c.op == "monai.transforms.AdjustContrast") {
          y = gamma(c.input<double>("x").values, p.at("gamma"));
          tolerance = 2e-6 * range_of(y);
        } else if (c.op == "skimage.exposure.adjust_gamma") {
          for (const double v : c.input<double>("x").values) y.push_back(std::pow(v, p.at("gamma").get<double>()));
          tolerance = 1e-7;
        }
        expect_close(y, c.output<double>("y").values, tolerance);
      });
}

}  // namespace
