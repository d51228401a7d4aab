// SPDX-License-Identifier: Apache-2.0
// Every example works as README.md, docs/ and its --help name it: without arguments, on files of one's own, and with
// each option that chooses other data or results. What goes wrong is said in terms of the command line and leaves
// nothing behind.
#include <gtest/gtest.h>

#include <fstream>

#include "support/example_program.hpp"
#include "support/source_directory.hpp"

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

std::string sample(const std::string& name) { return std::string(SUTURE_SAMPLES) + "/" + name; }
const std::string ct = sample("ct/abdomen_ct.nii.gz"), organs = sample("ct/abdomen_ct_labels.nii.gz"),
                  lung = sample("ct/lung_ct.nii.gz"), mr = sample("mri/abdomen_mr.nii.gz"),
                  mr_organs = sample("mri/abdomen_mr_labels.nii.gz"),
                  slide_file = sample("histology/CMU-1-Small-Region.svs"), breast_a = sample("histology/breast_a.png"),
                  breast_b = sample("histology/breast_b.png"), head_and_neck = sample("histology/headneck_tcga.png"),
                  lesions = sample("mri/ms19_lesions.nii.gz"),
                  zarr = (support::source_directory() / "tests/zarr/arrays/case").string();

words brain(const std::string& option = "--images") {
  words all{option};
  for (const char* name : {"t1", "t1post", "t2", "flair"})
    all.push_back(sample("mri/ms19_" + std::string(name) + ".nii.gz"));
  return all;
}
words operator+(words a, const words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class example_forms : public support::example_program {
protected:
  void copy(const std::string& from, const std::string& to) const {
    fs::create_directories((folder / "here" / to).parent_path());
    fs::copy_file(from, folder / "here" / to);
  }
  // What lies in the folder where the program ran.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "here"))
      names.push_back(entry.path().lexically_relative(folder / "here").string());
    return names;
  }
  // The form works and leaves these files, none of them empty and no other begun.
  void expect_works(const std::string& name, const words& arguments, const words& files) const {
    EXPECT_EQ(run_here(name, arguments).status, 0) << name << ": " << said();
    for (const std::string& file : files) {
      std::error_code status;
      EXPECT_GT(fs::file_size(folder / "here" / file, status), 0u) << name << " made no " << file << ": " << said();
      EXPECT_FALSE(status) << name << " made no " << file << ": " << said();
    }
    for (const std::string& file : left()) EXPECT_EQ(file.find("unfinished"), file.npos) << file;
  }
  // One sentence about an option, the exit status, and no file or folder.
  void expect_refused(const std::string& name, const words& arguments, int status, const words& says) const {
    EXPECT_EQ(run_here(name, arguments).status, status) << name << ": " << said();
    for (const std::string& word : says)
      EXPECT_NE(said().find(word), std::string::npos) << name << " does not say " << word << ": " << said();
    // The reason is without the name of the library; the advice on a build without optimization has it.
    for (std::size_t at = said().find("suture:"); at != std::string::npos; at = said().find("suture:", at + 1))
      EXPECT_EQ(said().compare(at, 17, "suture: compiled "), 0) << said();
    EXPECT_EQ(left(), std::vector<std::string>{}) << name;
  }
};

const words sheet{"contact_sheet.png", "report.json"}, timeline{"timeline.png", "report.json"};
words in(const std::string& folder, words files) {
  for (std::string& file : files) file = folder + "/" + file;
  return files;
}

TEST_F(example_forms, without_arguments) {
  expect_works("minimal", {}, {});
  expect_works("ct_patches", {}, in("ct_patches.out", sheet));
  expect_works("brats_patches", {}, in("brats_patches.out", sheet));
  expect_works("nnunet_batch", {}, in("nnunet_batch.out", sheet));
  expect_works("ct_preprocess", {},
               in("ct_preprocess.out", {"fingerprint.json", "report.json", "images/abdomen_ct.nii.gz",
                                        "images/lung_ct.nii.gz", "sheets/abdomen_ct.png", "sheets/lung_ct.png"}));
  expect_works("wsi_tiles", {}, in("wsi_tiles.out", sheet + words{"overview_0.png"}));
  expect_works("patch_embedding", {}, {"patch_embedding.out/report.json"});
  expect_works("feed", {}, in("feed.out", timeline));
}

TEST_F(example_forms, help) {
  for (const char* name :
       {"ct_patches", "brats_patches", "nnunet_batch", "ct_preprocess", "wsi_tiles", "patch_embedding", "feed"}) {
    expect_works(name, {"--help"}, {});
    EXPECT_NE(said().find("--out"), std::string::npos) << said();
    EXPECT_EQ(left(), std::vector<std::string>{}) << name;
  }
}

TEST_F(example_forms, ct_patches_of_own_files) {
  expect_works("ct_patches", {"--image", ct, lung, "--count", "2"}, in("ct_patches.out", sheet));
  expect_works("ct_patches", {"--image", ct, "--label", organs, "--eval", "--count", "2", "--out", "named"},
               in("named", sheet));
  expect_works("ct_patches",
               {"--sample", "phantom", "--patch", "24", "32", "32", "--spacing", "4", "--count", "2", "--save-nifti",
                "--out", "saved"},
               in("saved", sheet + words{"patch_0001_image.nii.gz", "patch_0001_labels.nii.gz"}));
}

TEST_F(example_forms, brats_patches_of_own_files) {
  expect_works("brats_patches", brain() + words{"--label", lesions, "--count", "4"}, in("brats_patches.out", sheet));
  expect_works("brats_patches", {"--sample", "phantom", "--numbering", "1_2_3", "--count", "2", "--eval"},
               in("brats_patches.out", sheet));
  expect_works("brats_patches", {"--patch", "44", "96", "80", "--count", "1", "--numbering", "decathlon"},
               in("brats_patches.out", sheet));
}

TEST_F(example_forms, nnunet_batch_of_own_files) {
  const words small{"--patch", "40", "64", "64", "--count", "2"};
  expect_works("nnunet_batch", words{"--image", ct, "--label", organs, "--spacing", "3"} + small,
               in("nnunet_batch.out", sheet));
  expect_works("nnunet_batch",
               words{"--image", mr, "--label", mr_organs, "--normalization", "zscore", "--spacing", "0"} + small,
               in("nnunet_batch.out", sheet));
}

TEST_F(example_forms, ct_preprocess_of_own_files) {
  copy(ct, "imagesTr/one_0000.nii.gz");
  copy(organs, "labelsTr/one.nii.gz");
  expect_works("ct_preprocess",
               {"--in", "imagesTr", "--labels", "labelsTr", "--out", "prepared", "--spacing", "nnunet"},
               in("prepared", {"images/one.nii.gz", "labels/one.nii.gz", "sheets/one.png", "report.json"}));
  copy(ct, "scans/two.nii.gz");
  copy(organs, "scans/two_seg.nii.gz");
  expect_works("ct_preprocess", {"--in", "scans", "--labels", "{case}_seg.nii.gz", "--spacing", "6", "3", "3"},
               in("ct_preprocess.out", {"images/two.nii.gz", "labels/two.nii.gz", "sheets/two.png", "report.json"}));
  expect_works("ct_preprocess", {"--sample", "phantom", "--spacing", "5", "--out", "phantoms"},
               in("phantoms", {"fingerprint.json", "report.json"}));
}

TEST_F(example_forms, wsi_tiles_of_own_files) {
  const words few{"--count", "4"};
  expect_works("wsi_tiles", words{"--slide", slide_file, "--stains", "stains", "--reference", head_and_neck} + few,
               in("wsi_tiles.out", sheet + words{"overview_0.png"}) + words{"stains/CMU-1-Small-Region.svs.json"});
  expect_works("wsi_tiles", words{"--tiles", breast_a, breast_b} + few, in("wsi_tiles.out", sheet));
  expect_works("wsi_tiles", words{"--sample", "phantom", "--tile", "64"} + few,
               in("wsi_tiles.out", sheet + words{"overview_1.png"}));
}

TEST_F(example_forms, patch_embedding_of_own_files) {
  expect_works("patch_embedding", {"--image", ct, lung, "--patch", "32", "--features", "8"},
               {"patch_embedding.out/report.json"});
}

TEST_F(example_forms, feed_of_own_files) {
  const words few{"--count", "4", "--step-ms", "5"};
  expect_works("feed", words{"--image", ct, lung} + few, in("feed.out", timeline));
  expect_works("feed", words{"--image", ct, "--label", organs, "--eval", "--out", "named"} + few,
               in("named", timeline));
  expect_works(
      "feed",
      words{"--image", zarr, ct, "--label", zarr, organs, "--patch", "24", "--depth", "1", "--readers", "3"} + few,
      in("feed.out", timeline));
  expect_works("feed", words{"--sample", "phantom", "--patch", "24", "--spacing", "4"} + few, in("feed.out", timeline));
}

TEST_F(example_forms, mistakes_name_the_option_and_leave_nothing) {
  for (const char* name :
       {"ct_patches", "brats_patches", "nnunet_batch", "ct_preprocess", "wsi_tiles", "patch_embedding", "feed"})
    expect_refused(name, {"--no-such-option"}, 2, {name, "--no-such-option", "--help"});
  for (const char* name : {"ct_patches", "brats_patches", "nnunet_batch", "patch_embedding", "feed"})
    expect_refused(name, {"--patch", "16", "16"}, 2, {"--patch: takes one number or three"});
  expect_refused("brats_patches", {"--patch", "96"}, 1, {"--patch: ", "larger than the volume", "44 x 159 x 140"});
  expect_refused("brats_patches", brain() + words{"--label", "none.nii.gz"}, 1, {"none.nii.gz: no such file"});
  expect_refused("brats_patches", brain(), 2, {"--images: and --label go together"});
  expect_refused("ct_patches", {"--image", "none.nii.gz"}, 1, {"none.nii.gz: no such file"});
  expect_refused("ct_patches", {"--image", breast_a, "--out", "a/b/c"}, 1, {"breast_a.png", "not a NIfTI-1 file"});
  expect_refused("ct_patches", {"--image", ct, "--label", lesions}, 1, {"ms19_lesions", "differ", "resample"});
  expect_refused("nnunet_batch", {"--image", ct, "--label", "none.nii.gz"}, 1, {"none.nii.gz: no such file"});
  expect_refused("patch_embedding", {"--patch", "20"}, 2, {"--patch: 20 is no multiple"});
  expect_refused("ct_preprocess", {"--in", "none"}, 1, {"--in: none: cannot be read"});
  expect_refused("wsi_tiles", {"--slide", "none.svs"}, 1,
                 {"none.svs: cannot be opened: there is no such file", "--slide"});
  expect_refused("feed", {"--memory-mb", "1"}, 1, {"--memory-mb: ", "batch 0"});
  expect_refused("feed", {"--image", ct, "--memory-mb", "1"}, 1,
                 {"--memory-mb: ", "abdomen_ct.nii.gz", "is compressed"});
  expect_refused("feed", {"--image", ct, "--label", lesions}, 1, {"ms19_lesions", "differ", "resample"});
  expect_refused("feed", {"--image", "."}, 1, {"expected an array of Zarr v3"});
  expect_refused("wsi_tiles", {"--tile", "4096", "--mpp", "2"}, 1, {"--tile: ", "does not fit the slide"});
}

}  // namespace
