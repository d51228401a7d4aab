// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/fingerprint_json.hpp"
#include "common/whole_file.hpp"
#include "suture/image/digest.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;
constexpr site here{"record"};

std::uint64_t digest_of(std::string_view bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
    sum += digest_term(i, word);
  }
  return mix64(sum + bytes.size());
}

void require_case(const report& content, const std::string& name) {
  require(content.is_object() && content.at("key").is_string(), here, "it has no key");
  require(content.at("case") == name, here, "it is of case ", content.at("case").get<std::string>());
}

void require_hexadecimal(const report& digest, const char* field) {
  require(digest.is_string(), here, field, " is no digest");
  const auto text = digest.get<std::string>();
  require(text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos, here, field, " is no digest");
}

template <class Check>
found_record read_record(const fs::path& path, const Check& check) {
  std::error_code status;
  if (!fs::exists(fs::symlink_status(path, status))) return {};
  try {
    report content = read_report(here, path);
    try {
      check(content);
    } catch (const report::exception& problem) {  // a field that is missing or of another type
      fail(here, path.string(), ": ", problem.what());
    } catch (const error& problem) {
      fail(here, path.string(), ": ", problem.what());
    }
    return {std::move(content), {}};
  } catch (const error& problem) {
    return {{}, problem.what()};
  }
}

}  // namespace

std::array<std::string, 3> result_names(const std::string& name) {
  return {"labels/" + name + ".nii.gz", "images/" + name + ".nii.gz", "sheets/" + name + ".png"};
}

std::string file_digest(const fs::path& path) {
  const site here{"input"};
  require_regular_file(here, path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require(file.good(), here, path.string(), ": cannot be read: ", std::strerror(errno));
  std::vector<char> piece(std::size_t{1} << 22);
  std::uint64_t sum = 0, size = 0;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<std::size_t>(file.gcount());
    if (got == 0) break;
    sum = combine_digest(sum, size, digest_of({piece.data(), got}));
    size += got;
  }
  require(file.eof(), here, path.string(), ": cannot be read: ", std::strerror(errno));
  return hexadecimal(mix64(sum + size));
}

std::string key_of(const report& document) { return hexadecimal(digest_of(document.dump())); }

found_record read_case_record(const fs::path& path, const std::string& name) {
  return read_record(path, [&](const report& content) {
    require_case(content, name);
    require_hexadecimal(content.at("image_digest"), "image_digest");
    if (content.contains("label_digest")) {
      require_hexadecimal(content.at("label_digest"), "label_digest");
      content.at("label_voxels").get<std::array<std::uint64_t, 256>>();
    }
    const auto names = result_names(name);
    require(content.at("files").is_object(), here, "its files are no list");
    for (const auto& [file, bytes] : content.at("files").items())
      require(std::find(names.begin(), names.end(), file) != names.end() && bytes.is_number_unsigned(), here,
              "it lists a file that is none of the case: ", file);
  });
}

found_record read_fingerprint_record(const fs::path& path, const std::string& name) {
  return read_record(path, [&](const report& content) {
    require_case(content, name);
    const cohort_fingerprint one = fingerprint_from_json(content.at("fingerprint"));
    require(one.cases().size() == 1 && one.cases()[0].name == name && one.channels() == 1, here,
            "its fingerprint is not of this case");
  });
}

void write_record(const fs::path& path, const report& content, const found_record& there) {
  if (!there.damage.empty()) {
    fs::path aside = path.string() + ".damaged";
    std::error_code status;
    for (int k = 2; fs::exists(fs::symlink_status(aside, status)); ++k)
      aside = path.string() + ".damaged" + std::to_string(k);
    fs::rename(path, aside, status);
    require(!status, here, path.string(), ": cannot be set aside: ", status.message());
  }
  write_whole(here, path, content.dump() + '\n');
}

}  // namespace suture::examples
