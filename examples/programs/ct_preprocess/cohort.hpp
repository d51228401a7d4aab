// SPDX-License-Identifier: Apache-2.0
// The cases of a cohort: which files belong together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace suture::examples {

struct case_files {
  std::string name;  // the image's file name without .nii, .nii.gz and nnU-Net's _0000
  std::filesystem::path image;
  std::filesystem::path labels;  // empty without --labels
  std::string problem;           // why the case cannot be taken, or nothing
  bool second = false;           // another file has the name of the case, and its results
};

// The NIfTI files of a folder, sorted by name. A pipe, a device or a name that is not UTF-8 is the problem of its case.
// `labels` is empty, or a folder with a file of the image's or the case's name, or a rule such as "{case}_seg.nii.gz",
// relative to `folder`; files that are labels of a case are no cases. Throws suture::error if a folder cannot be read
// or holds no case.
std::vector<case_files> find_cases(const std::filesystem::path& folder, const std::string& labels);

// Makes a small cohort of abdominal phantoms, where it is not there yet: thin slices, thick slices, thin slices stored
// in another orientation, and so on. Images and labels lie in the folders of these names below `folder`.
void make_phantom_cohort(const std::filesystem::path& folder, std::uint64_t seed, int count);

}  // namespace suture::examples
