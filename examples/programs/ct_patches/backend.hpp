// SPDX-License-Identifier: Apache-2.0
// Where the patches are made: the same call for the CPU and for a GPU, so that the program chooses when it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/gpu.hpp"
#include "common/timed_runs.hpp"
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

class backend {
public:
  virtual ~backend() = default;
  virtual patches run(const request& which) = 0;
  virtual std::string name() const = 0;
  virtual std::string device() const = 0;
  const run_statistics& spent() const { return spent_; }

protected:
  run_statistics spent_;
};

// The volumes must outlive a CPU backend; a CUDA backend keeps a copy on the device. T is int16 or float.
template <class T>
std::unique_ptr<backend> make_cpu_backend(const recipe& r, const std::vector<volume<T>>& images,
                                          const std::vector<label_volume>& labels, int threads);
template <class T>
std::unique_ptr<backend> make_cuda_backend(const recipe& r, const std::vector<volume<T>>& images,
                                           const std::vector<label_volume>& labels);

}  // namespace suture::examples
