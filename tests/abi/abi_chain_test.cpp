// SPDX-License-Identifier: Apache-2.0
// Chains that cross from Python: a module makes the voxels that plan and run make, and a request that does not fit is
// refused.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/abi_request.hpp"
#include "support/expect_says.hpp"
#include "suture/abi/chain.hpp"
#include "suture/suture.hpp"

namespace ct {
using moved = suture::sampling<suture::linear, suture::default_value, suture::nearest>;
using operations =
    suture::chain<suture::random_affine, moved, suture::random_crop, suture::window, suture::gaussian_noise>;
}  // namespace ct

SUTURE_ABI_CHAIN(ct::operations, suture::abi::image_slot<std::int16_t, float>,
                 suture::abi::level_slot<std::uint8_t, std::uint8_t, suture::remap>,
                 suture::abi::label_slot<std::uint8_t, std::uint8_t>)

namespace suture {
namespace {

// A batch of two volumes with two label maps, and what a module and plain C++ make of it.
struct batch {
  static constexpr extent3 in{12, 20, 24}, out{6, 8, 16}, half{3, 4, 8};
  static constexpr std::size_t samples = 2;
  static std::size_t voxels(const extent3& n) { return static_cast<std::size_t>(n[0] * n[1] * n[2]); }

  std::vector<grid> grids{samples, {in, {2.5, .8, .8}, {-10, 20, 30}}};
  std::vector<std::int16_t> image = std::vector<std::int16_t>(samples * voxels(in));
  std::vector<std::uint8_t> first = std::vector<std::uint8_t>(image.size()), second = first;
  std::vector<std::uint64_t> ids{41, 7};

  batch() {
    for (std::size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<std::int16_t>(static_cast<int>(i * 7919 % 2400) - 1000);
      first[i] = static_cast<std::uint8_t>(i / 37 % 3);
      second[i] = static_cast<std::uint8_t>(i / 11 % 5);
    }
  }
};

struct made {
  std::vector<float> image = std::vector<float>(batch::samples * batch::voxels(batch::out));
  std::vector<std::uint8_t> first = std::vector<std::uint8_t>(image.size()), second = first;
  std::vector<std::uint8_t> level = std::vector<std::uint8_t>(batch::samples * batch::voxels(batch::half));
};

// The views of samples that lie one after the other.
template <class T>
std::vector<view<T>> views_of_each(T* data, const std::vector<grid>& grids) {
  std::vector<view<T>> all;
  for (std::size_t i = 0; i < grids.size(); ++i)
    all.push_back(contiguous(data + i * batch::voxels(grids[i].extents), grids[i]));
  return all;
}
template <class T>
std::vector<abi::array> arrays_of(const std::vector<view<T>>& views) {
  std::vector<abi::array> all;
  for (const auto& v : views) {
    abi::array a{const_cast<void*>(static_cast<const void*>(v.data)),
                 {},
                 {v.stride[0], v.stride[1], v.stride[2]},
                 v.channels,
                 v.channel_stride,
                 {},
                 {},
                 {},
                 {},
                 {}};
    abi::write_grid(v.grid, a);
    all.push_back(a);
  }
  return all;
}
abi::bound bound_of(const std::vector<abi::array>& arrays) {
  return {arrays.data(), static_cast<std::int64_t>(arrays.size()), 0};
}

grid halved(const grid& g) {
  grid h = g;
  for (int k = 0; k < 3; ++k) h.extents[k] = g.extents[k] / 2, h.spacing[k] = g.spacing[k] * 2;
  return h;
}

TEST(abi_chain, a_module_makes_what_plan_and_run_make) {
  const batch b;
  const remap conversion{.table = {{2, 5}}, .others = {}};
  const auto plain =
      plan(random_affine{.rotate_deg = 15, .scale = {.8f, 1.2f}, .shear = {-.05f, .1f}, .translate = {1, 2, 3}} |
               ct::moved{.border = {-1024, image_rim::faces}, .label_outside = 4} | random_crop{.size = batch::out} |
               window{.center = 40, .width = 400} | gaussian_noise{.sigma = {.01f, .1f}, .probability = .5f},
           b.grids, {.seed = 3, .epoch = 2, .sample_ids = b.ids});
  std::vector<grid> outs, halves;
  for (std::size_t i = 0; i < batch::samples; ++i) {
    outs.push_back(plain.output_grid(i));
    halves.push_back(halved(outs.back()));
  }
  made by_hand, by_module;
  run(cpu{.threads = 1}, plain,
      image(views_of_each(b.image.data(), b.grids), views_of_each(by_hand.image.data(), outs)),
      labels(views_of_each(b.first.data(), b.grids), views_of_each(by_hand.first.data(), outs), conversion,
             deep_supervision(views_of_each(by_hand.level.data(), halves))),
      labels(views_of_each(b.second.data(), b.grids), views_of_each(by_hand.second.data(), outs)));

  const auto in_image = arrays_of(views_of_each(b.image.data(), b.grids));
  const auto in_first = arrays_of(views_of_each(b.first.data(), b.grids));
  const auto in_second = arrays_of(views_of_each(b.second.data(), b.grids));
  const std::vector<label_change> changes{{2, 5}};
  std::vector<abi::array> placed(batch::samples);
  filled planning{.numbers = {-15,  15,  -15, 15, -15, 15, .8, 1.2, .8, 1.2, .8, 1.2,          // random_affine
                              -.05, .1,  -1,  1,  -2,  2,  -3, 3,   1,  0,   1,  -1024, 0, 4,  // sampling
                              6,    8,   16,  1,                                               // random_crop
                              40,   400, 0,   1,  0,                                           // window
                              .01,  .1,  0,   .5,                                              // gaussian_noise
                              0,    0},                                                        // remap
                  .lists = {list_of(changes)},
                  .results = {{placed.data(), batch::samples, sizeof(abi::array)}},
                  .inputs = {bound_of(in_image), bound_of(in_first), bound_of(in_second)}};
  planning.r.samples = batch::samples;
  planning.r.sample_ids = b.ids.data();
  planning.r.id_count = batch::samples;
  planning.r.seed = 3;
  planning.r.epoch = 2;
  EXPECT_EQ(suture_version(), abi::version);
  void* handle = nullptr;
  ASSERT_EQ(suture_plan(&planning.get(), &handle), 0) << suture_error();
  for (std::size_t i = 0; i < batch::samples; ++i) {
    EXPECT_EQ(abi::grid_of(placed[i]).extents, batch::out);
    EXPECT_EQ(abi::grid_of(placed[i]).origin, outs[i].origin);
  }

  const std::vector<std::int64_t> levels{0, 1, 0};
  const auto out_image = arrays_of(views_of_each(by_module.image.data(), outs));
  const auto out_first = arrays_of(views_of_each(by_module.first.data(), outs));
  const auto out_level = arrays_of(views_of_each(by_module.level.data(), halves));
  const auto out_second = arrays_of(views_of_each(by_module.second.data(), outs));
  filled running{.lists = {list_of(levels)},
                 .outputs = {bound_of(out_image), bound_of(out_first), bound_of(out_level), bound_of(out_second)}};
  running.r.samples = batch::samples;
  running.r.threads = 1;
  std::uint64_t bytes = 0;
  EXPECT_EQ(suture_workspace(handle, &running.get(), &bytes), 0) << suture_error();
  ASSERT_EQ(suture_run(handle, &running.get()), 0) << suture_error();
  EXPECT_EQ(0, std::memcmp(by_module.image.data(), by_hand.image.data(), by_hand.image.size() * sizeof(float)));
  EXPECT_EQ(by_module.first, by_hand.first);
  EXPECT_EQ(by_module.level, by_hand.level);
  EXPECT_EQ(by_module.second, by_hand.second);
  EXPECT_NE(by_hand.first, by_hand.second);
  EXPECT_TRUE(std::count(by_hand.first.begin(), by_hand.first.end(), 5) > 0);

  const char* drawn = nullptr;
  ASSERT_EQ(suture_drawn(handle, &drawn), 0);
  EXPECT_EQ(drawn, drawn_text(plain));
  abi::geometry maps{};
  suture_geometry(handle, &maps);
  EXPECT_EQ(maps.samples, 2);
  EXPECT_EQ(abi::geometry_of(maps)[1].output.origin, outs[1].origin);

  // What does not fit is refused, and the plan is as it was.
  const auto refused = [&](std::vector<std::int64_t> wrong_levels, std::vector<abi::bound> wrong_outputs) {
    filled wrong{.lists = {list_of(wrong_levels)}, .outputs = std::move(wrong_outputs)};
    wrong.r.samples = batch::samples;
    EXPECT_EQ(suture_run(handle, &wrong.get()), 1);
    return std::string(suture_error());
  };
  expect_parts(refused({0, 1}, running.outputs), {"levels: expected 3 numbers, got 2"});
  expect_parts(refused({0, 0, 0}, running.outputs), {"levels: expected 1 or more, got 0"});
  expect_parts(refused({1, 1, 0}, running.outputs), {"levels: expected 0 for an image, got 1"});
  expect_parts(refused({0, 1, 0}, {running.outputs[0]}), {"output: expected more than 1 outputs"});
  expect_parts(refused({0, 1, 0}, {running.outputs[0], running.outputs[1], running.outputs[2], running.outputs[3],
                                   running.outputs[0]}),
               {"request: expected", "4 outputs", "5"});
  ASSERT_EQ(suture_run(handle, &running.get()), 0) << suture_error();
  suture_free(handle);

  const auto plan_says = [&](auto&& change) {
    filled wrong = planning;
    change(wrong);
    void* none = nullptr;
    EXPECT_EQ(suture_plan(&wrong.get(), &none), 1);
    EXPECT_EQ(none, nullptr);
    return std::string(suture_error());
  };
  expect_parts(plan_says([](filled& f) { f.numbers.pop_back(); }), {"remap: others", "numbers"});
  expect_parts(plan_says([](filled& f) { f.numbers.push_back(0); }), {"plan: request: expected 41 numbers", "got 42"});
  expect_parts(plan_says([](filled& f) { f.lists.clear(); }), {"remap: table: expected more than 0 lists"});
  expect_parts(plan_says([](filled& f) { f.inputs.pop_back(); }), {"input: expected more than 2 inputs"});
  expect_parts(plan_says([](filled& f) { f.results.clear(); }), {"grids: expected more than 0 results"});
  expect_parts(plan_says([](filled& f) { f.results[0].count = 1; }), {"grids: expected room for 2 elements, got 1"});
}

}  // namespace
}  // namespace suture
