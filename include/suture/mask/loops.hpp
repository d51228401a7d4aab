// SPDX-License-Identifier: Apache-2.0
// The loops of mask operations on the CPU; loops.cuh has those on CUDA. An operation is a sequence of loops over the
// voxels or the words of a sample, where a word is 64 voxels of a row, one bit each (bits.hpp). Most loop bodies are
// functors that both executors call. The exceptions are written for each executor: packing and unpacking of bits, and
// the bodies of rows_or_voxels. All of them compute exactly, so both executors give the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "../base/bits.hpp"
#include "../base/numeric.hpp"
#include "../evaluate/binding.hpp"
#include "../exec/cpu/run.hpp"
#include "../image/view.hpp"
#include "bits.hpp"

namespace suture {

// The outcome of a mask operation for one sample. `empty` means that no voxel counts: masks are then all 0, and a
// bounding box has size 0.
enum class mask_status : std::uint32_t { ok, empty };

namespace detail::masks {

using detail::as_views;
using detail::view_element_t;

// The memory of a view, without its grid, in the form that loops need.
template <class T>
struct strided {
  T* data;
  std::int64_t stride[3];
  std::int64_t channels, channel_stride;

  SUTURE_FN T* at(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return data + (z * stride[0] + y * stride[1] + x * stride[2]);
  }
};

template <class T>
strided<T> strided_of(const view<T>& v) {
  return {v.data, {v.stride[0], v.stride[1], v.stride[2]}, v.channels, v.channel_stride};
}

// Tests whether a voxel is not zero. A NaN does not count.
template <class T>
struct is_set {
  SUTURE_FN bool operator()(const T* p) const {
    const float value = storage<T>::load(*p);
    return value < 0 || value > 0;
  }
};

// Tests whether a voxel is above the threshold. A NaN does not count.
template <class T>
struct is_above {
  float threshold;

  SUTURE_FN bool operator()(const T* p) const {
    if constexpr (std::is_integral_v<T> && sizeof(T) >= 4)  // float cannot represent all values
      return static_cast<double>(*p) > static_cast<double>(threshold);
    else
      return storage<T>::load(*p) > threshold;
  }
};

// Tests whether any channel of a voxel is above the threshold.
template <class T>
struct any_above {
  is_above<T> one;
  std::int64_t channels, channel_stride;

  SUTURE_FN bool operator()(const T* p) const {
    for (std::int64_t c = 0; c < channels; ++c)
      if (one(p + c * channel_stride)) return true;
    return false;
  }
};

// Sets counters to 0.
template <class T>
struct set_zero {
  T* to;

  SUTURE_FN void operator()(std::int64_t i) const { to[i] = 0; }
};

// Divides memory, which it does not own, into aligned pieces. With null memory it only measures.
class arena {
public:
  explicit arena(std::byte* memory = nullptr) : memory_(memory) {}

  template <class T>
  T* allocate(std::size_t count) {
    std::byte* const at = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += aligned(count * sizeof(T));
    return reinterpret_cast<T*>(at);
  }
  bit_volume bits(const extent3& n) {
    bit_volume v{nullptr, {}, static_cast<std::int32_t>((n[2] + 63) / 64)};
    for (int k = 0; k < 3; ++k) v.extents[k] = static_cast<std::int32_t>(n[k]);
    v.words = allocate<std::uint64_t>(static_cast<std::size_t>(n[0] * n[1] * v.row_words));
    return v;
  }
  std::size_t used() const { return used_; }

private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

// Calls check(pointer, site, role), the memory_check of an executor, for the views of every sample.
template <class Check, class Views>
void check_mask_memory(const Check& check, const Views& views, const site& where, std::string_view role) {
  for (std::size_t i = 0; i < views.size(); ++i)
    check(views[i].data, {where.operation, static_cast<std::int64_t>(i)}, role);
}

// The loops of an executor, which an operation calls for one sample after the other. On the CPU each loop is executed
// when it is called, by all threads, and all samples use the same workspace.
template <class Executor>
class mask_loops;

template <>
class mask_loops<cpu> {
public:
  template <class Views>
  static void check_memory_of(const cpu& exec, const Views& views, const site& where, std::string_view role) {
    check_mask_memory(memory_check(exec), views, where, role);
  }
  static void check_pointer(const cpu& exec, const void* data, const site& where, std::string_view role) {
    memory_check(exec)(data, where, role);
  }

  // Calls step(loops, memory, i) for every sample i, which needs bytes[i] of workspace.
  template <class Step>
  static void run(const cpu& exec, std::span<const std::size_t> bytes, const site& where, const Step& step) {
    const memory room(exec, *std::max_element(bytes.begin(), bytes.end()), where);
    const mask_loops loops(exec);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      arena pieces(room.data());
      step(loops, pieces, i);
    }
  }

  // Calls f(i) for i in [0, n).
  template <class F>
  void each(std::int64_t n, const F& f) const {
    constexpr std::int64_t block = 4096;
    parallel_for(exec_.threads, (n + block - 1) / block, [&](std::int64_t b) {
      for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) f(i);
    });
  }

  // Calls f(z, y, w) for every word w of every row.
  template <class F>
  void words(const bit_volume& v, const F& f) const {
    rows(v.extents, [&](std::int32_t z, std::int32_t y) {
      for (std::int32_t w = 0; w < v.row_words; ++w) f(z, y, w);
    });
  }

  // Calls f(z, y, x) for every voxel.
  template <class F>
  void voxels(const std::int32_t (&n)[3], const F& f) const {
    const std::int32_t width = n[2];
    rows(n, [&](std::int32_t z, std::int32_t y) {
      for (std::int32_t x = 0; x < width; ++x) f(z, y, x);
    });
  }

  // Calls f.row(z, y) for every row. On a device it calls f(z, y, x) for every voxel instead, with neighboring threads
  // along the axis that has the smallest of the given strides.
  template <class F>
  void rows_or_voxels(const std::int32_t (&n)[3], const std::int64_t (&)[3], const F& f) const {
    rows(n, [&](std::int32_t z, std::int32_t y) { f.row(z, y); });
  }

  // Returns the strides of intermediate results for an output of the given strides. On the CPU rows are always along x.
  static extent3 strides_between(const extent3& n, const std::int64_t (&)[3]) { return {n[1] * n[2], n[2], 1}; }

  // Sets the bits of voxels for which predicate(pointer) holds. Voxels are read in the order of memory: 64 rows together
  // if z or y has a smaller stride than x.
  template <class T, class Predicate>
  void pack(const strided<const T>& in, const Predicate& predicate, const bit_volume& out) const {
    each_tile(out, in.stride, [&](std::int32_t z, std::int32_t y, std::int32_t w, const bit_tile& s) {
      const T* const p = in.at(z, y, w * 64);
      if (s.rows == 1) {
        out.row(z, y)[w] = packed(p, in.stride[2], s.columns, predicate);
        return;
      }
      std::uint64_t words[64] = {};
      const std::int64_t next = in.stride[1 - s.across];
      for (int i = 0; i < s.columns; ++i) prefetch(p + i * in.stride[2] + next, s.rows);
      for (int i = 0; i < s.columns; ++i)
        words[i] = packed(p + i * in.stride[2], in.stride[s.across], s.rows, predicate);
      transpose_bits(words);
      for (int i = 0; i < s.rows; ++i) out.row(z + (s.across == 0 ? i : 0), y + (s.across == 1 ? i : 0))[w] = words[i];
    });
  }

  // Writes bits as voxels of 0 and 1.
  void unpack(const bit_volume& in, const strided<std::uint8_t>& out) const {
    each_tile(in, out.stride, [&](std::int32_t z, std::int32_t y, std::int32_t w, const bit_tile& s) {
      std::uint8_t* const p = out.at(z, y, w * 64);
      if (s.rows == 1) {
        unpack_word(in.row(z, y)[w], p, out.stride[2], s.columns);
        return;
      }
      std::uint64_t words[64] = {};
      for (int i = 0; i < s.rows; ++i) words[i] = in.row(z + (s.across == 0 ? i : 0), y + (s.across == 1 ? i : 0))[w];
      transpose_bits(words);
      const std::int64_t next = out.stride[1 - s.across];
      for (int i = 0; i < s.columns; ++i) prefetch<1>(p + i * out.stride[2] + next, s.rows);
      for (int i = 0; i < s.columns; ++i) unpack_word(words[i], p + i * out.stride[2], out.stride[s.across], s.rows);
    });
  }

private:
  // One word of each of `rows` rows, 1 .. 64, which are adjacent along axis `across`. Each word has `columns` voxels.
  struct bit_tile {
    int across, rows, columns;
  };

  // Calls f(z, y, w, tile) for tiles that together have all words of a volume, in an order that suits an image of the
  // given strides. The first row of a tile is (z, y), its words are number w.
  template <class F>
  void each_tile(const bit_volume& v, const std::int64_t (&stride)[3], const F& f) const {
    const auto apart = [&](int k) { return stride[k] < 0 ? -stride[k] : stride[k]; };
    const int across = v.extents[0] > 1 && (v.extents[1] == 1 || apart(0) < apart(1)) ? 0 : 1;
    const int most = v.extents[across] > 1 && apart(across) < apart(2) ? 64 : 1;
    const std::int32_t n[3] = {v.extents[1 - across], (v.extents[across] + most - 1) / most, v.extents[2]};
    rows(n, [&](std::int32_t other, std::int32_t block) {
      const std::int32_t first = block * most;
      const int count = std::min(most, v.extents[across] - first);
      for (std::int32_t w = 0; w < v.row_words; ++w)
        f(across == 0 ? first : other, across == 0 ? other : first, w,
          bit_tile{across, count, std::min(64, n[2] - w * 64)});
    });
  }

  // Prefetches the voxels that the next tile reads, or writes.
  template <int Write = 0, class T>
  static SUTURE_INLINE void prefetch(const T* p, int n) {
    constexpr int line = 64 / sizeof(T);
    for (int i = 0; i < n; i += line) __builtin_prefetch(p + i, Write);
    __builtin_prefetch(p + n - 1, Write);
  }

  // Packs n voxels: bit i = predicate(p + i stride).
  template <class T, class Predicate>
  static std::uint64_t packed(const T* p, std::int64_t stride, int n, const Predicate& predicate) {
    std::uint8_t bytes[64] = {};
    if (stride == 1)
      for (int i = 0; i < n; ++i) bytes[i] = predicate(p + i);
    else
      for (int i = 0; i < n; ++i) bytes[i] = predicate(p + i * stride);
    return word_of_bytes(bytes);
  }

  // Unpacks n bits: p[i stride] = bit i.
  static void unpack_word(std::uint64_t word, std::uint8_t* p, std::int64_t stride, int n) {
    if (stride == 1 && n == 64) {
      for (int k = 0; k < 8; ++k) {  // bit i of the byte becomes byte i
        const std::uint64_t spread = (((word >> (8 * k)) & 0xff) * 0x0101010101010101u) & 0x8040201008040201u;
        const std::uint64_t eight = ((spread + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
        std::memcpy(p + 8 * k, &eight, 8);
      }
    } else {
      for (int i = 0; i < n; ++i) p[i * stride] = (word >> i) & 1;
    }
  }

  // Transposes: bit j of word i becomes bit i of word j. Squares of 32, 16, .. 1 bits are exchanged across the
  // diagonal.
  static void transpose_bits(std::uint64_t (&words)[64]) {
    std::uint64_t low = 0x00000000ffffffffu;
    for (int size = 32; size > 0; size /= 2, low ^= low << size)
      for (int i = 0; i < 64; ++i) {
        if ((i & size) != 0) continue;
        const std::uint64_t changed = ((words[i] >> size) ^ words[i + size]) & low;
        words[i + size] ^= changed;
        words[i] ^= changed << size;
      }
  }

  // The caller's workspace, or owned memory if there is none.
  class memory {
  public:
    memory(const cpu& exec, std::size_t bytes, const site& where) : data_(exec.workspace.data()) {
      if (data_ == nullptr && exec.workspace.empty()) {
        own_.reset(new std::byte[bytes + workspace_alignment]);
        void* start = own_.get();
        std::size_t space = bytes + workspace_alignment;
        data_ = static_cast<std::byte*>(std::align(workspace_alignment, bytes, start, space));
      } else {
        check_workspace(exec.workspace.data(), exec.workspace.size(), bytes, where, "workspace: ");
      }
    }
    std::byte* data() const { return data_; }

  private:
    std::unique_ptr<std::byte[]> own_;
    std::byte* data_;
  };

  explicit mask_loops(const cpu& exec) : exec_(exec) {}

  // Calls f(z, y) for every row.
  template <class F>
  void rows(const std::int32_t (&n)[3], const F& f) const {
    const std::int64_t count = static_cast<std::int64_t>(n[0]) * n[1];
    constexpr std::int64_t block = 32;
    const std::int32_t height = n[1];
    parallel_for(exec_.threads, (count + block - 1) / block, [&](std::int64_t b) {
      for (std::int64_t row = b * block; row < std::min(count, (b + 1) * block); ++row)
        f(static_cast<std::int32_t>(row / height), static_cast<std::int32_t>(row % height));
    });
  }

  const cpu& exec_;
};

// Checks the size of a volume: slots of runs and sizes of components (components.hpp) have 32 bits.
inline void check_mask_volume(const grid& g, const site& where) {
  require(g.voxels() < (std::int64_t{1} << 32) - 1 && g.voxels() / g.extents[2] < (std::int64_t{1} << 31), where,
          "extents ", g.extents, " exceed 2^32 - 2 voxels or 2^31 - 1 rows");
}

template <class In>
void check_mask_inputs(const In& in, std::string_view name, bool one_channel = true) {
  require(!in.empty(), {name}, "no samples");
  for (std::size_t i = 0; i < in.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    check(in[i], where);
    check_mask_volume(in[i].grid, where);
    require(!one_channel || in[i].channels == 1, where, in[i].channels, " channels, one expected");
  }
}

struct memory_range {
  byte_range bytes;
  bool output;
  std::int64_t sample;
};
// Refuses an output that overlaps an input or another output. Inputs may share memory.
inline void check_outputs_apart(std::vector<memory_range> all, std::string_view name) {
  std::sort(all.begin(), all.end(),
            [](const memory_range& a, const memory_range& b) { return a.bytes.first < b.bytes.first; });
  std::uintptr_t end_output = 0, end_any = 0;
  for (const memory_range& r : all) {
    require(r.bytes.first >= (r.output ? end_any : end_output), {name, r.sample}, r.output ? "output" : "input",
            " overlaps ", r.output ? "an input or another output" : "an output", " in memory");
    end_any = std::max(end_any, r.bytes.last);
    if (r.output) end_output = std::max(end_output, r.bytes.last);
  }
}

// Checks that shapes agree and that no output overlaps an input or another output. With `in_place` an output may be the
// input of its own sample, for operations that read all of that before they write.
template <class In, class Out>
void check_mask_views(const In& in, const Out& out, std::string_view name, bool in_place, bool one_channel = true) {
  check_mask_inputs(in, name, one_channel);
  require(in.size() == out.size(), {name}, in.size(), " input views, ", out.size(), " output views");
  std::vector<memory_range> all;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i);
    const site where{name, sample};
    check_writable(out[i], where);
    require(in[i].grid.extents == out[i].grid.extents, where, "output extents ", out[i].grid.extents,
            " differ from the input's ", in[i].grid.extents);
    require(out[i].channels == 1, where, "output has ", out[i].channels, " channels, one expected");
    const byte_range from = bytes(in[i]), to = bytes(out[i]);
    if (!(in_place && from.first == to.first && from.last == to.last)) all.push_back({from, false, sample});
    all.push_back({to, true, sample});
  }
  check_outputs_apart(std::move(all), name);
}

template <class Executor, class Results, class In>
void check_mask_results(const Executor& exec, const Results& results, const In& in, std::string_view name) {
  require(results.size() == in.size(), {name}, results.size(), " results for ", in.size(), " samples");
  require(results.data() != nullptr, {name}, "null pointer to the results");
  mask_loops<Executor>::check_pointer(exec, results.data(), {name}, "results: ");
}

// Returns the bytes that a layout takes from an arena for a sample of extents n.
template <class Layout>
std::size_t layout_bytes(const extent3& n) {
  arena measure;
  Layout{measure, n};
  return measure.used();
}

template <class Views, class Bytes>
std::vector<std::size_t> bytes_by_sample(const Views& views, const Bytes& bytes_of) {
  std::vector<std::size_t> bytes;
  for (const auto& v : as_views(views)) bytes.push_back(bytes_of(v.grid.extents));
  return bytes;
}

// Calls step(loops, layout, i) for every sample i, with a layout in its workspace.
template <class Layout, class Executor, class T, class Step>
void for_masks(const Executor& exec, std::span<const view<T>> in, std::string_view name, const Step& step) {
  mask_loops<Executor>::check_memory_of(exec, in, {name}, "input: ");
  mask_loops<Executor>::run(
      exec, bytes_by_sample(in, layout_bytes<Layout>), {name},
      [&](auto& loops, arena& memory, std::size_t i) { step(loops, Layout(memory, in[i].grid.extents), i); });
}

// Executes an operation that turns masks into masks. Layout.a holds the bits of the input; work(loops, layout, i)
// returns the bits of the result.
template <class Layout, class Executor, class In, class Out, class Work>
void mask_to_mask(const Executor& exec, const In& inputs, const Out& outputs, std::string_view name, const Work& work) {
  using T = std::remove_const_t<view_element_t<In>>;
  const auto in = as_views(inputs);
  const auto out = as_views(outputs);
  static_assert(std::is_same_v<view_element_t<Out>, std::uint8_t>, "suture: a mask is written as std::uint8_t");
  check_mask_views(in, out, name, true);
  mask_loops<Executor>::check_memory_of(exec, out, {name}, "output: ");
  for_masks<Layout>(exec, in, name, [&](auto& loops, const Layout& l, std::size_t i) {
    loops.pack(strided_of<const T>(in[i]), is_set<T>{}, l.a);
    loops.unpack(work(loops, l, i), strided_of(out[i]));
  });
}

}  // namespace detail::masks

// Types that name the functions of this folder in workspace_bytes.
namespace mask_work {
// A function whose workspace has a Layout for each sample.
template <class Layout>
struct needs {
  template <class T>
  auto bytes_of() const {
    return detail::masks::layout_bytes<Layout>;
  }
};
}  // namespace mask_work

// Returns the bytes of workspace with which a function of this folder can process all samples of a batch together on a
// device: workspace_bytes(mask_work::body_mask{}, volumes). The CPU needs no more than the largest sample does, and a
// device with less processes the batch in parts.
template <class Work, class Views>
requires requires(const Work& work) { work.template bytes_of<float>(); }
std::size_t workspace_bytes(const Work& work, const Views& views) {
  std::size_t sum = 0;
  using T = std::remove_const_t<detail::view_element_t<Views>>;
  for (const std::size_t bytes : detail::masks::bytes_by_sample(views, work.template bytes_of<T>())) sum += bytes;
  return sum;
}

}  // namespace suture
