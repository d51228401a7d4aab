// SPDX-License-Identifier: Apache-2.0
// Masks of real CT volumes, voxel for voxel against flood fill, and what they must look like.
#include <gtest/gtest.h>

#include "common/nifti.hpp"
#include "ref/mask.hpp"
#include "support/source_directory.hpp"
#include "suture/mask/body_mask.hpp"
#include "suture/mask/bounding_box.hpp"

namespace {

using reference::size3;
using bytes = std::vector<std::uint8_t>;

void check_volume(const std::string& file, double least_fraction, double most_fraction) {
  const std::filesystem::path path = support::source_directory() / "examples/data/ct" / file;
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  const auto image = suture::examples::read_image(path);
  const auto& ct = std::get<suture::examples::volume<std::int16_t>>(image);
  const size3 n{ct.grid.extents[0], ct.grid.extents[1], ct.grid.extents[2]};
  const auto in = suture::contiguous(ct.voxels.data(), ct.grid);
  bytes out(ct.voxels.size(), 9);
  const auto to = suture::contiguous(out.data(), ct.grid);
  for (const std::int64_t opening : {0, 1}) {
    suture::largest_component_result result{};
    suture::body_mask(suture::cpu{}, in, to, {&result, 1}, {.opening_radius = opening});
    ASSERT_TRUE(out == reference::body(ct.voxels, n, -300, opening)) << "opening " << opening;
    EXPECT_EQ(result.status, suture::mask_status::ok);
    const auto voxels = static_cast<double>(std::count(out.begin(), out.end(), 1));
    EXPECT_GE(voxels, result.voxels);
    EXPECT_GT(voxels, least_fraction * static_cast<double>(out.size()));
    EXPECT_LT(voxels, most_fraction * static_cast<double>(out.size()));
  }
  // Bone, in many pieces.
  bytes bone(out.size());
  for (std::size_t i = 0; i < bone.size(); ++i) bone[i] = ct.voxels[i] > 226;
  std::vector<std::int32_t> labels(bone.size());
  for (const auto touching : {suture::connectivity::faces, suture::connectivity::corners}) {
    std::uint32_t count = 0;
    suture::label_components(suture::cpu{}, suture::contiguous(bone.data(), ct.grid),
                             suture::contiguous(labels.data(), ct.grid), touching, {&count, 1});
    const auto expected = reference::components(bone, n, static_cast<int>(touching));
    ASSERT_TRUE(labels == expected);
    EXPECT_EQ(count, static_cast<std::uint32_t>(*std::max_element(expected.begin(), expected.end())));
    EXPECT_GT(count, 10u);
  }
  suture::fill_holes(suture::cpu{}, suture::contiguous(bone.data(), ct.grid), to);
  EXPECT_TRUE(out == reference::holes_filled(bone, n, false));
}

TEST(BodyMaskOfCt, Abdomen) { check_volume("abdomen_ct.nii.gz", .2, .8); }
TEST(BodyMaskOfCt, Lung) { check_volume("lung_ct.nii.gz", .2, 1.0); }

}  // namespace
