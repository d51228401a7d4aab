// SPDX-License-Identifier: Apache-2.0
// Snippets of README.md and docs/execution.md that need CUDA.
#include <gtest/gtest.h>

#include <cuda_fp16.h>
#include <suture/suture.cuh>

namespace {

// [kernel]
// A kernel of the user's own that takes each voxel of the patch as it is made, here into a layout of 4^3 tokens.
template <class Evaluator>
__global__ void patch_embedding(Evaluator evaluate, std::int32_t sample, float* tokens) {
  const std::int32_t token = static_cast<std::int32_t>(blockIdx.x), voxel = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t z = token / 4 * 4 + voxel / 16, y = token / 2 % 2 * 4 + voxel / 4 % 4,
                     x = token % 2 * 4 + voxel % 4;
  tokens[token * 64 + voxel] = evaluate(sample, z, y, x);
}
// [/kernel]

TEST(Execution, OnAStreamInAGraphAndInAnotherKernel) {
  const suture::grid g{.extents = {12, 14, 13}};
  std::vector<std::int16_t> host(static_cast<std::size_t>(g.voxels()));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::int16_t>(i * 31 % 997);
  suture::cuda_workspace in(host.size() * sizeof(std::int16_t)), out(512 * sizeof(float)),
      token_memory(512 * sizeof(float));
  const auto copy = [](void* to, const void* from, std::size_t bytes) {
    suture::check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy");
  };
  copy(in.span().data(), host.data(), in.span().size());
  cudaStream_t stream;
  suture::check_cuda(cudaStreamCreate(&stream), "stream");

  const std::vector ct{suture::contiguous(reinterpret_cast<const std::int16_t*>(in.span().data()), g)};
  const std::vector<std::uint64_t> ids{7};
  const auto recipe = suture::random_affine{.rotate_deg = 20} | suture::random_crop{.size = {8, 8, 8}} |
                      suture::gaussian_noise{.sigma = 3};
  const auto plan = suture::plan(recipe, ct, {.seed = 5, .sample_ids = ids});
  const auto patches = suture::batch_views(reinterpret_cast<float*>(out.span().data()), plan.output_grids());
  // [cuda]
  const auto pair = suture::image(ct, patches);  // device pointers
  const suture::cuda_workspace workspace(suture::workspace_bytes(plan, pair));
  suture::run(suture::cuda{stream, workspace}, plan, pair);
  // [/cuda]
  suture::check_cuda(cudaStreamSynchronize(stream), "run");
  std::vector<float> made(512), expected(512), tokens(512);
  copy(made.data(), out.span().data(), 2048);

  const std::vector host_ct{suture::contiguous<const std::int16_t>(host.data(), g)};
  const auto on_host = suture::batch_views(expected.data(), plan.output_grids());
  suture::run(suture::cpu{}, plan, suture::image(host_ct, on_host));
  EXPECT_EQ(made, expected);

  suture::check_cuda(cudaMemset(out.span().data(), 0, 2048), "clear");
  {
    const auto& ct_on_host = host_ct.front();
    const auto& patch = patches.front();
    // [resident]
    const suture::resident_volume<std::int16_t> resident(ct_on_host, stream);  // from the host or the device
    const auto from_resident = suture::image(resident.view(), patch);
    // [/resident]
    suture::run(suture::cuda{stream, workspace}, plan, from_resident);
    suture::check_cuda(cudaStreamSynchronize(stream), "resident");
    copy(made.data(), out.span().data(), 2048);
    EXPECT_EQ(made, expected);
  }

  suture::check_cuda(cudaMemset(out.span().data(), 0, 2048), "clear");
  struct batch {
    std::vector<suture::view<const std::int16_t>> ct;
    std::vector<std::uint64_t> ids;
  };
  // The same volume, and another that is smaller and lies elsewhere.
  const std::vector<std::uint64_t> other_ids{8};
  suture::view<const std::int16_t> part = ct.front();
  part.data += 2 * part.stride[0];
  part.grid.extents = {10, 11, 12};
  const std::vector<batch> cohort{{ct, ids}, {{part}, other_ids}};
  constexpr std::uint32_t epochs = 2;
  std::vector<std::vector<float>> trained;
  const auto train_on = [&](const auto& made_patches, cudaStream_t in_stream) {
    suture::check_cuda(cudaStreamSynchronize(in_stream), "train");
    copy(made.data(), made_patches.front().data, 2048);
    trained.push_back(made);
  };
  // [graph]
  // Once, with a plan whose outputs, levels and workspace are the largest; every batch has as many samples:
  cudaGraph_t graph;
  cudaGraphExec_t step;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  const auto captured = suture::run_loaded(suture::cuda{stream, workspace}, plan, pair);
  cudaStreamEndCapture(stream, &graph);
  suture::check_cuda(cudaGraphInstantiate(&step, graph, 0), "instantiate");

  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch)
    for (const batch& b : cohort) {
      const auto next = suture::plan(recipe, b.ct, {.seed = 5, .epoch = epoch, .sample_ids = b.ids});
      suture::load(suture::cuda{stream, workspace}, captured, next, suture::image(b.ct, patches));
      suture::check_cuda(cudaGraphLaunch(step, stream), "launch");
      train_on(patches, stream);
    }
  // [/graph]
  suture::view<const std::int16_t> host_part = host_ct.front();
  host_part.data += 2 * host_part.stride[0];
  host_part.grid.extents = part.grid.extents;
  const std::vector<batch> on_the_cpu{{host_ct, ids}, {{host_part}, other_ids}};
  for (std::uint32_t epoch = 0, k = 0; epoch < epochs; ++epoch)
    for (const batch& b : on_the_cpu) {
      std::vector<float> made_on_cpu(512);
      const auto next = suture::plan(recipe, b.ct, {.seed = 5, .epoch = epoch, .sample_ids = b.ids});
      suture::run(suture::cpu{}, next,
                  suture::image(b.ct, suture::batch_views(made_on_cpu.data(), next.output_grids())));
      EXPECT_EQ(trained[k++], made_on_cpu);
    }
  cudaGraphExecDestroy(step);
  cudaGraphDestroy(graph);

  auto* const device_tokens = reinterpret_cast<float*>(token_memory.span().data());
  // [embedding]
  const auto evaluate = suture::prepare(suture::cuda{stream, workspace}, plan, pair);
  patch_embedding<<<8, 64, 0, stream>>>(evaluate, 0, device_tokens);
  // [/embedding]
  suture::check_cuda(cudaStreamSynchronize(stream), "patch_embedding");
  copy(tokens.data(), device_tokens, 2048);
  for (std::size_t z = 0; z < 8; ++z)
    for (std::size_t y = 0; y < 8; ++y)
      for (std::size_t x = 0; x < 8; ++x) {
        const std::size_t token = z / 4 * 4 + y / 4 * 2 + x / 4, voxel = z % 4 * 16 + y % 4 * 4 + x % 4;
        ASSERT_EQ(tokens[token * 64 + voxel], expected[z * 64 + y * 8 + x]);
      }

  // The same kernel behind a chain that ends in cast<half>, as that of README.md does.
  const auto in_half = suture::plan(recipe | suture::cast<suture::half>{}, ct, {.seed = 5, .sample_ids = ids});
  const auto half_pair = suture::image<suture::half>(ct);
  const suture::cuda_workspace half_workspace(suture::workspace_bytes(in_half, half_pair));
  patch_embedding<<<8, 64, 0, stream>>>(suture::prepare(suture::cuda{stream, half_workspace}, in_half, half_pair), 0,
                                        device_tokens);
  suture::check_cuda(cudaStreamSynchronize(stream), "patch_embedding");
  std::vector<float> half_tokens(512);
  copy(half_tokens.data(), device_tokens, 2048);
  for (std::size_t i = 0; i < 512; ++i) ASSERT_EQ(half_tokens[i], __half2float(__float2half_rn(tokens[i]))) << i;
  cudaStreamDestroy(stream);
}

}  // namespace
