// SPDX-License-Identifier: Apache-2.0
// The loops of mask operations on CUDA. The same loop of all samples of a batch is one kernel on the stream of the
// executor; the parameters of the samples travel by value in its arguments.
#pragma once

#include <cstring>

#include "../exec/cuda/run.cuh"
#include "loops.hpp"

namespace suture::detail::masks {

inline constexpr unsigned mask_block = 256;

// A loop of one sample, like the others below: threads() is the number of its threads, operator() the work of one. This
// loop calls f(i) for i in [0, n).
template <class F>
struct each_loop {
  F f;
  std::uint64_t n;

  SUTURE_FN std::uint64_t threads() const { return n; }
  SUTURE_FN void operator()(std::uint64_t thread) const { f(static_cast<std::int64_t>(thread)); }
};

// Calls f(z, y, i) for i in [0, width) in every row; there are fewer than 2^32 calls.
template <class F>
struct row_loop {
  F f;
  std::uint32_t height, width, n;

  SUTURE_FN std::uint64_t threads() const { return n; }
  SUTURE_FN void operator()(std::uint64_t thread) const {
    const auto i = static_cast<std::uint32_t>(thread);
    const std::uint32_t row = i / width;
    f(static_cast<std::int32_t>(row / height), static_cast<std::int32_t>(row % height),
      static_cast<std::int32_t>(i % width));
  }
};

// Calls f(z, y, x) for every voxel, with neighboring threads along z or y.
template <class F>
struct permuted_loop {
  F f;
  bool along_z;
  std::uint32_t height, width, n;

  SUTURE_FN std::uint64_t threads() const { return n; }
  SUTURE_FN void operator()(std::uint64_t thread) const {
    const auto i = static_cast<std::uint32_t>(thread);
    const std::uint32_t row = i / width;
    const auto plane = static_cast<std::int32_t>(row / height), lane = static_cast<std::int32_t>(i % width);
    f(along_z ? lane : plane, along_z ? plane : lane, static_cast<std::int32_t>(row % height));
  }
};

// Packs bits of images whose smallest stride is that of x. A warp computes half a word.
template <class T, class Predicate>
struct pack_loop {
  strided<const T> in;
  Predicate predicate;
  bit_volume out;
  std::uint32_t halves;

  SUTURE_FN std::uint64_t threads() const { return std::uint64_t{halves} * 32; }  // whole warps
  __device__ void operator()(std::uint64_t thread) const {
    const auto half = static_cast<std::uint32_t>(thread / 32), lane = static_cast<std::uint32_t>(thread % 32);
    const auto row_halves = static_cast<std::uint32_t>(out.row_words) * 2;
    const std::uint32_t row = half / row_halves;
    const auto x = static_cast<std::int32_t>(half % row_halves * 32 + lane);
    const bool set = x < out.extents[2] && predicate(in.at(static_cast<std::int32_t>(row / out.extents[1]),
                                                           static_cast<std::int32_t>(row % out.extents[1]), x));
    const std::uint32_t bits = __ballot_sync(0xffffffffu, set);
    if (lane == 0) reinterpret_cast<std::uint32_t*>(out.words)[half] = bits;
  }
};

// Writes a voxel of a packed mask.
struct write_bits {
  bit_volume in;
  strided<std::uint8_t> out;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    *out.at(z, y, x) = in.row(z, y)[x / 64] >> (x % 64) & 1;
  }
};

// Calls f(z, y, half) for each half word of every row, for images whose smallest stride is that of z or y. The lanes of
// a warp handle 32 rows that are adjacent along that axis, so that their accesses to a voxel each are adjacent too.
template <class F>
struct half_loop {
  F f;
  bool along_z;
  std::uint32_t lanes, blocks, row_halves, n;

  static half_loop of(const F& f, const bit_volume& v, bool along_z) {
    const auto lanes = static_cast<std::uint32_t>(v.extents[along_z ? 0 : 1]), blocks = (lanes + 31) / 32;
    const auto halves = static_cast<std::uint32_t>(v.row_words) * 2;
    return {f,      along_z, lanes,
            blocks, halves,  static_cast<std::uint32_t>(v.extents[along_z ? 1 : 0]) * blocks * halves};
  }
  SUTURE_FN std::uint64_t threads() const { return std::uint64_t{n} * 32; }
  SUTURE_FN void operator()(std::uint64_t thread) const {
    const auto warp = static_cast<std::uint32_t>(thread / 32);
    const std::uint32_t block = warp / row_halves % blocks;
    const std::uint32_t lane = block * 32 + static_cast<std::uint32_t>(thread % 32);
    if (lane >= lanes) return;
    const auto a = static_cast<std::int32_t>(lane), b = static_cast<std::int32_t>(warp / row_halves / blocks);
    f(along_z ? a : b, along_z ? b : a, static_cast<std::int32_t>(warp % row_halves));
  }
};

// Packs half a word of a row by one thread.
template <class T, class Predicate>
struct pack_half {
  strided<const T> in;
  Predicate predicate;
  bit_volume out;

  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t half) const {
    const T* p = in.at(z, y, half * 32);
    std::uint32_t bits = 0;
    for (std::int32_t i = 0; i < 32 && half * 32 + i < out.extents[2]; ++i, p += in.stride[2])
      bits |= static_cast<std::uint32_t>(predicate(p)) << i;
    reinterpret_cast<std::uint32_t*>(out.row(z, y))[half] = bits;
  }
};

// Writes the voxels of half a word of a row by one thread.
struct write_half {
  bit_volume in;
  strided<std::uint8_t> out;

  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t half) const {
    std::uint8_t* p = out.at(z, y, half * 32);
    const std::uint32_t bits = reinterpret_cast<const std::uint32_t*>(in.row(z, y))[half];
    for (std::int32_t i = 0; i < 32 && half * 32 + i < in.extents[2]; ++i, p += out.stride[2]) *p = bits >> i & 1;
  }
};

// The parameters of the same loop for several samples, in the arguments of a kernel.
template <class Loop, int Bytes>
struct loop_chunk {
  static constexpr int capacity = Bytes / static_cast<int>(sizeof(Loop));
  alignas(Loop) std::byte loops[capacity * static_cast<int>(sizeof(Loop))];
};

template <class Loop, int Bytes>
__global__ void __launch_bounds__(mask_block) mask_kernel(const __grid_constant__ loop_chunk<Loop, Bytes> chunk) {
  require_ieee_arithmetic();
  const Loop& loop = reinterpret_cast<const Loop*>(chunk.loops)[blockIdx.y];
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * mask_block + threadIdx.x;
  if (thread < loop.threads()) loop(thread);
}

// The loops of an operation, which are recorded for all samples first and launched then. Loops of the same kind at the
// same position of several samples' sequences become one kernel. A sample may skip loops that others have.
template <>
class mask_loops<cuda> {
public:
  template <class Views>
  static void check_memory_of(const cuda& exec, const Views& views, const site& where, std::string_view role) {
    check_mask_memory(memory_check(exec), views, where, role);
  }
  static void check_pointer(const cuda& exec, const void* data, const site& where, std::string_view role) {
    memory_check(exec)(data, where, role);
  }

  // Calls step(loops, memory, i) for every sample i, which needs bytes[i] of workspace, and queues the loops: of all
  // samples together, or of as many as the workspace has room for.
  template <class Step>
  static void run(const cuda& exec, std::span<const std::size_t> bytes, const site& where, const Step& step) {
    check_device_workspace(exec, *std::max_element(bytes.begin(), bytes.end()), where, "workspace: ");
    for (std::size_t first = 0; first < bytes.size();) {
      mask_loops loops(exec);
      std::size_t used = 0, i = first;
      for (; i < bytes.size() && used + bytes[i] <= exec.workspace.size(); used += bytes[i++]) {
        arena pieces(exec.workspace.data() + used);
        loops.next_ = 0;
        step(loops, pieces, i);
      }
      for (const batch& b : loops.batches_) b.launch(exec, b);
      first = i;
    }
  }

  template <class F>
  void each(std::int64_t n, const F& f) {
    add(each_loop<F>{f, static_cast<std::uint64_t>(n)});
  }
  template <class F>
  void words(const bit_volume& v, const F& f) {
    rows(v.extents, v.row_words, f);
  }
  template <class F>
  void voxels(const std::int32_t (&n)[3], const F& f) {
    rows(n, n[2], f);
  }
  template <class F>
  void rows_or_voxels(const std::int32_t (&n)[3], const std::int64_t (&stride)[3], const F& f) {
    const int lanes = lane_axis(stride, n);
    if (lanes == 2) return voxels(n, f);
    const auto height = static_cast<std::uint32_t>(n[2]), width = static_cast<std::uint32_t>(n[lanes]);
    add(permuted_loop<F>{f, lanes == 0, height, width, static_cast<std::uint32_t>(n[1 - lanes]) * height * width});
  }
  // Returns the strides of intermediate results for an output of the given strides: dense, in the same order of axes.
  static extent3 strides_between(const extent3& n, const std::int64_t (&stride)[3]) {
    extent3 between;
    std::int64_t step = 1;
    for (int j = 2; j >= 0; --j) {
      const int axis = loop_axes[loops_in_memory(stride, {n[0], n[1], n[2]})][j];
      between[axis] = step;
      step *= n[axis];
    }
    return between;
  }
  template <class T, class Predicate>
  void pack(const strided<const T>& in, const Predicate& predicate, const bit_volume& out) {
    const int lanes = lane_axis(in.stride, out.extents);
    const std::int64_t halves = std::int64_t{2} * out.extents[0] * out.extents[1] * out.row_words;
    if (lanes == 2)
      add(pack_loop<T, Predicate>{in, predicate, out, static_cast<std::uint32_t>(halves)});
    else
      add(half_loop<pack_half<T, Predicate>>::of({in, predicate, out}, out, lanes == 0));
  }
  void unpack(const bit_volume& in, const strided<std::uint8_t>& out) {
    const int lanes = lane_axis(out.stride, in.extents);
    if (lanes == 2)
      voxels(in.extents, write_bits{in, out});
    else
      add(half_loop<write_half>::of({in, out}, in, lanes == 0));
  }

private:
  struct batch {
    void (*launch)(const cuda&, const batch&);  // also identifies the kind of loop
    std::vector<std::byte> loops;
    std::uint64_t most_threads = 0;
  };

  explicit mask_loops(const cuda& exec) : exec_(exec) {}

  static int lane_axis(const std::int64_t (&stride)[3], const std::int32_t (&n)[3]) {
    return loop_axes[loops_in_memory(stride, {n[0], n[1], n[2]})][2];
  }

  template <class F>
  void rows(const std::int32_t (&n)[3], std::int32_t width, const F& f) {
    const auto height = static_cast<std::uint32_t>(n[1]), per_row = static_cast<std::uint32_t>(width);
    add(row_loop<F>{f, height, per_row, static_cast<std::uint32_t>(n[0]) * height * per_row});
  }

  template <class Loop>
  void add(const Loop& loop) {
    static_assert(std::is_trivially_copyable_v<Loop>);
    const auto is_same = [](const batch& b) { return b.launch == launch<Loop>; };
    const auto from = batches_.begin() + static_cast<std::ptrdiff_t>(next_);
    auto place = std::find_if(from, batches_.end(), is_same);
    if (place == batches_.end()) place = batches_.insert(from, batch{launch<Loop>, {}, 0});
    next_ = static_cast<std::size_t>(place - batches_.begin()) + 1;
    const auto* const raw = reinterpret_cast<const std::byte*>(&loop);
    place->loops.insert(place->loops.end(), raw, raw + sizeof(Loop));
    place->most_threads = std::max(place->most_threads, loop.threads());
  }

  // Launches a loop with small kernel arguments if they suffice, since arguments cost time by their size.
  template <class Loop>
  static void launch(const cuda& exec, const batch& b) {
    constexpr int small = 4000, large = 32000;
    if (b.loops.size() <= small)
      launch_chunks<Loop, small>(exec, b);
    else
      launch_chunks<Loop, large>(exec, b);
  }
  template <class Loop, int Bytes>
  static void launch_chunks(const cuda& exec, const batch& b) {
    using chunk_type = loop_chunk<Loop, Bytes>;
    const auto blocks = static_cast<unsigned>((b.most_threads + mask_block - 1) / mask_block);
    constexpr std::size_t most = sizeof(chunk_type::loops);
    for (std::size_t first = 0; first < b.loops.size(); first += most) {
      const std::size_t bytes = std::min(most, b.loops.size() - first);
      chunk_type chunk;
      std::memcpy(chunk.loops, b.loops.data() + first, bytes);
      mask_kernel<Loop, Bytes>
          <<<dim3(blocks, static_cast<unsigned>(bytes / sizeof(Loop))), mask_block, 0, exec.stream>>>(chunk);
      check_cuda(cudaGetLastError(), "mask", exec.at);
    }
  }

  const cuda& exec_;
  std::vector<batch> batches_;
  std::size_t next_ = 0;
};

}  // namespace suture::detail::masks
