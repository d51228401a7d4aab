// SPDX-License-Identifier: Apache-2.0
// Gray morphology against a look at every voxel of the element, and against scipy.ndimage.
#include "suture/mask/gray_morphology.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ref/mask.hpp"

namespace {

using reference::size3;
using suture::element_shape;

const std::vector<suture::structuring_element> elements{
    {},
    {element_shape::box, {1, 1, 1}},
    {element_shape::box, {0, 2, 5}},
    {element_shape::box, {0, 0, 63}},
    {element_shape::box, {0, 0, 0}},
    {element_shape::cross, {2, 2, 2}},
    {element_shape::ball, {3, 3, 3}},
    {element_shape::ball, {0, 5, 5}},
};

template <class T>
double number(T v) {
  return static_cast<double>(suture::storage<T>::load(v));
}
template <>
double number(std::int32_t v) {
  return v;
}

template <class T>
T value_of(std::mt19937& engine) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(engine());
  else
    return suture::storage<T>::store(static_cast<float>(static_cast<int>(engine() % 20000) - 10000) / 8);
}

template <class T>
class GrayMorphology : public testing::Test {};
using types = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, float, suture::half,
                             suture::bfloat16>;
TYPED_TEST_SUITE(GrayMorphology, types);

TYPED_TEST(GrayMorphology, LooksAtEveryVoxelOfTheElement) {
  using T = TypeParam;
  std::mt19937 engine(1);
  for (const size3& n : {size3{1, 1, 1}, size3{1, 16, 17}, size3{3, 1, 127}, size3{5, 6, 15}}) {
    const suture::grid g{.extents = {n[0], n[1], n[2]}};
    std::vector<T> image(static_cast<std::size_t>(g.voxels())), out(image.size());
    for (auto& v : image) v = value_of<T>(engine);
    std::vector<double> numbers;
    for (const T v : image) numbers.push_back(number(v));
    for (const auto& e : elements)
      for (const bool greatest : {false, true})
        for (const std::optional<double> border : {std::optional<double>{}, std::optional<double>{100}}) {
          const auto pick = [&](double a, double b) { return greatest ? std::max(a, b) : std::min(a, b); };
          const auto expected = reference::over_element(numbers, n, static_cast<int>(e.shape),
                                                        size3{e.radius[0], e.radius[1], e.radius[2]}, pick,
                                                        [&](double a) { return border ? pick(a, *border) : a; });
          const auto from = suture::contiguous(image.data(), g), to = suture::contiguous(out.data(), g);
          if (greatest)
            suture::gray_dilation(suture::cpu{1}, from, to, e, border);
          else
            suture::gray_erosion(suture::cpu{2}, from, to, e, border);
          for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(number(out[i]), expected[i]) << e.radius;
        }
  }
}

TEST(GrayMorphologyOfFloats, LeavesOutNaN) {
  const float nan = std::nanf("");
  const std::vector<float> image{nan, nan, nan, 3, nan, -2, 7, nan};
  std::vector<float> out(8);
  const suture::grid g{.extents = {1, 1, 8}};
  const suture::structuring_element e{element_shape::box, {0, 0, 1}};
  suture::gray_dilation(suture::cpu{1}, suture::contiguous(image.data(), g), suture::contiguous(out.data(), g), e);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  EXPECT_EQ(std::vector<float>(out.begin() + 2, out.end()), (std::vector<float>{3, 3, 3, 7, 7, 7}));
  suture::gray_erosion(suture::cpu{1}, suture::contiguous(image.data(), g), suture::contiguous(out.data(), g), e);
  EXPECT_EQ(std::vector<float>(out.begin() + 2, out.end()), (std::vector<float>{3, 3, -2, -2, -2, 7}));
}

// Every other column of one image into a column of another.
TEST(GrayMorphologyOfViews, WithStrides) {
  std::mt19937 engine(2);
  std::vector<std::int16_t> image(4 * 9 * 14), dense(4 * 9 * 7), expected(4 * 9 * 7);
  for (auto& v : image) v = static_cast<std::int16_t>(engine());
  for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = image[2 * i];
  const suture::grid g{.extents = {4, 9, 7}};
  const suture::view<const std::int16_t> from{image.data(), g, {126, 14, 2}};
  std::vector<std::int16_t> spread(dense.size() * 3, 77);
  const suture::view<std::int16_t> to{spread.data(), g, {189, 21, 3}};
  suture::gray_erosion(suture::cpu{1}, from, to, {element_shape::ball, {2, 2, 2}});
  expected = reference::over_element(
      dense, {4, 9, 7}, 2, {2, 2, 2}, [](std::int16_t a, std::int16_t b) { return std::min(a, b); },
      [](std::int16_t a) { return a; });
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(spread[3 * i], expected[i]);
    ASSERT_EQ(spread[3 * i + 1], 77);
  }
}

TEST(GrayMorphologyOfViews, BadInput) {
  std::vector<std::uint8_t> image(24), out(24);
  const suture::grid g{.extents = {2, 3, 4}};
  const auto from = suture::contiguous(image.data(), g), to = suture::contiguous(out.data(), g);
  EXPECT_THROW(suture::gray_erosion(suture::cpu{1}, from, to, {element_shape::box, {-1, 1, 1}}), suture::error);
  EXPECT_THROW(suture::gray_erosion(suture::cpu{1}, from, to, {element_shape::ball, {1, 2, 2}}), suture::error);
  EXPECT_THROW(suture::gray_erosion(suture::cpu{1}, from, to, {}, 256), suture::error);
  EXPECT_THROW(suture::gray_erosion(suture::cpu{1}, from, to, {}, .5), suture::error);
  std::vector<suture::half> halves(24), results(24);
  EXPECT_THROW(suture::gray_erosion(suture::cpu{1}, suture::contiguous(halves.data(), g),
                                    suture::contiguous(results.data(), g), {}, 1e6),
               suture::error);
  EXPECT_THROW(suture::gray_dilation(suture::cpu{1}, from, from), suture::error);
  std::byte little[256];
  EXPECT_THROW(suture::gray_dilation(suture::cpu{1, {little, 1}}, from, to, {element_shape::box, {1, 1, 1}}),
               suture::error);
}

}  // namespace
