// SPDX-License-Identifier: Apache-2.0
// Counts the instructions of kernels in a cubin and holds them against limits. Instructions have 16 bytes each from
// sm_70 on, and the low nine bits say which it is; no disassembler is needed.
//   instructions CUBIN LIMITS [--all]
// A line of LIMITS: parts of a kernel's name joined by +, then the most instructions of the whole kernel, of its
// longest loop, and the most loads from global memory in that loop. The first line that matches a kernel holds for it,
// and every line must match one; --all lists the kernels without a limit too. The longest loop is the one with most
// instructions between the target of a backward branch and the branch: in a kernel of a fused part that is the walk
// along z.
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct tally {
  int all = 0, loads = 0, stores = 0, shared = 0, arithmetic = 0, special = 0, branches = 0;
};

struct instruction {
  std::uint64_t low, high;
  unsigned operation() const { return low & 0x1ff; }
};

enum : unsigned {
  nop = 0x118,
  branch = 0x147,
  load = 0x181,
  load_generic = 0x180,
  store = 0x186,
  store_generic = 0x185,
  load_shared = 0x184,
  store_shared = 0x188,
  multiply = 0x20,
  add = 0x21,
  multiply_add = 0x23,
  special_function = 0x108
};

tally count(const std::vector<instruction>& code, std::size_t first, std::size_t last) {
  tally t;
  for (std::size_t i = first; i < last; ++i) {
    const unsigned o = code[i].operation();
    if (o == nop) continue;
    ++t.all;
    t.loads += o == load || o == load_generic;
    t.stores += o == store || o == store_generic;
    t.shared += o == load_shared || o == store_shared;
    t.arithmetic += o == multiply || o == add || o == multiply_add;
    t.special += o == special_function;
    t.branches += o == branch;
  }
  return t;
}

// Where a branch goes, as an index. The offset from the next instruction counts words of four bytes, from bit 34 on;
// since sm_90 its lowest eight bits stand apart.
std::ptrdiff_t target(const std::vector<instruction>& code, std::size_t i, int architecture) {
  const std::uint64_t bits = code[i].low >> 34 | (code[i].high & 0x3ffff) << 30;
  std::int64_t words = static_cast<std::int64_t>(bits << 16) >> 16;
  if (architecture >= 90) words = words * 256 + static_cast<std::int64_t>(code[i].low >> 16 & 0xff);
  return static_cast<std::ptrdiff_t>(i) + 1 + static_cast<std::ptrdiff_t>(words * 4 / 16);
}

tally longest_loop(const std::vector<instruction>& code, int architecture) {
  tally longest;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i].operation() != branch) continue;
    const std::ptrdiff_t to = target(code, i, architecture);
    // The branch to itself behind the end of every kernel is no loop.
    if (to < 0 || to >= static_cast<std::ptrdiff_t>(i)) continue;
    const tally t = count(code, static_cast<std::size_t>(to), i + 1);
    if (t.all > longest.all) longest = t;
  }
  return longest;
}

struct limit {
  std::vector<std::string> parts;
  std::string name;
  int whole = 0, loop = 0, loads = 0, matched = 0;
};

std::vector<limit> read_limits(const char* path) {
  std::vector<limit> limits;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    limit l;
    if (!(words >> l.name)) continue;
    if (!(words >> l.whole >> l.loop >> l.loads)) return {};
    std::istringstream parts(l.name);
    for (std::string part; std::getline(parts, part, '+');) l.parts.push_back(part);
    limits.push_back(l);
  }
  return limits;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "instructions CUBIN LIMITS [--all]\n");
    return 2;
  }
  const bool list_all = argc > 3 && std::strcmp(argv[3], "--all") == 0;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<limit> limits = read_limits(argv[2]);
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0 || limits.empty()) {
    std::fprintf(stderr, "%s: no cubin, or no limits in %s\n", argv[1], argv[2]);
    return 2;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto section = [&](std::size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, bytes.data() + header.e_shoff + i * header.e_shentsize, sizeof s);
    return s;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  // The architecture is in the lowest byte of the flags, since CUDA 13 in the byte above it.
  int architecture = static_cast<int>(header.e_flags & 0xff);
  if (architecture < 50) architecture = static_cast<int>(header.e_flags >> 8 & 0xff);
  bool failed = false;
  for (std::size_t s = 0; s < header.e_shnum; ++s) {
    const Elf64_Shdr text = section(s);
    const std::string name = bytes.data() + names.sh_offset + text.sh_name;
    if (!name.starts_with(".text.")) continue;
    std::vector<instruction> code(text.sh_size / sizeof(instruction));
    std::memcpy(code.data(), bytes.data() + text.sh_offset, code.size() * sizeof(instruction));
    const tally whole = count(code, 0, code.size()), loop = longest_loop(code, architecture);
    const auto found = std::find_if(limits.begin(), limits.end(), [&](const limit& l) {
      return std::all_of(l.parts.begin(), l.parts.end(), [&](const auto& p) { return name.find(p) != name.npos; });
    });
    const bool bounded = found != limits.end();
    if (!bounded && !list_all) continue;
    bool over = false;
    if (bounded) {
      ++found->matched;
      over = whole.all > found->whole || loop.all > found->loop || loop.loads > found->loads;
      failed = failed || over;
    }
    std::printf(
        "%-5s sm_%d: %d instructions, longest loop %d: %d loads, %d stores, %d shared, %d float, %d special, %d "
        "branches; %s\n",
        over      ? "OVER"
        : bounded ? "ok"
                  : "",
        architecture, whole.all, loop.all, loop.loads, loop.stores, loop.shared, loop.arithmetic, loop.special,
        loop.branches, bounded ? found->name.c_str() : name.c_str() + 6);
  }
  for (const limit& l : limits)
    if (l.matched == 0) {
      std::printf("no kernel matches %s\n", l.name.c_str());
      failed = true;
    }
  return failed ? 1 : 0;
}
