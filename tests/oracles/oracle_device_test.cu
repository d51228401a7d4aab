// SPDX-License-Identifier: Apache-2.0
// One test body on both executors, against SciPy and the reference; and the same bits from both.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/executors.cuh"
#include "support/expect_close.hpp"
#include "support/itk_bspline.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "support/training_recipe.hpp"
#include "suture/ops/geometry/flip.hpp"
#include "suture/ops/value/cast.hpp"
#include "suture/replay/json.hpp"

namespace {

using reference::size3;
using support::expect_close;
using support::oracle_case;
using support::range_of;

template <class Executor>
class Executors : public testing::Test {};

struct executor_names {
  template <class Executor>
  static std::string GetName(int) {
    return std::string(Executor::name);
  }
};
using executors = testing::Types<support::host_executor, support::device_executor>;
TYPED_TEST_SUITE(Executors, executors, executor_names);

// A batch of one image.
template <class Executor, class Out, class In, class Operations>
std::vector<Out> image_on(const Operations& operations, const std::vector<In>& x, const suture::grid& g) {
  const std::vector<suture::grid> batch{g};
  const auto plan = suture::plan(operations, batch);
  typename Executor::template buffer<In> in(x);
  typename Executor::template buffer<Out> out(std::vector<Out>(static_cast<std::size_t>(plan.output_grid(0).voxels())));
  const auto in_view = suture::contiguous(in.data(), g);
  const auto out_view = suture::contiguous(out.data(), plan.output_grid(0));
  Executor::run(plan, suture::image(in_view, out_view));
  return out.values();
}

template <class Executor, class Sampling>
void expect_scipy(const oracle_case& c, const Sampling& sampling, double tolerance) {
  const bool clear = tolerance == 0 || c.has("mode", "constant");  // of where values jump
  const auto x = c.input<float>("x");
  const auto geometry = support::geometry_of(support::scipy_pull(c.params), c.params.at("output_shape").get<size3>());
  const suture::grid g = support::voxel_grid(support::size_from(x.shape));
  expect_close(image_on<Executor, float>(geometry | sampling, x.values, g), c.output<double>("y").values,
               tolerance * range_of(x.values), clear ? c.output<double>("ok").values : std::vector<double>{});
}

TYPED_TEST(Executors, SampleAsScipyDoes) {
  using suture::sampling;
  const auto each = [](int order, const char* mode, const auto& use) {
    const auto is_so = [=](const oracle_case& c) {
      return c.has("order", order) && c.has("mode", mode) && c.input_type("x") != "|u1";
    };
    support::for_each_oracle(support::calls("scipy.ndimage.affine_transform", is_so), use);
  };
  each(0, "nearest",
       [](const oracle_case& c) { expect_scipy<TypeParam>(c, sampling<suture::nearest, suture::edge>{}, 0); });
  each(1, "mirror",
       [](const oracle_case& c) { expect_scipy<TypeParam>(c, sampling<suture::linear, suture::mirror>{}, 1e-5); });
  each(1, "grid-constant", [](const oracle_case& c) {
    expect_scipy<TypeParam>(c, sampling<suture::linear>{.border = {c.params.at("cval")}}, 1e-5);
  });
  each(1, "constant", [](const oracle_case& c) {
    const suture::default_value border{c.params.at("cval"), suture::image_rim::centers};
    expect_scipy<TypeParam>(c, sampling<suture::linear, suture::default_value>{.border = border}, 1e-5);
  });
  each(3, "constant", [](const oracle_case& c) {
    const suture::default_value border{c.params.at("cval"), suture::image_rim::centers};
    expect_scipy<TypeParam>(c, sampling<suture::cubic_bspline, suture::default_value>{.border = border}, 3e-5);
  });
  each(3, "reflect", [](const oracle_case& c) {
    expect_scipy<TypeParam>(c, sampling<suture::cubic_bspline, suture::reflect>{}, 3e-5);
  });
  each(3, "nearest",
       [](const oracle_case& c) { expect_scipy<TypeParam>(c, sampling<suture::cubic_bspline, suture::edge>{}, 3e-5); });
}

TYPED_TEST(Executors, DeformByTheCoefficientsOfItk) {
  support::for_each_oracle(support::itk_bsplines_with("linear"), [](const oracle_case& c) {
    const support::itk_bspline b(c);
    const auto x = c.input<float>("x");
    typename TypeParam::template buffer<float> values(b.values);
    suture::elastic how = b.how;
    how.control_values = {values.data(), b.values.size()};
    const suture::sampling<suture::linear, suture::default_value> as_itk{.border = {c.params.at("default")}};
    expect_close(image_on<TypeParam, float>(how | as_itk, x.values, b.grid), c.output<double>("y").values,
                 1e-5 * range_of(x.values), b.clear(false));
  });
}

template <class Executor, class T>
void expect_copies() {
  for (const suture::extent3& n : {suture::extent3{1, 1, 1}, {3, 15, 17}, {17, 16, 1}, {2, 3, 127}}) {
    const suture::grid g{.extents = n};
    std::vector<T> x;
    for (std::int64_t i = 0; i < g.voxels(); ++i)
      x.push_back(suture::storage<T>::store(static_cast<float>(i * 37 % 251) - 100));
    const auto mirrored = suture::flip{{true, false, true}} | suture::cast<T>{};
    const std::vector<T> y = image_on<Executor, T>(mirrored, x, g);
    const std::vector<T> back = image_on<Executor, T>(mirrored, y, g);
    EXPECT_EQ(std::memcmp(back.data(), x.data(), x.size() * sizeof(T)), 0);
    for (std::int64_t z = 0, i = 0; z < n[0]; ++z)
      for (std::int64_t yy = 0; yy < n[1]; ++yy)
        for (std::int64_t xx = 0; xx < n[2]; ++xx, ++i) {
          const auto from = static_cast<std::size_t>(((n[0] - 1 - z) * n[1] + yy) * n[2] + n[2] - 1 - xx);
          ASSERT_EQ(std::memcmp(&y[static_cast<std::size_t>(i)], &x[from], sizeof(T)), 0);
        }
  }
}

TYPED_TEST(Executors, MirrorExactly) {
  expect_copies<TypeParam, std::uint8_t>();
  expect_copies<TypeParam, std::int16_t>();
  expect_copies<TypeParam, suture::half>();
}

struct recipe_result {
  std::vector<float> images;
  std::vector<std::uint8_t> labels;
};

// Uses the plan of the whole recipe for the batch with views in the executor's memory.
template <class Executor, class Use>
recipe_result with_recipe(const support::recipe& r, const std::vector<support::sample_data>& batch, Use&& use) {
  std::vector<typename Executor::template buffer<std::int16_t>> image_memory;
  std::vector<typename Executor::template buffer<std::uint8_t>> label_memory;
  std::vector<suture::view<const std::int16_t>> images;
  std::vector<suture::view<const std::uint8_t>> labels;
  std::vector<std::uint64_t> ids;
  for (const support::sample_data& s : batch) {
    image_memory.emplace_back(s.image);
    label_memory.emplace_back(s.labels);
    images.push_back(suture::contiguous<const std::int16_t>(image_memory.back().data(), s.grid(), 2));
    labels.push_back(suture::contiguous<const std::uint8_t>(label_memory.back().data(), s.grid()));
    ids.push_back(s.id);
  }
  const auto plan = suture::plan(support::training(r), images, {.seed = r.seed, .epoch = r.epoch, .sample_ids = ids});
  const auto voxels = static_cast<std::size_t>(r.patch[0] * r.patch[1] * r.patch[2]);
  typename Executor::template buffer<float> image_out(std::vector<float>(2 * voxels * batch.size()));
  typename Executor::template buffer<std::uint8_t> label_out(std::vector<std::uint8_t>(voxels * batch.size()));
  const std::vector<suture::grid> grids = plan.output_grids();
  const auto image_views = suture::batch_views(image_out.data(), grids, 2);
  const auto label_views = suture::batch_views(label_out.data(), grids);
  use(plan, suture::image(images, image_views), suture::labels(labels, label_views));
  return {image_out.values(), label_out.values()};
}

template <class Executor>
recipe_result run_recipe(const support::recipe& r, const std::vector<support::sample_data>& batch) {
  return with_recipe<Executor>(r, batch, [](const auto& plan, const auto&... bound) { Executor::run(plan, bound...); });
}

TYPED_TEST(Executors, DrawAndComputeWhatTheDefinitionsSay) {
  const support::recipe r;
  const std::vector<support::sample_data> batch = support::make_batch();
  const recipe_result result = run_recipe<TypeParam>(r, batch);
  const auto voxels = static_cast<std::ptrdiff_t>(r.patch[0] * r.patch[1] * r.patch[2]);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    SCOPED_TRACE("sample " + std::to_string(i));
    const support::expectation e(r, batch[i]);
    const auto first = result.images.begin() + static_cast<std::ptrdiff_t>(2 * i) * voxels;
    expect_close(std::vector<float>(first, first + voxels), e.image(0), 3.5e-5);
    const auto label = result.labels.begin() + static_cast<std::ptrdiff_t>(i) * voxels;
    expect_close(std::vector<std::uint8_t>(label, label + voxels), e.nearest_labels(), 0, e.away_from_ties());
  }
}

bool same_bits(const recipe_result& a, const recipe_result& b) {
  return a.images.size() == b.images.size() &&
         std::memcmp(a.images.data(), b.images.data(), a.images.size() * sizeof(float)) == 0 && a.labels == b.labels;
}

TEST(Device, GivesTheBitsOfTheHost) {
  const support::recipe r;
  const std::vector<support::sample_data> batch = support::make_batch();
  EXPECT_TRUE(same_bits(run_recipe<support::device_executor>(r, batch), run_recipe<support::host_executor>(r, batch)));
}

TEST(Device, ReplaysAPlanReadFromJson) {
  const support::recipe r;
  const std::vector<support::sample_data> batch = support::make_batch();
  const recipe_result replayed =
      with_recipe<support::device_executor>(r, batch, [&](const auto& plan, const auto&... bound) {
        const std::string text = suture::to_json(plan).dump();
        const auto again = suture::plan_from_json(support::training(r), nlohmann::ordered_json::parse(text));
        support::device_executor::run(again, bound...);
      });
  EXPECT_TRUE(same_bits(replayed, run_recipe<support::host_executor>(r, batch)));
}

// A kernel of the user's own: every voxel asked for alone, written where the user likes.
template <class Evaluator>
__global__ void own_kernel(Evaluator evaluate, std::int32_t samples, suture::vec3<std::int32_t> n, float* images,
                           std::uint8_t* labels) {
  const std::int32_t voxels = n[0] * n[1] * n[2];
  const auto i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= samples * voxels) return;
  const std::int32_t number = i / voxels;
  const std::int32_t at = i % voxels;
  const std::int32_t z = at / (n[1] * n[2]);
  const std::int32_t y = at / n[2] % n[1];
  const std::int32_t x = at % n[2];
  for (std::int32_t channel = 0; channel < 2; ++channel)
    images[(2 * number + channel) * voxels + at] = evaluate(number, z, y, x, channel);
  labels[i] = evaluate.template get<1>(number, z, y, x);
}

TEST(Device, EvaluatesTheSameBitsInsideAnotherKernel) {
  const support::recipe r;
  const std::vector<support::sample_data> batch = support::make_batch();
  const recipe_result fused =
      with_recipe<support::device_executor>(r, batch, [&](const auto& plan, const auto& image, const auto& labels) {
        const suture::cuda_workspace workspace(suture::workspace_bytes(plan, image, labels));
        const auto evaluate = suture::prepare(suture::cuda{.workspace = workspace}, plan, image, labels);
        const auto samples = static_cast<std::int32_t>(batch.size());
        const suture::vec3<std::int32_t> n{static_cast<std::int32_t>(r.patch[0]), static_cast<std::int32_t>(r.patch[1]),
                                           static_cast<std::int32_t>(r.patch[2])};
        own_kernel<<<static_cast<unsigned>((samples * n[0] * n[1] * n[2] + 127) / 128), 128>>>(
            evaluate, samples, n, image.out[0].data, labels.out[0].data);
        suture::check_cuda(cudaGetLastError(), "own_kernel");
        suture::check_cuda(cudaDeviceSynchronize(), "own_kernel");
      });
  EXPECT_TRUE(same_bits(fused, run_recipe<support::host_executor>(r, batch)));
}

}  // namespace
