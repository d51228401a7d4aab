// SPDX-License-Identifier: Apache-2.0
// What the program that preprocesses a cohort leaves in its folder: a run killed at any moment leaves nothing that a
// later run does not put right, one run is at work at a time, and no file that is not the program's is lost or hangs
// it.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "support/ct_preprocess.hpp"

namespace {

using namespace support;

TEST_F(ct_preprocess, killed_at_any_moment_it_goes_on_to_the_same_files) {
  add_good_cases();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(arguments("whole", {"--spacing", "1.5"})), 0) << errors();
  auto longest = static_cast<unsigned>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count());
  const auto whole = results("whole");
  // 3 images, label maps, sheets, records of both passes, and the fingerprint.
  ASSERT_EQ(whole.size(), 3u * 5 + 1);

  // Whatever has its final name is whole.
  const auto expect_whole_files = [&] {
    for (const auto& [name, content] : results("out")) {
      if (name.find(".suture-unfinished-") != name.npos || name == ".unfinished") continue;
      const auto expected = whole.find(name);
      ASSERT_NE(expected, whole.end()) << name;
      ASSERT_TRUE(content == expected->second) << name << " is not what it should be";
    }
  };
  std::mt19937 random(17);
  int killed = 0;
  for (int round = 0; round < 4; ++round) {
    for (int kills = 0, attempt = 0; kills < 4 && attempt < 20; ++attempt) {
      const pid_t child = start(arguments("out", {"--spacing", "1.5", "--workers", round < 2 ? "1" : "2"}));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
      kill(child, SIGKILL);
      if (finish(child) == -SIGKILL) {
        ++kills, ++killed;
      } else {  // too late: it had come to its end
        longest = std::max(longest / 2, 1000u);
        fs::remove_all(folder / "out");
      }
      expect_whole_files();
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(run(arguments("out", {"--spacing", "1.5"})), 0) << errors();
    EXPECT_EQ(results("out"), whole);
    // The next round begins with nothing, or with some of it gone.
    if (round % 2 == 0) {
      fs::remove(folder / "out/images/thin.nii.gz");
      fs::remove(folder / "out/records/turned.json");
      fs::remove(folder / "out/records/fingerprints/thick.json");
    } else {
      fs::remove_all(folder / "out");
    }
  }
  EXPECT_GE(killed, 10);
}

TEST_F(ct_preprocess, one_run_at_a_time_in_a_folder) {
  add_good_cases();
  fs::create_directories(folder / "out");
  const int lock = open((folder / "out/.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);  // as another run would hold it
  EXPECT_EQ(run(arguments("out", {"--spacing", "4"})), 1);
  EXPECT_NE(errors().find("another run is at work"), std::string::npos) << errors();
  close(lock);
  EXPECT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
}

// A file with this text, in folders that are made for it.
void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST_F(ct_preprocess, removes_no_file_that_it_did_not_make) {
  add_good_cases();
  const fs::path out = folder / "out";
  // Names that an earlier version took for its own, that this one makes, and of what it lists.
  std::map<std::string, std::string> users;
  for (const char* place : {"", "images/", "labels/", "sheets/", "records/", "records/fingerprints/"})
    for (const char* name : {"mine.part1", "scan.nii.gz.part123", ".probe1", ".suture-unfinished-mine",
                             ".suture-unfinished-0123456789abcdef-1", "thin.nii.gz.part77"})
      users[std::string(place) + name] = std::string("the user's ") + name;
  users["records/notes.json"] = "{\"case\": \"another\"}";
  users["records/fingerprints/notes.json"] = "[]";
  users["images/other.nii.gz"] = "of another case";
  for (const auto& [name, text] : users) put(out / name, text);
  fs::create_directories(out / "images/folder.part2/within");
  put(out / "images/folder.part2/within/file.part3", "deep");
  put(folder / "elsewhere", "elsewhere");
  fs::create_symlink(folder / "elsewhere", out / "images/link.part4");
  fs::create_symlink(folder / "elsewhere", out / "images/.suture-unfinished-00000000000000ff-4");
  fs::create_symlink(folder / "nowhere", out / "records/dangling.part5");

  const auto expect_untouched = [&] {
    for (const auto& [name, text] : users) EXPECT_EQ(text_of(out / name), text) << name;
    EXPECT_EQ(text_of(out / "images/folder.part2/within/file.part3"), "deep");
    EXPECT_EQ(text_of(folder / "elsewhere"), "elsewhere");
    for (const char* link :
         {"images/link.part4", "images/.suture-unfinished-00000000000000ff-4", "records/dangling.part5"})
      EXPECT_TRUE(fs::is_symlink(out / link)) << link;
  };
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
  expect_untouched();
  // A run that is stopped and one that goes on after it.
  const pid_t child = start(arguments("out", {"--spacing", "3"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(child, SIGKILL);
  finish(child);
  expect_untouched();
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 0) << errors();
  expect_untouched();
  // Cases that turn bad take along what is theirs.
  fs::remove_all(folder / "seg");
  fs::create_directories(folder / "seg");
  ASSERT_EQ(run(arguments("out", {"--spacing", "3"})), 3) << errors();
  expect_untouched();
  EXPECT_FALSE(fs::exists(out / "images/thin.nii.gz"));
}

TEST_F(ct_preprocess, removes_what_a_killed_run_left_unfinished) {
  add_good_cases();
  const auto unfinished = [&] {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "out"))
      count += entry.path().filename().string().starts_with(".suture-unfinished-");
    return count;
  };
  // Stopped while a file has its temporary name, as soon as there is one.
  int seen = 0;
  for (int attempt = 0; attempt < 40 && seen < 2; ++attempt) {
    const pid_t child = start(arguments("out", {"--spacing", "1.2", "--threads", "1"}));
    for (int i = 0; i < 20000; ++i) {
      std::error_code ignored;
      bool open = false;
      for (fs::recursive_directory_iterator at(folder / "out", ignored), end; at != end; at.increment(ignored))
        open = open || at->path().filename().string().starts_with(".suture-unfinished-");
      if (open) break;
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) break;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    kill(child, SIGKILL);
    finish(child);
    seen += unfinished() > 0;
  }
  ASSERT_GT(seen, 0);
  ASSERT_EQ(run(arguments("out", {"--spacing", "1.2"})), 0) << errors();
  EXPECT_EQ(unfinished(), 0U);
  EXPECT_FALSE(fs::exists(folder / "out/.unfinished"));
}

TEST_F(ct_preprocess, replaces_no_result_that_is_not_its_own) {
  add_good_cases();
  // The user's data set lies where the results would: images and labels of the same names.
  const fs::path data = folder / "out";
  fs::rename(folder / "in", folder / "moved");
  fs::create_directories(data);
  fs::rename(folder / "moved", data / "images");
  fs::rename(folder / "seg", data / "labels");
  const auto before = results("out");
  const std::vector<std::string> words{"--in",      (data / "images").string(),
                                       "--labels",  (data / "labels").string(),
                                       "--out",     data.string(),
                                       "--spacing", "4",
                                       "--opening", "0"};
  EXPECT_EQ(run(words), 3) << errors();
  EXPECT_NE(errors().find("no record tells that this program made it"), std::string::npos) << errors();
  const auto after = results("out");
  for (const auto& [name, content] : before) EXPECT_TRUE(after.at(name) == content) << name;

  // Nor a report or a fingerprint that is none.
  for (const char* name : {"report.json", "fingerprint.json"})
    for (const char* text : {"{\"mine\": 1}", "no JSON"}) {
      const fs::path other = folder / "other";
      fs::remove_all(other);
      put(other / name, text);
      EXPECT_EQ(run({"--sample", "phantom", "--count", "1", "--spacing", "20", "--out", other.string()}), 1);
      EXPECT_NE(errors().find(std::string(name) + ": lies there and is no"), std::string::npos) << errors();
      EXPECT_EQ(text_of(other / name), text);
    }
}

TEST_F(ct_preprocess, a_damaged_record_costs_no_finished_case) {
  add_good_cases();
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
  const auto first = results("out");
  const fs::path record = folder / "out/records/thin.json";
  const std::string good = first.at("records/thin.json");
  const auto changed = [&](const auto& change) {
    report content = report::parse(good);
    change(content);
    return content.dump() + '\n';
  };
  const std::string deep(30000, '[');
  const std::vector<std::pair<const char*, std::string>> damages{
      {"no image digest", changed([](report& r) { r.erase("image_digest"); })},
      {"an image digest that is a number", changed([](report& r) { r["image_digest"] = 7; })},
      {"an image digest without digits", changed([](report& r) { r["image_digest"] = "no digits at all"; })},
      {"no case", changed([](report& r) { r.erase("case"); })},
      {"no label voxels", changed([](report& r) { r.erase("label_voxels"); })},
      {"two label voxels", changed([](report& r) {
         r["label_voxels"] = {1, 2};
       })},
      {"files that are no list", changed([](report& r) { r["files"] = "all"; })},
      {"a file of somebody else", changed([](report& r) { r["files"]["../in/thin.nii.gz"] = 1; })},
      {"nested too deep", "{\"key\": " + deep + std::string(30000, ']') + ", \"case\": 1, \"files\": 2}"},
      {"cut short", good.substr(0, good.size() / 2)},
      {"a list", "[]"},
      {"empty", ""}};
  for (const auto& [what, text] : damages) {
    std::ofstream(record) << text;
    ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << what << ": " << errors();
    EXPECT_NE(errors().find("a damaged record does not count: suture: record: " + record.string() + ": "),
              std::string::npos)
        << what << ": " << errors();
    EXPECT_EQ(text_of(record.string() + ".damaged"), text) << what;
    fs::remove(record.string() + ".damaged");
    EXPECT_EQ(report_of("out")["kept"], 2) << what;
    EXPECT_EQ(results("out"), first) << what;
    EXPECT_TRUE(fs::exists(folder / "in/thin.nii.gz")) << what;
  }

  // With other settings the files that nothing tells of stay as they are, and the case is named.
  std::ofstream(record) << changed([](report& r) { r.erase("image_digest"); });
  ASSERT_EQ(run(arguments("out", {"--spacing", "5"})), 3) << errors();
  EXPECT_NE(errors().find("thin: --out: "), std::string::npos) << errors();
  EXPECT_EQ(results("out").at("images/thin.nii.gz"), first.at("images/thin.nii.gz"));
  EXPECT_EQ(report_of("out")["made"], 2);
  // With these they are the program's again.
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
  fs::remove(record.string() + ".damaged");
  EXPECT_EQ(results("out"), first);

  // The record of a fingerprint is no more than a saved minute.
  const fs::path fingerprint = folder / "out/records/fingerprints/thin.json";
  for (const std::string& text :
       {changed([](report&) {}), std::string("{}"), "{\"fingerprint\": " + deep, std::string()}) {
    std::ofstream(fingerprint) << text;
    ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
    EXPECT_EQ(report_of("out")["kept"], 3);
    fs::remove(fingerprint.string() + ".damaged");
    EXPECT_EQ(results("out"), first);
  }
}

TEST_F(ct_preprocess, cases_whose_names_end_alike_share_no_record) {
  add_case("A", centered({9, 40, 44}, {5.5, 1.5, 1.4}), 1);
  add_case("A.fingerprint", centered({22, 36, 38}, {2, 1.6, 1.6}), 2);
  add_case("A.json", centered({20, 30, 34}, {2, 1.6, 1.6}), 3);
  add_case("fingerprints", centered({20, 30, 34}, {2, 1.6, 1.6}), 4);
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
  EXPECT_EQ(report_of("out")["made"], 4);
  const auto first = results("out");
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
  EXPECT_EQ(report_of("out")["kept"], 4);
  EXPECT_EQ(results("out"), first);

  // Records of fingerprints as they lay before are found: a run that has them reads no image to the end.
  for (const char* name : {"A", "A.json", "fingerprints"})
    fs::rename(
        folder / "out/records/fingerprints" / (std::string(name) + ".json"),
        folder / "out/records" / (std::string(name) + (name == std::string("A") ? ".old" : ".fingerprint.json")));
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 0) << errors();
  EXPECT_EQ(report_of("out")["kept"], 4);
  EXPECT_EQ(errors().find("fingerprint: 3"), std::string::npos) << errors();
  EXPECT_NE(errors().find("fingerprint: 1 of 1"), std::string::npos) << errors();
  fs::remove(folder / "out/records/A.old");
  EXPECT_EQ(results("out"), first);

  // A case named like another's file does not lose its results to it.
  label_volume labels;
  const auto image = make_image(centered({9, 40, 44}, {5.5, 1.5, 1.4}), 5, &labels);
  write_nifti(folder / "in/A.nii", image);
  add_case("A.nii", centered({9, 40, 44}, {5.5, 1.5, 1.4}), 6);
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 3) << errors();
  EXPECT_EQ(report_of("out")["made"], 5);
  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 3) << errors();
  EXPECT_EQ(report_of("out")["kept"], 5);
}

TEST_F(ct_preprocess, reads_files_and_names_what_is_none) {
  add_good_cases();
  const grid g = centered({9, 40, 44}, {5.5, 1.5, 1.4});
  label_volume labels;
  const auto image = make_image(g, 1, &labels);
  ASSERT_EQ(mkfifo((folder / "in/pipe.nii.gz").c_str(), 0666), 0);
  write_nifti(folder / "seg/pipe.nii.gz", labels);
  fs::create_symlink("/dev/zero", folder / "in/device.nii");
  write_nifti(folder / "seg/device.nii", labels);
  const int plug = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string place = (folder / "in/plug.nii").string();
  ASSERT_LT(place.size(), sizeof address.sun_path);
  place.copy(address.sun_path, place.size());
  ASSERT_EQ(bind(plug, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(plug);
  write_nifti(folder / "in/piped_labels.nii.gz", image);
  ASSERT_EQ(mkfifo((folder / "seg/piped_labels.nii.gz").c_str(), 0666), 0);
  // Where records and lists of the program would be read.
  fs::create_directories(folder / "out/records/fingerprints");
  ASSERT_EQ(mkfifo((folder / "out/records/thin.json").c_str(), 0666), 0);
  ASSERT_EQ(mkfifo((folder / "out/records/fingerprints/thick.json").c_str(), 0666), 0);

  const pid_t child = start(arguments("out", {"--spacing", "4"}));
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (ended == 0) {
    kill(child, SIGKILL);
    finish(child);
    FAIL() << "it hangs: " << errors();
  }
  EXPECT_EQ(WEXITSTATUS(status), 3) << errors();
  EXPECT_EQ(report_of("out")["made"], 3);
  for (const char* words : {"pipe.nii.gz is a pipe, not a file", "device.nii is a device, not a file",
                            "plug.nii is a socket, not a file", "piped_labels.nii.gz is a pipe, not a file"})
    EXPECT_NE(errors().find(words), std::string::npos) << words << " not in " << errors();
  EXPECT_EQ(report_of("out")["left_out"].size(), 4U);
}

TEST_F(ct_preprocess, names_a_loop_of_links_and_a_name_that_is_not_utf8) {
  add_good_cases();
  fs::copy_file(folder / "seg/thin.nii.gz", folder / "seg/loop.nii");
  fs::create_symlink("loop.nii", folder / "in/loop.nii");
  const std::string latin = "caf\xe9.nii.gz";
  fs::copy_file(folder / "in/thin.nii.gz", folder / "in" / latin);
  fs::copy_file(folder / "seg/thin.nii.gz", folder / "seg" / latin);
  fs::copy_file(folder / "in/thin.nii.gz", folder / "in/of_looping_labels.nii.gz");
  fs::create_symlink("of_looping_labels.nii.gz", folder / "seg/of_looping_labels.nii.gz");

  ASSERT_EQ(run(arguments("out", {"--spacing", "4"})), 3) << errors();
  const report told = report_of("out");
  EXPECT_EQ(told["made"], 3);
  std::map<std::string, std::string> reasons;
  for (const report& c : told["left_out"]) reasons[c.at("case")] = c.at("reason");
  ASSERT_EQ(reasons.size(), 3U) << errors();
  EXPECT_EQ(reasons["caf\xef\xbf\xbd"], "its name is not UTF-8");  // U+FFFD for the byte that is not
  EXPECT_NE(reasons["loop"].find("loop.nii"), std::string::npos) << reasons["loop"];
  EXPECT_NE(reasons["loop"].find("symbolic links"), std::string::npos) << reasons["loop"];
  EXPECT_NE(reasons["of_looping_labels"].find("seg/of_looping_labels.nii.gz"), std::string::npos);
  EXPECT_NE(errors().find("caf\xe9: its name is not UTF-8"), std::string::npos) << errors();
  // Those that remain are as without them.
  fs::remove(folder / "in/loop.nii");
  fs::remove(folder / "in" / latin);
  fs::remove(folder / "in/of_looping_labels.nii.gz");
  ASSERT_EQ(run(arguments("clean", {"--spacing", "4"})), 0) << errors();
  EXPECT_EQ(results("out"), results("clean"));
}

TEST_F(ct_preprocess, finishes_where_a_sentence_names_a_folder_that_is_not_utf8) {
  add_good_cases();
  fs::rename(folder / "seg", folder / "s\xe9g");
  fs::remove(folder / "s\xe9g/thin.nii.gz");
  ASSERT_EQ(run({"--in", (folder / "in").string(), "--labels", (folder / "s\xe9g").string(), "--out",
                 (folder / "out").string(), "--opening", "0", "--spacing", "4"}),
            3)
      << errors();
  EXPECT_EQ(report_of("out")["made"], 2);
  EXPECT_EQ(report_of("out")["left_out"].size(), 1U);
}

}  // namespace
