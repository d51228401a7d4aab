// SPDX-License-Identifier: Apache-2.0
// Where the patches are made: the same call for the CPU and for a GPU, so that the program chooses when it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/gpu.hpp"
#include "common/planned_patch.hpp"
#include "common/volume.hpp"
#include "recipe.hpp"

namespace suture::examples {

// Which patches: for each the scan it comes from and its persistent sample id.
struct request {
  std::vector<std::size_t> scans;
  std::vector<std::uint64_t> ids;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  bool evaluation = false;
};

// A finished batch, dense (sample, z, y, x), with the place of every patch in its scan's space.
struct patches {
  std::vector<grid> grids;
  std::vector<grid> regions;  // the patch, not rotated or deformed, where its middle comes from
  std::vector<half> images;
  std::vector<std::uint8_t> labels;
};

template <class Plan>
std::vector<grid> source_regions(const Plan& plan) {
  std::vector<grid> regions;
  for (std::size_t i = 0; i < plan.size(); ++i) regions.push_back(place_of(plan, i));
  return regions;
}

struct statistics {
  double seconds = 0;  // of the runs alone, without reading, planning and copying
  std::size_t workspace_bytes = 0;
  int stages = 0;
  int launches = 0;  // kernels per batch; 0 on the CPU
};

class backend {
public:
  virtual ~backend() = default;
  virtual patches run(const request& which) = 0;
  virtual std::string name() const = 0;
  virtual std::string device() const = 0;
  const statistics& spent() const { return spent_; }

protected:
  statistics spent_;
};

// The volumes must outlive a CPU backend; a CUDA backend keeps a copy on the device. T is int16 or float.
template <class T>
std::unique_ptr<backend> make_cpu_backend(const recipe& r, const std::vector<volume<T>>& images,
                                          const std::vector<label_volume>& labels, int threads);
template <class T>
std::unique_ptr<backend> make_cuda_backend(const recipe& r, const std::vector<volume<T>>& images,
                                           const std::vector<label_volume>& labels);

}  // namespace suture::examples
