// SPDX-License-Identifier: Apache-2.0
// Basis of every other header: the version, the host/device markers, and the refusal of compiler modes that would
// silently change results.
#pragma once

#define SUTURE_VERSION_MAJOR 0
#define SUTURE_VERSION_MINOR 1
#define SUTURE_VERSION_PATCH 0

// Name of the inline namespace that holds `chain` and `cpu`: the version, and the registers that a file is compiled
// for. Functions that take a chain or a `cpu` carry this name, so that the linker never merges two of them from files
// that were compiled for other registers. It may merge other functions: compile all files of a program for one
// processor.
#if defined(__AVX512F__)
#define SUTURE_REGISTERS avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define SUTURE_REGISTERS avx2
#elif defined(__AVX2__)
#define SUTURE_REGISTERS avx2_without_fma
#elif defined(__AVX__)
#define SUTURE_REGISTERS avx
#else
#define SUTURE_REGISTERS baseline
#endif
#define SUTURE_JOIN_WORDS(major, minor, patch, registers) v##major##_##minor##_##patch##_##registers
#define SUTURE_JOIN(...) SUTURE_JOIN_WORDS(__VA_ARGS__)
#define SUTURE_BUILD SUTURE_JOIN(SUTURE_VERSION_MAJOR, SUTURE_VERSION_MINOR, SUTURE_VERSION_PATCH, SUTURE_REGISTERS)

#if defined(__CUDACC__)
#define SUTURE_HD __host__ __device__
#else
#define SUTURE_HD
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SUTURE_INLINE inline __attribute__((always_inline))
#else
#define SUTURE_INLINE inline
#endif

// Keeps a function that many others call as one copy, which is not inlined.
#if defined(__GNUC__) || defined(__clang__)
#define SUTURE_NOINLINE __attribute__((noinline))
#else
#define SUTURE_NOINLINE
#endif

// Inlines everything that a function calls and keeps the function itself out of line. On the host its machine code then
// does not depend on who else calls the same functions.
#if defined(__GNUC__) || defined(__clang__)
#define SUTURE_FLATTEN __attribute__((flatten, noinline))
#else
#define SUTURE_FLATTEN
#endif

// Keeps a function out of line in device code, so that work of few threads costs the others no registers. With
// relocatable code (-rdc=true) the function is inlined: out of line it would be compiled for more registers than the
// kernels that call it have.
#if defined(__CUDACC_RDC__)
#define SUTURE_DEVICE_NOINLINE __forceinline__
#else
#define SUTURE_DEVICE_NOINLINE inline __noinline__
#endif

// `SUTURE_FN` marks a function that runs on host and device and is part of a per-voxel loop.
#if defined(__CUDACC__)
#define SUTURE_FN __host__ __device__ __forceinline__
#else
#define SUTURE_FN SUTURE_INLINE
#endif

// Inlines a lambda that is part of a per-voxel loop; the macro follows the parameters of the lambda.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__)
#define SUTURE_INLINE_LAMBDA __attribute__((always_inline))
#else
#define SUTURE_INLINE_LAMBDA
#endif

// Precedes a template that calls a host functor on the host and a device functor on the device, about which nvcc would
// warn.
#if defined(__CUDACC__)
#define SUTURE_NO_EXEC_CHECK _Pragma("nv_exec_check_disable")
#else
#define SUTURE_NO_EXEC_CHECK
#endif

// Between these two macros nvcc refuses device code that calls a function compiled for the host alone, such as a
// functor without SUTURE_FN. Without them it would only warn, and the kernel would write arbitrary values.
#if defined(__NVCC__)
#define SUTURE_REFUSE_HOST_CALLS _Pragma("nv_diagnostic push") _Pragma("nv_diag_error 20011")
#define SUTURE_ALLOW_HOST_CALLS _Pragma("nv_diagnostic pop")
#else
#define SUTURE_REFUSE_HOST_CALLS
#define SUTURE_ALLOW_HOST_CALLS
#endif

// Full unrolling of short loops with a compile-time count, where it keeps small arrays in registers.
#if defined(__CUDA_ARCH__)
#define SUTURE_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define SUTURE_UNROLL
#elif defined(__clang__)
#define SUTURE_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define SUTURE_UNROLL _Pragma("GCC unroll 8")
#else
#define SUTURE_UNROLL
#endif

// SUTURE_UNROLL for loops whose count may be known only at run time; clang is not asked, since it warns if it cannot
// unroll.
#if defined(__clang__) && !defined(__CUDACC__)
#define SUTURE_TRY_UNROLL
#else
#define SUTURE_TRY_UNROLL SUTURE_UNROLL
#endif

// Keeps a loop from being unrolled on a device.
#if defined(__CUDA_ARCH__)
#define SUTURE_NO_UNROLL _Pragma("unroll 1")
#else
#define SUTURE_NO_UNROLL
#endif

// Marks a loop over a few pixels. A device unrolls it and keeps the pixels in registers; the host vectorizes it.
#if defined(__CUDA_ARCH__)
#define SUTURE_LANES _Pragma("unroll")
#else
#define SUTURE_LANES
#endif

// Keeps g++ from unrolling a short loop completely before it tries to vectorize the loop.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define SUTURE_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define SUTURE_KEEP_LOOP
#endif

// SUTURE_INDEPENDENT promises that no iteration of the loop that follows reads what another writes. It also keeps the
// loop from being unrolled. clang gets no such hint: it would warn of each loop that it still does not vectorize, as
// under a sanitizer.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define SUTURE_INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define SUTURE_INDEPENDENT
#endif

// An unsupported compiler or setting gets one error message: where SUTURE_REFUSED is defined, suture.hpp and suture.cuh
// include nothing more.
#if __cplusplus < 202002L
#error "suture: needs C++20; compile this file with -std=c++20"
#define SUTURE_REFUSED
#endif

#if defined(min) || defined(max)
#error "suture: min or max is a macro; #undef it before this header (Windows: define NOMINMAX)"
#define SUTURE_REFUSED
#endif

// The same bits everywhere need IEEE arithmetic: no reassociation, no flush to zero, no approximate division.
#if defined(__FAST_MATH__) || defined(__USE_FAST_MATH__) || (defined(__CUDACC__) && defined(__CUDA_FTZ) && __CUDA_FTZ)
#error "suture: -ffast-math / --use_fast_math changes results; compile this file without it"
#define SUTURE_REFUSED
// These modes are parts of -ffast-math, some of which -ffast-math -fno-finite-math-only keeps. clang defines only the
// first macro.
#elif (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "suture: -ffinite-math-only, -fassociative-math, -freciprocal-math and -fno-signed-zeros change results"
#define SUTURE_REFUSED
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "suture: floats are computed in another precision; compile this file without -mfpmath=387"
#define SUTURE_REFUSED
#endif

// g++ 12.1 and 12.2 store wrong constants of 32 bytes when they tune for these processors (GCC bug 108599): zeros in
// the upper half become what the lower half repeats. The defaults of `affine{}` for scale and shear are such constants.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12 && __GNUC_MINOR__ < 3 &&                      \
    (defined(__tune_skylake_avx512__) || defined(__tune_cannonlake__) || defined(__tune_icelake_client__) || \
     defined(__tune_icelake_server__) || defined(__tune_cascadelake__) || defined(__tune_tigerlake__) ||     \
     defined(__tune_cooperlake__) || defined(__tune_sapphirerapids__) || defined(__tune_rocketlake__))
#error "suture: g++ 12.1 and 12.2 store wrong constants when they tune for this processor; add -mtune=generic"
#define SUTURE_REFUSED
#endif
