// SPDX-License-Identifier: Apache-2.0
// The CT recipe and its parts on the device.
//   ct_device [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
// Without a device, and without --tiny under an emulator, there is nothing to measure.
#include "cuda_machine.cuh"

// After the executor it runs on.
#include "ct_rows.hpp"

namespace {

using suture::check_cuda;

class ct_on_device : public bench::cuda_machine {
public:
  // With the rows of the volume one after the other, or as a resident_volume has them.
  ct_on_device(const bench::ct_volume& host, const cudaDeviceProp& device, double seconds, bool resident)
      : cuda_machine(device, seconds), host_(host) {
    // Copies of one volume in memory of their own, as many as the sets of the smallest row touch.
    std::size_t free_bytes = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total), "memory");
    const std::size_t each = host.image.size() * 3;
    const std::size_t count = seconds > 0 ? std::clamp<std::size_t>(free_bytes / 8 / each, 2, 32) : 2;
    for (std::size_t i = 0; i < count; ++i) {
      if (resident) {
        images_.push_back(resident_images_.emplace_back(host_image()).view());
        labels_.push_back(resident_labels_.emplace_back(host_labels()).view());
      } else {
        packed_images_.emplace_back(host.image.size()).assign(host.image.data());
        packed_labels_.emplace_back(host.labels.size()).assign(host.labels.data());
        images_.push_back(suture::contiguous<const std::int16_t>(packed_images_.back().data(), host.grid));
        labels_.push_back(suture::contiguous<const std::uint8_t>(packed_labels_.back().data(), host.grid));
      }
    }
  }

  suture::view<const std::int16_t> host_image() const { return suture::contiguous(host_.image.data(), host_.grid); }
  suture::view<const std::uint8_t> host_labels() const { return suture::contiguous(host_.labels.data(), host_.grid); }
  suture::view<const std::int16_t> image(std::size_t i) { return images_[i % images_.size()]; }
  suture::view<const std::uint8_t> labels(std::size_t i) { return labels_[i % labels_.size()]; }

private:
  const bench::ct_volume& host_;
  std::vector<buffer<std::int16_t>> packed_images_;
  std::vector<buffer<std::uint8_t>> packed_labels_;
  std::vector<suture::resident_volume<std::int16_t>> resident_images_;
  std::vector<suture::resident_volume<std::uint8_t>> resident_labels_;
  std::vector<suture::view<const std::int16_t>> images_;
  std::vector<suture::view<const std::uint8_t>> labels_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::options chosen = bench::parse(argc, argv);
  if (!chosen.good) return 2;
  const bench::scene scene = chosen.tiny ? bench::tiny_scene() : bench::scene{};
  cudaDeviceProp device{};
  if (!bench::find_device(device, chosen.tiny)) return 0;
  const bench::ct_volume volume = bench::make_ct_volume(scene.volume);
  ct_on_device machine(volume, device, chosen.seconds, false), resident(volume, device, chosen.seconds, true);
  bench::add_rows(machine, scene, {2, 16}, "");
  bench::add_rows(resident, scene, {2}, "/resident");
  bench::add_context(device, machine);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return bench::any_failed ? 1 : 0;
}
