// SPDX-License-Identifier: Apache-2.0
// Cycles of a multiprocessor for the eight taps of a turned int16 voxel, by the shape of the warp, the pitch of the
// rows and the angle. Next to nothing is computed, so that gathers are the limit. The model of docs/performance.md
// takes .37 cycles for 16 x 2 lanes without a turn and .78 at 15 degrees, which others have published.
//   gathers [--tiny]
#include <cmath>
#include <cstring>

#include "micro.cuh"

namespace {

constexpr int tile_x = 32, tile_y = 8, walk = 16, fraction_bits = 16;

// Output index -> source voxel, in 16.16 fixed point; rows and planes in elements.
struct turned {
  std::int32_t matrix[3][3], offset[3];
  std::int32_t row, plane;
  std::int32_t nz, ny, nx;
};

// Pairs: every element stored with its right neighbor.
template <int Wide, bool Pairs>
__global__ void __launch_bounds__(256) gather_kernel(const turned t, const std::int16_t* source, std::int32_t* sums) {
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  constexpr int across = tile_x / Wide;
  const int x = static_cast<int>(blockIdx.x) * tile_x + warp % across * Wide + lane % Wide;
  const int y = static_cast<int>(blockIdx.y) * tile_y + warp / across * (32 / Wide) + lane / Wide;
  const int z0 = static_cast<int>(blockIdx.z) * walk;
  std::int32_t at[3];
#pragma unroll
  for (int k = 0; k < 3; ++k) at[k] = t.offset[k] + t.matrix[k][0] * z0 + t.matrix[k][1] * y + t.matrix[k][2] * x;
  std::int32_t sum = 0;
#pragma unroll 1
  for (int i = 0; i < walk; ++i) {
    const std::int32_t first =
        (at[0] >> fraction_bits) * t.plane + (at[1] >> fraction_bits) * t.row + (at[2] >> fraction_bits);
    if constexpr (Pairs) {
      const auto* p = reinterpret_cast<const std::uint32_t*>(source) + first;
      const std::uint32_t four[4] = {__ldg(p), __ldg(p + t.row), __ldg(p + t.plane), __ldg(p + t.plane + t.row)};
#pragma unroll
      for (const std::uint32_t pair : four)
        sum += static_cast<std::int16_t>(pair & 0xffff) + static_cast<std::int16_t>(pair >> 16);
    } else {
      const std::int16_t *a = source + first, *b = a + t.row, *c = a + t.plane, *d = c + t.row;
      sum += __ldg(a) + __ldg(a + 1) + __ldg(b) + __ldg(b + 1) + __ldg(c) + __ldg(c + 1) + __ldg(d) + __ldg(d + 1);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) at[k] += t.matrix[k][0];
  }
  sums[(static_cast<int>(blockIdx.z) * t.ny + y) * t.nx + x] = sum;
}

// The patch in the middle of a source of side^3 voxels, turned by the same angle about each axis.
turned turn(double degrees, int side, int patch, int row) {
  const double c = std::cos(degrees * M_PI / 180), s = std::sin(degrees * M_PI / 180);
  const double about_z[3][3] = {{1, 0, 0}, {0, c, -s}, {0, s, c}}, about_y[3][3] = {{c, 0, s}, {0, 1, 0}, {-s, 0, c}},
               about_x[3][3] = {{c, -s, 0}, {s, c, 0}, {0, 0, 1}};
  const auto product = [](const double(&a)[3][3], const double(&b)[3][3], double(&out)[3][3]) {
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
  };
  double two[3][3], all[3][3];
  product(about_z, about_y, two);
  product(two, about_x, all);
  turned t{};
  t.row = row;
  t.plane = row * side;
  t.nz = t.ny = t.nx = patch;
  for (int k = 0; k < 3; ++k) {
    double start = .5 * (side - 1) + .3;
    for (int j = 0; j < 3; ++j) {
      start -= all[k][j] * .5 * (patch - 1);
      t.matrix[k][j] = static_cast<std::int32_t>(std::lround(std::ldexp(all[k][j], fraction_bits)));
    }
    t.offset[k] = static_cast<std::int32_t>(std::lround(std::ldexp(start, fraction_bits)));
  }
  return t;
}

std::int64_t expected_sum(const turned& t, const std::vector<std::int16_t>& source) {
  std::int64_t sum = 0;
  for (std::int32_t z = 0; z < t.nz; ++z)
    for (std::int32_t y = 0; y < t.ny; ++y)
      for (std::int32_t x = 0; x < t.nx; ++x) {
        std::int64_t first = 0;
        const std::int64_t stride[3] = {t.plane, t.row, 1};
        for (int k = 0; k < 3; ++k)
          first += stride[k] *
                   ((t.offset[k] + t.matrix[k][0] * z + t.matrix[k][1] * y + t.matrix[k][2] * x) >> fraction_bits);
        for (const std::int64_t tap : {std::int64_t{0}, stride[1], stride[0], stride[0] + stride[1]})
          sum += source[static_cast<std::size_t>(first + tap)] + source[static_cast<std::size_t>(first + tap + 1)];
      }
  return sum;
}

template <int Wide, bool Pairs>
bool measure(const micro::device& d, const turned& t, const std::int16_t* source, std::int64_t expected,
             const std::string& name) {
  const dim3 blocks(static_cast<unsigned>(t.nx / tile_x), static_cast<unsigned>(t.ny / tile_y),
                    static_cast<unsigned>(t.nz / walk));
  const micro::memory<std::int32_t> sums(static_cast<std::size_t>(t.nz / walk * t.ny * t.nx));
  const auto launch = [&] {
    gather_kernel<Wide, Pairs><<<blocks, 256, 0, d.stream>>>(t, source, sums.data());
    micro::check_cuda(cudaGetLastError(), "gathers");
  };
  launch();
  std::int64_t sum = 0;
  for (const std::int32_t s : sums.values()) sum += s;
  if (sum != expected) {
    d.note(name, "wrong: the taps are not those of the host");
    return false;
  }
  const double seconds = d.seconds_in_graph(d.tiny ? 1 : 40, launch);
  const double voxels = static_cast<double>(t.nz) * t.ny * t.nx;
  d.say(name, seconds * d.clock() * d.properties.multiProcessorCount / voxels, "cycles a voxel");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const micro::device d("gathers", argc, argv);
  const int patch = d.tiny ? 32 : 128, side = 2 * patch;
  bool good = true;
  // Rows of a multiple of 128 bytes, and rows that begin 64 bytes beyond one.
  for (const int more : {0, 32}) {
    const int row = side + more;
    std::vector<std::int16_t> source(static_cast<std::size_t>(row) * side * side);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::int16_t>(i * 40503u >> 3);
    std::vector<std::uint32_t> pairs(source.size());
    for (std::size_t i = 0; i + 1 < source.size(); ++i) std::memcpy(&pairs[i], &source[i], 4);
    const micro::memory<std::int16_t> plain(source);
    const micro::memory<std::uint32_t> paired(pairs);
    const std::string pitch = more == 0 ? ", rows of 128 B" : ", rows of 64 B beyond";
    for (const int degrees : {0, 5, 15, 30}) {
      const turned t = turn(degrees, side, patch, row);
      const std::int64_t expected = expected_sum(t, source);
      const std::string rest = ", " + std::to_string(degrees) + " degrees" + pitch;
      const auto* as_pairs = reinterpret_cast<const std::int16_t*>(paired.data());
      good &= measure<32, false>(d, t, plain.data(), expected, "32 x 1" + rest);
      good &= measure<16, false>(d, t, plain.data(), expected, "16 x 2" + rest);
      good &= measure<8, false>(d, t, plain.data(), expected, "8 x 4" + rest);
      good &= measure<16, true>(d, t, as_pairs, expected, "16 x 2 in pairs" + rest);
    }
  }
  return good ? 0 : 1;
}
