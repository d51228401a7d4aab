// SPDX-License-Identifier: Apache-2.0
#include "common/device.cuh"
#include "steps.hpp"
#include "suture/feed/feed.cuh"

namespace suture::examples {
namespace {

// The views of a batch with their voxels copied to the host, on a stream.
template <class T>
std::vector<view<T>> downloaded(const std::vector<view<T>>& from, std::vector<T>& memory, cudaStream_t stream) {
  std::size_t voxels = 0;
  for (const view<T>& v : from) voxels += static_cast<std::size_t>(v.grid.voxels());
  memory.resize(voxels);
  check_cuda(cudaMemcpyAsync(memory.data(), from[0].data, voxels * sizeof(T), cudaMemcpyDeviceToHost, stream), "feed");
  std::vector<view<T>> to = from;
  for (view<T>& v : to) v.data = memory.data() + (v.data - from[0].data);
  return to;
}

}  // namespace

feed_result feed_on_cuda(const feed_job& j, const feed_progress& done) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  const owned_stream stream;
  std::vector<suture::half> images;
  std::vector<std::uint8_t> labels;
  double step_ms = j.step_ms;
  // The step stands in the stream as the kernels of a network would, and holds back what comes behind it.
  const cudaHostFn_t wait = [](void* ms) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(*static_cast<double*>(ms)));
  };
  feed_result result = take_steps(cuda{stream}, j, done, [&](const auto& batch) {
    check_cuda(cudaLaunchHostFunc(stream, wait, &step_ms), "feed");
    const auto there = std::pair(downloaded(batch.template outputs<0>(), images, stream),
                                 downloaded(batch.template outputs<1>(), labels, stream));
    stream.wait();
    return there;
  });
  result.device = gpu_description();
  return result;
}

}  // namespace suture::examples
