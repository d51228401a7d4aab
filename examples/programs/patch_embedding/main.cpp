// SPDX-License-Identifier: Apache-2.0
// Augmented CT patches go straight into the patch embedding of a transformer and are never stored; the same features
// come from patches that are. Checks that the bits are the same, on the host as on the device, and times both ways.
#include <bit>
#include <cmath>
#include <iostream>

#include "common/nifti.hpp"
#include "common/output_folder.hpp"
#include "common/phantom.hpp"
#include "common/program.hpp"
#include "common/sample_data.hpp"
#include "job.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

// As an untrained layer has them: uniform within 1 / sqrt(voxels of a token) of zero.
std::vector<float> initial_weights(const embedding& e, std::uint64_t seed) {
  std::vector<float> weights(static_cast<std::size_t>(e.weights()));
  const float unit = 0x1p-23f / std::sqrt(static_cast<float>(e.voxels()));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(static_cast<std::int64_t>(digest_term(i, seed) >> 40) - (1 << 23)) * unit;
  return weights;
}

void require_same_bits(const std::vector<float>& a, const std::vector<float>& b, const std::string& which) {
  const auto same = [](float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); };
  const bool all = a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
  require(all, site{"patch_embedding"}, "the features differ, ", which);
  std::cerr << "same bits: " << which << '\n';
}

// Digest of a batch: n numbers of each sample.
template <class T>
std::string digest_of(const std::vector<T>& values, std::int64_t n) {
  std::uint64_t set = 0;
  for (std::size_t i = 0; i * static_cast<std::size_t>(n) < values.size(); ++i)
    set = combine_digest(
        set, i, digest(contiguous(values.data() + i * static_cast<std::size_t>(n), grid{.extents = {1, 1, n}})));
  return hexadecimal(set);
}

int run_program(int argc, char** argv) {
  std::vector<std::string> images, names;
  std::string sample, backend = "auto", out = "patch_embedding.out";
  std::vector<std::int32_t> patch{96};
  job j;
  CLI::App app{"Embeds augmented CT patches without storing them."};
  app.option_defaults()->always_capture_default();
  app.add_option("--image", images, "CT volumes in HU, .nii or .nii.gz")->type_name("FILE...")->default_str("");
  add_ct_sample_option(app, sample);
  add_backend_option(app, backend);
  app.add_option("--batch-size", j.samples, "number of patches")->check(CLI::Range(1, 1024));
  app.add_option("--seed", j.seed, "number that everything random follows from");
  app.add_option("--epoch", j.epoch, "pass over the data; each draws its own random numbers");
  app.add_option("--patch", patch, "size of a patch in voxels, one number or z y x")
      ->expected(1, 3)
      ->check(CLI::Range(1, 512));
  app.add_option("--token", j.layer.token, "size of a token in voxels, along each axis")->check(CLI::Range(1, 16));
  app.add_option("--features", j.layer.features, "number of features of a token")->check(CLI::Range(1, 1024));
  app.add_option("--out", out, "folder for report.json");
  const auto done = parse_options(app, argc, argv, [&] {
    if (!images.empty() && !sample.empty()) throw CLI::ValidationError("--sample", "excludes --image");
    if (patch.size() == 1) patch.assign(3, patch[0]);
    if (patch.size() != 3) throw CLI::ValidationError("--patch", "takes one number or three");
    j.layer.patch = {patch[0], patch[1], patch[2]};
    for (const std::int32_t n : patch)
      if (n % j.layer.token != 0)
        throw CLI::ValidationError("--patch", std::to_string(n) + " is no multiple of the token's " +
                                                  std::to_string(j.layer.token) + " voxels");
  });
  if (done) return *done;
  backend = chosen_backend(backend, why_no_cuda());
  const output_folder folder(out);

  for (const std::string& path : images) {
    image_volume scan = read_image(path);
    require(scan.index() == 0, site{"--image"}, path,
            ": has voxels that are no Hounsfield units of 16 bits; this example takes CT alone");
    j.scans.push_back(std::get<0>(std::move(scan)));
    names.push_back(fs::path(path).filename().string());
  }
  if (images.empty() && sample == "phantom") {
    j.scans.push_back(make_phantom({.seed = j.seed}).image);
    names.push_back("abdominal CT phantom, seed " + std::to_string(j.seed));
  } else if (images.empty()) {
    sample_volume read = ct_sample(sample);
    j.scans.push_back(std::move(read.image));
    names.push_back(read.name);
  }
  j.weights = initial_weights(j.layer, j.seed);

  const embedded made = backend == "cuda" ? embed_on_cuda(j) : embed_on_cpu(j);
  require_same_bits(made.fused, made.stored, "fused and by way of stored patches");
  if (backend == "cuda") {
    j.repetitions = 1;
    require_same_bits(made.fused, embed_on_cpu(j).fused, "on the device and on the host");
  }

  const auto voxels = static_cast<double>(made.patches.size());
  const std::size_t patch_bytes = made.patches.size() * sizeof(half);
  std::cerr << "fused:  " << voxels / made.fused_seconds * 1e-6 << " million voxels per second\n"
            << "stored: " << voxels / made.stored_seconds * 1e-6 << " million voxels per second, and "
            << static_cast<double>(patch_bytes) * 1e-6 << " MB written and read\n";
  report result = begin_report("patch_embedding", backend, made.device);
  result["scans"] = names;
  result["seed"] = j.seed;
  result["epoch"] = j.epoch;
  result["batch_size"] = j.samples;
  result["patch"] = patch;
  result["token"] = j.layer.token;
  result["features"] = j.layer.features;
  result["image_digest"] = digest_of(made.patches, static_cast<std::int64_t>(made.patches.size()) / j.samples);
  result["feature_digest"] = digest_of(made.fused, static_cast<std::int64_t>(made.fused.size()) / j.samples);
  result["workspace_bytes"] = made.workspace_bytes;
  result["seconds"] = made.fused_seconds;
  result["voxels_per_second"] = voxels / made.fused_seconds;
  result["stored"] = {{"patch_bytes", patch_bytes},
                      {"seconds", made.stored_seconds},
                      {"voxels_per_second", voxels / made.stored_seconds}};
  write_report(fs::path(out) / "report.json", result);
  return 0;
}

}  // namespace
}  // namespace suture::examples

int main(int argc, char** argv) {
  return suture::examples::run_example("patch_embedding", [&] { return suture::examples::run_program(argc, argv); });
}
