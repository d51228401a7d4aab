// SPDX-License-Identifier: Apache-2.0
// The reference itself against published known answers and numbers computed elsewhere from the definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ref/border.hpp"
#include "ref/coordinates.hpp"
#include "ref/elastic.hpp"
#include "ref/intensity.hpp"
#include "ref/random.hpp"
#include "ref/rotation.hpp"
#include "ref/sample.hpp"
#include "ref/spline.hpp"

namespace {

using namespace reference;

const double pi = std::acos(-1.0);
const double printed = 1e-9;  // the expected numbers are printed with 10 decimals

template <class A, class B>
void expect_near(const A& actual, const B& expected, double tolerance = printed) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

volume line(const std::vector<double>& values) { return {{1, 1, static_cast<integer>(values.size())}, values}; }

std::vector<double> prefiltered(std::vector<double> values, border rule) {
  bspline_prefilter_line(values, rule);
  return values;
}

// Random numbers

TEST(ReferencePhilox, MeetsTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (words4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}, 7), (words4{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (words4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (words4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, 7),
            (words4{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(ReferencePhilox, MeetsTheCurandSequence) {  // seed 1234, subsequence 5, offset 6: word 2 of block 1
  EXPECT_EQ(philox({1, 0, 5, 0}, {1234, 0}), (words4{0x5c5cf6f4, 0x3fc0ce58, 0x32773955, 0x72c26332}));
  EXPECT_EQ(philox({2, 0, 5, 0}, {1234, 0}), (words4{0x26a9bd1b, 0xd88ecb0d, 0x088f2111, 0xd1e85602}));
}

TEST(ReferenceRandom, TurnsWordsIntoNumbers) {
  EXPECT_NEAR(u32_curand(0xd16cfe09), 0.8180693388, printed);
  EXPECT_NEAR(u24(0xd16cfe09), 0.8180693388, printed);
  EXPECT_NEAR(u24_closed(0xd16cfe09), 0.8180693984, printed);
  EXPECT_NEAR(u23_open(0xd16cfe09), 0.8180693984, printed);
  EXPECT_NEAR(u32_curand(0), 1.164153218e-10, 1e-19);
  EXPECT_EQ(u24(0), 0);
  EXPECT_NEAR(u24_closed(0), 5.960464478e-08, 1e-17);
  EXPECT_NEAR(u23_open(0), 5.960464478e-08, 1e-17);
  EXPECT_EQ(u32_curand(0xffffff80), 1.0F);
  EXPECT_NEAR(u24(0xffffff80), 0.9999999404, printed);
  EXPECT_EQ(integer_below(0xd16cfe09, 10), 8U);
}

TEST(ReferenceRandom, DrawsNormals) {
  expect_near(normals({0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}),
              std::array{-0.5514679118, -0.3122488687, 0.9654673559, 1.1806732825});
  expect_near(normals({0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}),
              std::array{0.9911374751, -0.9246627804, -0.6176090550, -0.4820683473});
}

TEST(ReferenceRandom, LaysOutStreamsAndBlocks) {
  const words4 voxels = stream(0x0123456789ABCDEF, 7, 42, 3, 1);
  EXPECT_EQ(voxels, (words4{0x17e2f7ab, 0x7ec8a0c7, 0x35b35051, 0x1631c6f7}));
  EXPECT_EQ(block(voxels, 0), (words4{0xd97f32c4, 0xc8a761b7, 0xa61e98a9, 0x33e0b186}));
  EXPECT_EQ(block(voxels, 1), (words4{0xfe6a5f67, 0x8bec4184, 0xf645cac3, 0xc5b22b4e}));
  EXPECT_EQ(block(voxels, 12345678901), (words4{0x8a56cdac, 0x14602d04, 0xa9694c85, 0x9f6ca0ad}));
  const std::array uniforms{0.8495970964, 0.7838039994, 0.6489043236, 0.2026472688};
  const std::array gaussians{0.1203586001, -0.5581216348, 0.2726411565, 0.8891606182};
  for (std::size_t e = 0; e < 4; ++e) {
    EXPECT_NEAR(element_uniform(voxels, e), uniforms[e], printed);
    EXPECT_NEAR(element_normal(voxels, e), gaussians[e], printed);
  }
  EXPECT_EQ(slot_word(voxels, 4), 0xfe6a5f67U);

  const words4 scalars = stream(0x0123456789ABCDEF, 7, 42, 3, 0);
  EXPECT_EQ(scalars, (words4{0x5ef70e88, 0xeba9a57f, 0xbfe4a152, 0xe2aee08a}));
  EXPECT_EQ(block(scalars, 0), (words4{0x6ee6257f, 0x0a8f8c8e, 0xab8874f9, 0x7b5bc23e}));
}

// Intensity

TEST(ReferenceIntensity, Windows) {
  const std::array x{-24.0, 40.0, 239.0, -160.0, 240.0};
  const std::array linear{86.9172932331, 127.8195488722, 255.0, 0.0, 255.0};
  const std::array exact{86.7, 127.5, 254.3625, 0.0, 255.0};
  const std::array sigmoid{88.0378675453, 127.5, 224.3345000707, 30.3967451156, 224.6032548844};
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(window_linear(x[i], 40, 400, 0, 255), linear[i], printed);
    EXPECT_NEAR(window_linear_exact(x[i], 40, 400, 0, 255), exact[i], printed);
    EXPECT_NEAR(window_sigmoid(x[i], 40, 400, 0, 255), sigmoid[i], printed);
  }
  EXPECT_EQ(window_linear(39.5, 40, 1, 0, 255), 0);
  EXPECT_EQ(window_linear(40, 40, 1, 0, 255), 255);
}

TEST(ReferenceIntensity, ScalesRanges) {
  EXPECT_NEAR(scale_range(0, -57, 164, 0, 1, false), 0.2579185520, printed);
  EXPECT_NEAR(scale_range(53.5, -57, 164, 0, 1, false), 0.5, printed);
  EXPECT_NEAR(scale_range(300, -57, 164, 0, 1, false), 1.6153846154, printed);
  EXPECT_NEAR(scale_range(-100, -57, 164, 0, 1, false), -0.1945701357, printed);
  EXPECT_EQ(scale_range(300, -57, 164, 0, 1, true), 1);
  EXPECT_EQ(scale_range(-100, -57, 164, 0, 1, true), 0);
}

TEST(ReferenceIntensity, NormalizesCtAndZScores) {
  const std::array x{-1000.0, 0.0, 100.0, 500.0};
  const std::array y{-2.8232771822, -1.9044410413, 1.1583460949, 3.1742725881};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(ct_normalized(x[i], -30, 165.82, 62.18, 32.65), y[i], printed);

  const std::vector<double> sample{-1, 0, 1, 2, 6};
  const statistics s = statistics_of(sample);
  EXPECT_NEAR(s.mean, 1.6, printed);
  EXPECT_NEAR(s.deviation, 2.4166091947, printed);
  EXPECT_NEAR(s.deviation * std::sqrt(5.0 / 4), 2.7018512172, printed);
  const std::array scores{-1.0758876552, -0.6620847109, -0.2482817666, 0.1655211777, 1.8207329549};
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR((sample[i] - s.mean) / s.deviation, scores[i], printed);
}

TEST(ReferenceIntensity, AppliesGammaContrastAndRicianNoise) {
  const std::vector<double> x{-1, 0, 1, 2, 6};
  expect_near(gamma(x, 1.5), std::array{-1.0, -0.6220355270, 0.0690449676, 0.9639610121, 6.0});
  expect_near(gamma(x, 1.5, false, true),
              std::array{-0.3747113429, -0.0162573758, 0.6391495807, 1.4878701068, 6.2639490313});
  expect_near(gamma(x, 1.5, true, true),
              std::array{-1.4808539244, -0.0159296082, 1.3314725929, 2.5500356106, 5.6152753291});
  expect_near(gamma(x, 0.7), std::array{-1.0, 0.7927899625, 1.9123958864, 2.8682478276, 6.0});
  expect_near(contrast(x, 1.25, true), std::array{-1.0, -0.4, 0.85, 2.1, 6.0});
  expect_near(contrast(x, 1.25, false), std::array{-1.65, -0.4, 0.85, 2.1, 7.1});
  expect_near(contrast(x, 0.75, true), std::array{-0.35, 0.4, 1.15, 1.9, 4.9});
  EXPECT_NEAR(rician_noise(3, 1, 0.5, -1.2), 3.7, printed);
  EXPECT_NEAR(gaussian_noise(3, 2, -0.5), 2, printed);
}

// Interpolation

TEST(ReferenceSpline, WeighsNeighbors) {
  expect_near(bspline_weights(0.25), std::array{0.0703125, 0.6119791667, 0.3151041667, 0.0026041667});
  expect_near(bspline_derivative_weights(0.25), std::array{-0.28125, -0.40625, 0.65625, 0.03125});
  expect_near(bspline_weights(0.5), std::array{1 / 48.0, 23 / 48.0, 23 / 48.0, 1 / 48.0});
  expect_near(keys_weights(0.25, -0.5), std::array{-0.0703125, 0.8671875, 0.2265625, -0.0234375});
  expect_near(keys_weights(0.25, -0.75), std::array{-0.10546875, 0.87890625, 0.26171875, -0.03515625});
}

TEST(ReferenceSpline, Prefilters) {
  expect_near(prefiltered({0, 0, 1, 0, 0}, border::mirror), std::array{0.25, -0.5, 1.75, -0.5, 0.25});
  expect_near(prefiltered({0, 0, 1, 0, 0}, border::reflect),
              std::array{1 / 11.0, -5 / 11.0, 19 / 11.0, -5 / 11.0, 1 / 11.0});
  expect_near(prefiltered({1, 3, 2, 5, 4}, border::mirror),
              std::array{-0.8392857143, 4.6785714286, 0.125, 6.8214285714, 2.5892857143});
  expect_near(prefiltered({1, 3, 2, 5, 4}, border::reflect),
              std::array{0.3301435407, 4.3492822967, 0.2727272727, 6.5598086124, 3.4880382775});
}

// What the coefficients are for: the spline passes through the samples, under every rule and on short lines too.
TEST(ReferenceSpline, InterpolatesItsSamples) {
  const std::vector<double> values{3, -1, 4, 1, -5, 9, 2, -6};
  for (const border rule : {border::mirror, border::reflect, border::wrap})
    for (std::size_t n = 1; n <= values.size(); ++n) {
      const std::vector<double> x(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
      const std::vector<double> c = prefiltered(x, rule);
      const auto count = static_cast<integer>(n);
      for (integer i = 0; i < count; ++i) {
        const auto at = [&](integer k) { return c[static_cast<std::size_t>(border_index(rule, k, count))]; };
        EXPECT_NEAR((at(i - 1) + 4 * at(i) + at(i + 1)) / 6, x[static_cast<std::size_t>(i)], 1e-12) << "length " << n;
      }
    }
}

TEST(ReferenceSample, EvaluatesSplines) {
  const auto value = [](const std::vector<double>& samples, outside rule, double x) {
    const sampling s{interpolation::bspline, rule, 0};
    return prepare(line(samples), s)({0, 0, x}, s);
  };
  EXPECT_NEAR(value({0, 0, 1, 0, 0}, outside::mirror, 1.5), 0.59375, printed);
  EXPECT_NEAR(value({0, 0, 1, 0, 0}, outside::reflect, 1.5), 0.6022727273, printed);
  EXPECT_NEAR(value({0, 0, 1, 0, 0}, outside::mirror, 1.25), 0.26171875, printed);
  EXPECT_NEAR(value({0, 0, 1, 0, 0}, outside::reflect, 1.25), 0.2713068182, printed);
  const std::array x{0.5, 1.25, 1.5, 2.75};
  const std::array mirror{1.9397321429, 2.8613281250, 2.4263392857, 4.4082031250};
  const std::array reflect{2.2547846890, 2.7879037081, 2.3582535885, 4.3569826555};
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(value({1, 3, 2, 5, 4}, outside::mirror, x[i]), mirror[i], printed);
    EXPECT_NEAR(value({1, 3, 2, 5, 4}, outside::reflect, x[i]), reflect[i], printed);
  }
}

TEST(ReferenceBorder, MapsIndices) {
  const auto mapped = [](border rule) {
    std::vector<integer> m;
    for (integer i = -6; i <= 9; ++i) m.push_back(border_index(rule, i, 4));
    return m;
  };
  EXPECT_EQ(mapped(border::mirror), (std::vector<integer>{0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3}));
  EXPECT_EQ(mapped(border::reflect), (std::vector<integer>{2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0, 1}));
  EXPECT_EQ(mapped(border::wrap), (std::vector<integer>{2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(mapped(border::edge), (std::vector<integer>{0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(border_index(border::mirror, -7, 1), 0);

  const std::array x{-1.2, -0.4, 3.3, 4.3, 9.1};
  const std::array faces{0.2, 0.0, 3.0, 2.7, 1.1};
  const std::array centers{1.2, 0.4, 2.7, 1.7, 2.9};
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(torch_reflection(x[i], 4, false), faces[i], 1e-12);
    EXPECT_NEAR(torch_reflection(x[i], 4, true), centers[i], 1e-12);
  }
}

TEST(ReferenceCoordinates, ChoosesSizes) {
  struct {
    integer n;
    double in, out;
    integer nnunet, monai, torchio;
  } const cases[]{{64, 5, 2, 160, 158, 160},
                  {40, 3, 1, 120, 118, 120},
                  {5, 0.5, 1, 2, 3, 2},
                  {7, 0.5, 1, 4, 4, 3},
                  {512, 0.78125, 0.8, 500, 500, 500}};
  for (const auto& c : cases) {
    EXPECT_EQ(nnunet_size(c.n, c.in, c.out), c.nnunet) << c.n;
    EXPECT_EQ(monai_size(c.n, c.in, c.out), c.monai) << c.n;
    EXPECT_EQ(torchio_size(c.n, c.in, c.out), c.torchio) << c.n;
  }
}

TEST(ReferenceCoordinates, FindsTheNearest) {
  std::vector<integer> exact;
  std::vector<integer> biased;
  for (integer i = 0; i < 5; ++i) {
    exact.push_back(torch_nearest_exact(i, 8, 5));
    biased.push_back(torch_nearest(i, 8, 5));
  }
  EXPECT_EQ(exact, (std::vector<integer>{0, 2, 4, 5, 7}));
  EXPECT_EQ(biased, (std::vector<integer>{0, 1, 3, 4, 6}));

  const std::array position{-0.1875, 0.4375, 1.0625, 1.6875, 2.3125, 2.9375, 3.5625, 4.1875};
  const std::array<integer, 8> nearest{0, 0, 1, 2, 2, 3, 4, 4};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(half_pixel(static_cast<double>(i), 5, 8), position[i]);
    EXPECT_EQ(border_index(border::edge, round_half_up(position[i]), 5), nearest[i]);
  }
  EXPECT_EQ(round_half_up(2.5), 3);
  EXPECT_EQ(round_half_up(-0.5), 0);
  EXPECT_EQ(round_half_even(2.5), 2);
  EXPECT_EQ(round_half_even(3.5), 4);
  EXPECT_EQ(round_half_even(-0.5), 0);
}

TEST(ReferenceSample, InterpolatesLinearly) {
  const volume v = line({0, 10, 20, 30});
  const std::array half{0.0, 5.0, 35.0 / 3, 55.0 / 3, 25.0, 30.0};
  for (integer i = 0; i < 6; ++i) {
    const auto x = static_cast<double>(i);
    EXPECT_NEAR(sample(v, {0, 0, half_pixel(x, 4, 6)}, {}), half[static_cast<std::size_t>(i)], 1e-12);
    EXPECT_NEAR(sample(v, {0, 0, align_corners(x, 4, 6)}, {}), 6 * x, 1e-12);
  }
  EXPECT_EQ(align_corners(0, 4, 1), 0);

  // Low resolution: 8 -> 4 by nearest-exact, back by linear.
  std::vector<double> low;
  for (integer i = 0; i < 4; ++i) low.push_back(static_cast<double>(torch_nearest_exact(i, 8, 4)));
  EXPECT_EQ(low, (std::vector<double>{1, 3, 5, 7}));
  const std::array up{1.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.0};
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(sample(line(low), {0, 0, half_pixel(static_cast<double>(i), 4, 8)}, {}), up[i], 1e-12);
}

TEST(ReferenceSample, KnowsWhatIsOutside) {
  const volume v({1, 3, 3}, std::vector<double>{0, 1, 2, 3, 5, 7, 6, 9, 12});
  const sampling zeros{interpolation::linear, outside::blend_constant, 0};
  const sampling border{interpolation::linear, outside::clamp_coordinate, 0};
  const sampling scipy{interpolation::linear, outside::scipy_constant, -7};
  const sampling itk{interpolation::linear, outside::half_voxel_constant, -7};
  EXPECT_NEAR(sample(v, {0, 0.5, 1.25}, zeros), 3.375, 1e-12);
  EXPECT_NEAR(sample(v, {0, -0.25, 1}, zeros), 0.75, 1e-12);
  EXPECT_NEAR(sample(v, {0, -0.25, 1}, border), 1.0, 1e-12);
  EXPECT_EQ(sample(v, {0, -0.25, 1}, scipy), -7);
  EXPECT_NEAR(sample(v, {0, 2.4, 2.6}, zeros), 2.88, 1e-12);
  EXPECT_NEAR(sample(v, {0, 2.4, 2.6}, border), 12, 1e-12);
  EXPECT_NEAR(sample(v, {0, -0.5, 1}, itk), 1, 1e-12);  // half a voxel outside is inside, below; not above
  EXPECT_EQ(sample(v, {0, 2.5, 1}, itk), -7);
}

TEST(ReferenceSample, VotesForTheLowestOfTheLargest) {
  const volume v = line({5, 2, 9});
  EXPECT_EQ(vote(v, {0, 0, 0.25}, outside::edge, 0), 5);
  EXPECT_EQ(vote(v, {0, 0, 0.5}, outside::edge, 0), 2);
  EXPECT_EQ(vote(v, {0, 0, 1.5}, outside::edge, 0), 2);
  EXPECT_EQ(vote(v, {0, 0, 2.5}, outside::edge, 0), 9);
  EXPECT_EQ(vote(v, {0, 0, 2.5}, outside::blend_constant, 0), 0);
  EXPECT_EQ(vote(v, {0, 0, 2.4}, outside::blend_constant, 0), 9);
  // Two corners together beat a larger single one.
  const volume square({1, 2, 2}, std::vector<double>{4, 1, 1, 3});
  EXPECT_EQ(vote(square, {0, 0.45, 0.45}, outside::edge, 0), 1);
}

TEST(ReferenceCoordinates, SmoothsBeforeReducing) {
  EXPECT_NEAR(antialias_skimage(2), 0.5, printed);
  EXPECT_NEAR(antialias_skimage(3.5), 1.25, printed);
  EXPECT_NEAR(antialias_cardoso(2), 0.7355342550, printed);
  EXPECT_NEAR(antialias_cardoso(3.5), 1.4243559602, printed);
}

// Affine maps

TEST(ReferenceRotation, BuildsEveryLibrarysMatrix) {
  const affine monai2d = monai_affine_2d(pi / 6, {0.1, 0.2}, {3, -2}, {1.1, 0.9});
  const std::array row0{0.8426279442, -0.3720577137, 3.1248711306};
  const std::array row1{0.7405255888, 0.8244228634, 0.1875644347};
  EXPECT_NEAR(monai2d.linear[1][1], row0[0], printed);
  EXPECT_NEAR(monai2d.linear[1][2], row0[1], printed);
  EXPECT_NEAR(monai2d.offset[1], row0[2], printed);
  EXPECT_NEAR(monai2d.linear[2][1], row1[0], printed);
  EXPECT_NEAR(monai2d.linear[2][2], row1[1], printed);
  EXPECT_NEAR(monai2d.offset[2], row1[2], printed);

  const matrix nnunet = nnunet_linear({0.1, 0.2, 0.3}, 1.2);
  expect_near(nnunet[0], std::array{1.1235520363, -0.3301150168, 0.2620207958});
  expect_near(nnunet[1], std::array{0.3475553732, 1.1477101030, -0.0443484162});
  expect_near(nnunet[2], std::array{-0.2384031970, 0.1174120740, 1.1702043926});

  const matrix monai = monai_affine({0.1, 0.2, 0.3}, {0, 0, 0, 0, 0, 0}, {0, 0, 0}, {1, 1, 1}).linear;
  expect_near(monai[0], std::array{0.9362933636, -0.2896294776, 0.1986693308});
  expect_near(monai[1], std::array{0.3129918258, 0.9447024860, -0.0978433950});
  expect_near(monai[2], std::array{-0.1593450793, 0.1537919980, 0.9751703272});

  expect_near(itk_euler(0.1, 0.2, 0.3)[0], std::array{0.9304320637, -0.2940438366, 0.2187107613});
}

TEST(ReferenceRotation, TurnsRowsTheRightWay) {
  volume v({1, 4, 4});
  for (integer i = 0; i < 4; ++i)
    for (integer j = 0; j < 4; ++j) v.at(0, i, j) = static_cast<double>(10 * i + j);
  const affine pull = about({{{1, 0, 0}, {0, 0, -1}, {0, 1, 0}}}, v.center(), v.center());
  const volume out = resampled(v, v.size, pull, {interpolation::linear, outside::edge, 0});
  const std::array first{30.0, 20.0, 10.0, 0.0};
  const std::array last{33.0, 23.0, 13.0, 3.0};
  for (integer j = 0; j < 4; ++j) {
    EXPECT_NEAR(out.at(0, 0, j), first[static_cast<std::size_t>(j)], 1e-12);
    EXPECT_NEAR(out.at(0, 3, j), last[static_cast<std::size_t>(j)], 1e-12);
  }
}

TEST(ReferenceRotation, EnlargesPatchesForRotation) {
  const double a30 = pi / 6;
  EXPECT_EQ(nnunet_initial_patch({128, 128, 128}, {a30, a30, a30}, 0.85), (size3{205, 205, 205}));
  EXPECT_EQ(nnunet_initial_patch({96, 160, 160}, {a30, a30, a30}, 0.85), (size3{191, 257, 219}));
  const size3 flat = nnunet_initial_patch({28, 256, 256}, {pi, pi, pi}, 0.85);
  EXPECT_EQ(flat[1], 301);
  EXPECT_EQ(flat[2], 301);
  const size3 square = nnunet_initial_patch({1, 512, 512}, {pi, 0, 0}, 0.85);
  EXPECT_EQ(square[1], 602);
  EXPECT_EQ(square[2], 602);
  const size3 oblong = nnunet_initial_patch({1, 512, 256}, {pi / 12, 0, 0}, 0.85);
  EXPECT_EQ(oblong[1], 659);
  EXPECT_EQ(oblong[2], 301);
}

TEST(ReferenceRotation, InvertsAndComposesMaps) {
  const affine a = composed(monai_affine({0.4, -0.3, 1.1}, {0.1, 0, 0.2, 0, 0, -0.1}, {3, -2, 5}, {1.2, 0.8, 1}),
                            affine{nnunet_linear({0.1, 0.2, 0.3}, 0.9), {7, 8, 9}});
  const point p{11, -4, 2.5};
  expect_near(inverted(a)(a(p)), p, 1e-12);
  const affine t = torchio_forward({0, 0, 90}, {2, 1, 1}, {1, 2, 3});
  expect_near(t({1, 0, 0}), point{-2, -1, 3}, 1e-12);  // S (R p + t), t = (-1, -2, 3): (2 (0 - 1), 1 - 2, 3)
}

// Elastic deformation

const std::vector<double> control{0, 0, 1, -1, 0.5, 0, 0};

TEST(ReferenceElastic, DisplacesByControlPoints) {
  const auto u = [](double v, double epsilon) {
    return bspline_field_1d(control, control_position(v, 64, 7, epsilon));
  };
  EXPECT_NEAR(u(0, 0.125), 0.1868396589, printed);
  EXPECT_NEAR(u(10, 0.125), 0.5232278912, printed);
  EXPECT_NEAR(u(31.5, 0.125), -0.4166666667, printed);
  EXPECT_NEAR(u(63, 0.125), 0.0934149202, printed);
  EXPECT_NEAR(u(0, 0), 0.1827596029, printed);
  EXPECT_NEAR(u(10, 0), 0.5217081706, printed);
  EXPECT_NEAR(u(63, 0), 0.0913772583, printed);

  // The tensor form along each axis is the one-dimensional one when the other axes are constant.
  for (std::size_t axis = 0; axis < 3; ++axis) {
    size3 size{5, 5, 5};
    size3 voxels{20, 20, 20};
    size[axis] = 7;
    voxels[axis] = 64;
    volume c(size);
    for (integer z = 0; z < size[0]; ++z)
      for (integer y = 0; y < size[1]; ++y)
        for (integer x = 0; x < size[2]; ++x) c.at(z, y, x) = control[static_cast<std::size_t>(size3{z, y, x}[axis])];
    point v{3, 8, 13};
    v[axis] = 10;
    EXPECT_NEAR(bspline_displacement({c, c, c}, v, voxels, 0.125)[axis], 0.5232278912, printed);
  }
}

TEST(ReferenceElastic, KnowsWhenItFolds) {
  EXPECT_NEAR(folding_constant(1), 1.5, 1e-9);
  EXPECT_NEAR(folding_constant(2), 2.046392675, 1e-9);
  EXPECT_NEAR(folding_constant(3), 2.479472335, 2e-9);
  EXPECT_NEAR(16.0625 / folding_constant(2), 7.8491778221, 1e-7);
  EXPECT_NEAR(16.0625 / folding_constant(3), 6.4781928692, 1e-7);
}

TEST(ReferenceElastic, InvertsByIteration) {
  const auto u = [](const point& y) {
    return point{0, 0, 4 * bspline_field_1d(control, control_position(y[2], 64, 7, 0.125))};
  };
  EXPECT_NEAR(inverse_of_displacement({0, 0, 20}, u)[2], 18.5911678829, printed);
  EXPECT_NEAR(inverse_of_displacement({0, 0, 33}, u)[2], 34.6233960315, printed);
  EXPECT_NEAR(20 - u({0, 0, 20})[2], 18.95288, 5e-6);
  EXPECT_NEAR(33 - u({0, 0, 33})[2], 34.70199, 5e-6);
}

TEST(ReferenceBoxes, NeedEveryCorner) {
  const double c = std::cos(pi / 6);
  const double s = std::sin(pi / 6);
  double low[2]{1e9, 1e9};
  double high[2]{-1e9, -1e9};
  for (const double x : {10.0, 30.0})
    for (const double y : {20.0, 60.0}) {
      const double moved[2]{c * (x - 50) - s * (y - 50) + 50, s * (x - 50) + c * (y - 50) + 50};
      for (int k = 0; k < 2; ++k) {
        low[k] = std::fmin(low[k], moved[k]);
        high[k] = std::fmax(high[k], moved[k]);
      }
    }
  EXPECT_NEAR(low[0], 10.3589838486, printed);
  EXPECT_NEAR(low[1], 4.0192378865, printed);
  EXPECT_NEAR(high[0], 47.6794919243, printed);
  EXPECT_NEAR(high[1], 48.6602540378, printed);
}

}  // namespace
