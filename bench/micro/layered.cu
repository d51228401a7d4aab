// SPDX-License-Identifier: Apache-2.0
// Whether tld4, which takes four texels of a plane at once and exactly, can read the taps of a volume: a layered array
// of int16 planes, two instructions a voxel in place of eight loads, with the border in hardware. CUDA offers it in C++
// for plain 2D arrays alone; PTX has it for layered ones too.
//   layered [--tiny]
#include <cmath>

#include "micro.cuh"

namespace {

constexpr int tile_x = 32, tile_y = 8, walk = 16;

// The four texels whose centers surround (x, y) in a layer, in the order of the hardware.
__device__ __forceinline__ int4 four_texels(cudaTextureObject_t texture, int layer, float x, float y) {
  int4 v;
  asm volatile("tld4.r.a2d.v4.s32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(texture), "r"(layer), "f"(x), "f"(y));
  return v;
}

// As micro/gathers: a turn by `sine` about each axis, to first order, and the sum of the eight taps of a walk.
__global__ void __launch_bounds__(256)
    texel_kernel(cudaTextureObject_t texture, int side, float sine, float start, std::int32_t* sums) {
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const int x = static_cast<int>(blockIdx.x) * tile_x + warp % 2 * 16 + lane % 16;
  const int y = static_cast<int>(blockIdx.y) * tile_y + warp / 2 * 2 + lane / 16;
  const int z0 = static_cast<int>(blockIdx.z) * walk;
  std::int32_t sum = 0;
#pragma unroll 1
  for (int z = z0; z < z0 + walk; ++z) {
    const int layer = static_cast<int>(start + static_cast<float>(z) + sine * static_cast<float>(y - x));
    // Texel i has its center at i + .5; what lies between i and i + 1 is asked for at i + 1.
    const float row = floorf(start + static_cast<float>(y) + sine * static_cast<float>(x - z)) + 1.0f;
    const float column = floorf(start + static_cast<float>(x) + sine * static_cast<float>(z - y)) + 1.0f;
    const int4 near = four_texels(texture, layer, column, row), far = four_texels(texture, layer + 1, column, row);
    sum += near.x + near.y + near.z + near.w + far.x + far.y + far.z + far.w;
  }
  sums[(static_cast<int>(blockIdx.z) * side / 2 + y) * (side / 2) + x] = sum;
}

}  // namespace

int main(int argc, char** argv) {
  const micro::device d("layered", argc, argv);
  const int side = d.tiny ? 64 : 256, patch = side / 2;
  std::vector<std::int16_t> source(static_cast<std::size_t>(side) * side * side);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::int16_t>(i * 40503u >> 3);

  // Whether an array may be both is what the runtime is asked; without the flag the hardware may still do it.
  for (const unsigned flags :
       {static_cast<unsigned>(cudaArrayLayered | cudaArrayTextureGather), static_cast<unsigned>(cudaArrayLayered)}) {
    const std::string name = flags & cudaArrayTextureGather ? "array for gathers" : "layered array";
    const auto extent =
        make_cudaExtent(static_cast<std::size_t>(side), static_cast<std::size_t>(side), static_cast<std::size_t>(side));
    const cudaChannelFormatDesc format = cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindSigned);
    cudaArray_t array = nullptr;
    if (const cudaError_t refused = cudaMalloc3DArray(&array, &format, extent, flags); refused != cudaSuccess) {
      cudaGetLastError();
      d.note(name, std::string("refused: ") + cudaGetErrorName(refused));
      continue;
    }
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(source.data(), static_cast<std::size_t>(side) * 2, static_cast<std::size_t>(side),
                                      static_cast<std::size_t>(side));
    copy.dstArray = array;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling{};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeBorder;
    sampling.filterMode = cudaFilterModePoint;
    sampling.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    if (cudaMemcpy3D(&copy) != cudaSuccess ||
        cudaCreateTextureObject(&texture, &resource, &sampling, nullptr) != cudaSuccess) {
      d.note(name, std::string("refused: ") + cudaGetErrorName(cudaGetLastError()));
      cudaFreeArray(array);
      continue;
    }
    for (const double degrees : {0.0, 5.0, 15.0}) {
      const auto sine = static_cast<float>(std::sin(degrees * M_PI / 180));
      const float start = .25f * static_cast<float>(side);
      const micro::memory<std::int32_t> sums(static_cast<std::size_t>(patch / walk) * patch * patch);
      const dim3 blocks(static_cast<unsigned>(patch / tile_x), static_cast<unsigned>(patch / tile_y),
                        static_cast<unsigned>(patch / walk));
      const auto launch = [&] {
        texel_kernel<<<blocks, 256, 0, d.stream>>>(texture, side, sine, start, sums.data());
        micro::check_cuda(cudaGetLastError(), "texels");
      };
      launch();
      if (const cudaError_t failed = cudaStreamSynchronize(d.stream); failed != cudaSuccess) {
        d.note(name, std::string("the kernel fails: ") + cudaGetErrorName(failed));
        return 0;
      }
      std::int64_t sum = 0, expected = 0;
      for (const std::int32_t s : sums.values()) sum += s;
      const auto texel = [&](int z, int y, int x) {
        return source[(static_cast<std::size_t>(z) * static_cast<std::size_t>(side) + static_cast<std::size_t>(y)) *
                          static_cast<std::size_t>(side) +
                      static_cast<std::size_t>(x)];
      };
      for (int z = 0; z < patch; ++z)
        for (int y = 0; y < patch; ++y)
          for (int x = 0; x < patch; ++x) {
            const auto at = [&](int a, int b, int c) {
              return std::floor(std::fma(sine, static_cast<float>(b - c), start + static_cast<float>(a)));
            };
            const int l = static_cast<int>(at(z, y, x)), r = static_cast<int>(at(y, x, z)),
                      c = static_cast<int>(at(x, z, y));
            for (int k = 0; k < 8; ++k) expected += texel(l + (k >> 2), r + (k >> 1 & 1), c + (k & 1));
          }
      const std::string row = name + ", " + std::to_string(static_cast<int>(degrees)) + " degrees";
      d.note(row, sum == expected ? "texels exact" : "texels wrong");
      const double seconds = d.seconds_in_graph(d.tiny ? 1 : 40, launch);
      d.say(row, seconds * d.clock() * d.properties.multiProcessorCount / (static_cast<double>(patch) * patch * patch),
            "cycles a voxel");
    }
    cudaDestroyTextureObject(texture);
    cudaFreeArray(array);
  }
}
