// SPDX-License-Identifier: Apache-2.0
// The folder of an example's results: held by one run, with a list of what was begun in it, by which a later run tells
// the program's files from all others.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <set>

#include "common/output_folder.hpp"
#include "common/report.hpp"
#include "common/whole_file.hpp"
#include "support/expect_says.hpp"
#include "support/scratch_folder.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

class output_folders : public support::scratch_folder {
protected:
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (!entry.is_directory()) names.insert(entry.path().lexically_relative(folder).string());
    return names;
  }
  // What f leaves when the program is killed in the middle of it.
  template <class F>
  void killed_in(const F& f) const {
    const pid_t child = fork();
    if (child == 0) {
      f();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
};

TEST_F(output_folders, is_held_by_one_at_a_time) {
  {
    const output_folder first(folder / "out");
    EXPECT_SAYS(output_folder(folder / "out"), "out: another run is at work there");
    const output_folder elsewhere(folder / "other");
  }
  const output_folder again(folder / "out");
  put("file", "x");
  EXPECT_SAYS(output_folder(folder / "file"), "file");
  EXPECT_SAYS(output_folder(folder / "file" / "below"), "the folder cannot be made");
}

TEST_F(output_folders, that_got_no_file_are_gone_if_they_were_made_for_it) {
  { const output_folder out(folder / "a" / "b" / ""); }
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_THROW(
      {
        const output_folder out(folder / "a" / "b");
        fs::create_directories(folder / "a/b/empty");
        throw std::runtime_error("no data");
      },
      std::runtime_error);
  EXPECT_FALSE(fs::exists(folder / "a"));
  {
    const output_folder out(folder / "a" / "b");
    put("a/b/result", "x");
    put("a/neighbor", "mine");
  }
  EXPECT_EQ(files(), (std::set<std::string>{"a/b/.lock", "a/b/result", "a/neighbor"}));
  fs::create_directories(folder / "mine");
  { const output_folder out(folder / "mine"); }
  EXPECT_TRUE(fs::exists(folder / "mine"));
}

TEST_F(output_folders, leaves_nothing_but_results) {
  {
    const output_folder out(folder);
    write_whole({"test"}, folder / "deep.txt", "text");
    fs::create_directories(folder / "a");
    write_whole({"test"}, folder / "a/b.txt", "text");
    EXPECT_SAYS(write_whole({"test"}, folder / "c.txt", [](const fs::path&) { return std::string("no more paper"); }),
                "c.txt: cannot be written: no more paper");
    EXPECT_SAYS(write_whole({"test"}, folder / "none/c.txt", "text"), "none/c.txt: cannot be written");
  }
  EXPECT_EQ(files(), (std::set<std::string>{".lock", "a/b.txt", "deep.txt"}));
}

TEST_F(output_folders, temporary_names_take_no_file_away) {
  // What the names were once, and begin with today.
  const std::string number = std::to_string(getpid());
  const std::set<std::string> users{"r.txt.part" + number, ".probe" + number, ".suture-unfinished-" + number};
  for (const std::string& name : users) put(name, "mine");
  require_writable_folder(folder);
  write_whole({"test"}, folder / "r.txt", "text");
  { const output_folder out(folder); }
  for (const std::string& name : users) EXPECT_EQ(text_of(name), "mine") << name;
  EXPECT_EQ(files().size(), users.size() + 2);  // r.txt and .lock
}

TEST_F(output_folders, a_later_run_removes_what_is_on_the_list_and_unfinished) {
  killed_in([&] {
    output_folder out(folder);
    out.begin("result.txt");
    write_whole({"test"}, folder / "result.txt", "whole");
    write_whole({"test"}, folder / "next.txt", [&](const fs::path& temporary) -> std::string {
      std::ofstream(temporary) << "half";
      kill(getpid(), SIGKILL);
      return {};
    });
  });
  ASSERT_EQ(files().size(), 4U);  // .lock, .unfinished, the result and what is unfinished
  std::string unfinished;
  for (const std::string& name : files())
    if (name.starts_with(unfinished_mark)) unfinished = name;
  ASSERT_FALSE(unfinished.empty());
  EXPECT_EQ(text_of(unfinished), "half");

  // Of the same kind, but on no list.
  put(".suture-unfinished-0123456789abcdef-1", "mine");
  {
    output_folder out(folder);
    EXPECT_FALSE(fs::exists(folder / unfinished));
    EXPECT_TRUE(out.begun("result.txt"));
    EXPECT_FALSE(out.begun("next.txt"));
  }
  // No record tells of the result: it stays on the list.
  {
    output_folder out(folder);
    EXPECT_TRUE(out.begun("result.txt"));
    out.settle("result.txt");
  }
  EXPECT_EQ(files(), (std::set<std::string>{".lock", ".suture-unfinished-0123456789abcdef-1", "result.txt"}));
  EXPECT_FALSE(output_folder(folder).begun("result.txt"));
}

TEST_F(output_folders, a_list_leads_to_no_other_file) {
  const std::string first_line = "suture: files that a run in this folder has begun\n", name(unfinished_mark);
  put("out/kept", "mine");
  put("elsewhere/" + name + "1", "mine");
  fs::create_directories(folder / "out" / (name + "2"));
  fs::create_symlink(folder / "out/kept", folder / "out" / (name + "3"));
  put("out/" + name + "4", "begun");
  put("out/" + name + "5", "cut short");
  const auto entry = [](const std::string& text) { return text + '\0'; };
  put("out/.unfinished", first_line + entry("../elsewhere/" + name + "1") +
                             entry((folder / "elsewhere" / (name + "1")).string()) + entry(name + "2") +
                             entry(name + "3") + entry(name + "4") + name + "5");
  { const output_folder out(folder / "out"); }
  EXPECT_EQ(text_of("elsewhere/" + name + "1"), "mine");
  EXPECT_TRUE(fs::is_directory(folder / "out" / (name + "2")));
  EXPECT_TRUE(fs::is_symlink(folder / "out" / (name + "3")));
  EXPECT_FALSE(fs::exists(folder / "out" / (name + "4")));
  EXPECT_EQ(text_of("out/" + name + "5"), "cut short");
  EXPECT_EQ(text_of("out/kept"), "mine");

  // A list that a kill left without its first line is a list; anything else is the user's.
  for (const std::string& begun : {std::string(), first_line.substr(0, 9), first_line}) {
    put("out/.unfinished", begun);
    { const output_folder out(folder / "out"); }
    EXPECT_FALSE(fs::exists(folder / "out/.unfinished"));
  }
  put("out/.unfinished", "to do: " + name + "5");
  EXPECT_SAYS(output_folder(folder / "out"), "is no list of this program; it is not touched");
  EXPECT_EQ(text_of("out/.unfinished"), "to do: " + name + "5");
  fs::remove(folder / "out/.unfinished");
  ASSERT_EQ(mkfifo((folder / "out/.unfinished").c_str(), 0666), 0);
  EXPECT_SAYS(output_folder(folder / "out"), "is no list of this program");
}

TEST_F(output_folders, only_files_are_read) {
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0666), 0);
  fs::create_symlink(folder / "pipe", folder / "link");
  EXPECT_SAYS(read_report({"test"}, folder / "pipe"), "pipe: is a pipe, not a file");
  EXPECT_SAYS(read_report({"test"}, folder / "link"), "link: is a pipe, not a file");
  EXPECT_SAYS(read_report({"test"}, folder), "is a folder, not a file");
  EXPECT_SAYS(read_report({"test"}, "/dev/null"), "/dev/null: is a device, not a file");
  EXPECT_SAYS(read_report({"test"}, folder / "none"), "none: cannot be read");
  put("file", "{\"a\": 1}");
  EXPECT_EQ(read_report({"test"}, folder / "file")["a"], 1);
}

}  // namespace
