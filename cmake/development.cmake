# SPDX-License-Identifier: Apache-2.0
# How this repository's own tests, examples and benchmarks are compiled. None of it reaches a user of suture::suture.
include(CheckCXXCompilerFlag)

option(SUTURE_WARNINGS_AS_ERRORS "Treat warnings in tests, examples and benchmarks as errors" ON)
option(SUTURE_BUNDLE "Build programs for another machine: bench/bundle" OFF)
set(SUTURE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, for example address,undefined")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# What was compiled before is taken from ccache, if it is here; -DCMAKE_CXX_COMPILER_LAUNCHER= (and the same for CUDA)
# goes without it, and any other launcher may stand there. suture_use_ccache(LANGUAGE), once the language is enabled.
find_program(SUTURE_CCACHE ccache)
mark_as_advanced(SUTURE_CCACHE)
macro(suture_use_ccache language)
  if(PROJECT_IS_TOP_LEVEL AND SUTURE_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${SUTURE_CCACHE}")
  endif()
endmacro()
suture_use_ccache(CXX)

# Most of what is built for a check compiles longer than it runs: tests/run leaves out the optimizer, but for the sources
# of which the opposite is true. suture_runs_long(SOURCE...) names them.
set(SUTURE_LONG_RUN_OPTIONS "" CACHE STRING "Options of the compiler for sources that run longer than they compile")
function(suture_runs_long)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${SUTURE_LONG_RUN_OPTIONS})
  if(SUTURE_LONG_RUN_OPTIONS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # which refuses headers of another level
    set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# g++ collects garbage many times in the gigabyte that such a source takes; without that it is 7 % faster.
set(suture_gnu_memory "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(suture_gnu_memory --param=ggc-min-heapsize=1048576)  # KiB
endif()

# nvcc is optional: without it everything that can be built, is built.
if(NOT DEFINED SUTURE_CUDA OR SUTURE_CUDA)
  include(CheckLanguage)
  # Debian's PATH does not hold the place where the CUDA toolkit installs itself.
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(suture_nvcc nvcc PATHS /usr/local/cuda/bin)
    mark_as_advanced(suture_nvcc)
    if(suture_nvcc)
      set(CMAKE_CUDA_COMPILER "${suture_nvcc}")
    endif()
  endif()
  check_language(CUDA)
endif()
if(CMAKE_CUDA_COMPILER AND (NOT DEFINED SUTURE_CUDA OR SUTURE_CUDA))
  # These programs run where they are built, unless told otherwise: PTX alone compiles fastest and runs on every device
  # and under the emulator, and a GPU that is here gets its machine code.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual)
    find_program(SUTURE_NVIDIA_SMI nvidia-smi)
    mark_as_advanced(SUTURE_NVIDIA_SMI)
    if(SUTURE_NVIDIA_SMI)
      execute_process(COMMAND "${SUTURE_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
                      OUTPUT_VARIABLE capabilities ERROR_QUIET)
      # Not what nvcc is too old for, nor the numbers in an error message of nvidia-smi.
      execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-code OUTPUT_VARIABLE known_to_nvcc ERROR_QUIET)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${capabilities}")
      list(REMOVE_DUPLICATES capabilities)
      foreach(capability IN LISTS capabilities)
        string(REPLACE "." "" capability ${capability})
        if(capability GREATER_EQUAL 80 AND known_to_nvcc MATCHES "sm_${capability}")
          list(APPEND CMAKE_CUDA_ARCHITECTURES ${capability}-real)
        endif()
      endforeach()
    endif()
  endif()
  # The emulator replaces the shared runtime.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  suture_use_ccache(CUDA)
  # Debian 12's CMake 3.25.1 marks nvToolsExt as deprecated without a look whether it is there, and ends with an error
  # where it is not, as in CUDA 13. Nothing here links it: a target of the name will do.
  if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit REQUIRED)
  if(SUTURE_BUNDLE)
    # Libraries lie beside the programs, unless LD_LIBRARY_PATH has others.
    set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
    set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
    add_link_options(-Wl,--enable-new-dtags)
  else()
    list(APPEND CMAKE_BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}")
  endif()
  set(SUTURE_CUDA_FOUND ON)
else()
  set(SUTURE_CUDA_FOUND OFF)
  if(SUTURE_CUDA)
    message(FATAL_ERROR "suture: SUTURE_CUDA is ON but no CUDA compiler was found")
  endif()
  message(STATUS "suture: no CUDA compiler, building for the CPU alone")
endif()

find_package(OpenMP COMPONENTS CXX)

# Linked by every test, example and benchmark of this repository.
add_library(suture_development INTERFACE)
set(host_flags -fno-math-errno -fno-trapping-math ${suture_gnu_memory})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  # AVX2 and hardware fma: a software fmaf gives the same bits, an order of magnitude slower.
  set(SUTURE_MARCH x86-64-v3 CACHE STRING "-march of what is built here; `native` for this machine alone, the same bits")
  check_cxx_compiler_flag(-march=${SUTURE_MARCH} SUTURE_HAS_MARCH)
  if(SUTURE_HAS_MARCH)
    list(APPEND host_flags -march=${SUTURE_MARCH} -mtune=generic)  # tuned by itself, g++ 12.2 stores wrong constants
  endif()
endif()
if(SUTURE_SANITIZE)
  list(APPEND host_flags "-fsanitize=${SUTURE_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(suture_development INTERFACE "-fsanitize=${SUTURE_SANITIZE}")
endif()
set(warnings -Wall -Wextra -Wshadow -Wconversion)
set(cuda_warnings -Wall -Wextra -Wshadow)  # -Wconversion fires inside the toolkit's own generated code
if(SUTURE_WARNINGS_AS_ERRORS)
  list(APPEND warnings -Werror)
endif()
target_compile_options(suture_development INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${host_flags};${warnings}>")
if(OpenMP_CXX_FOUND)
  target_link_libraries(suture_development INTERFACE OpenMP::OpenMP_CXX)
endif()
if(SUTURE_CUDA_FOUND)
  set(cuda_host_flags ${host_flags} ${cuda_warnings})
  if(OpenMP_CXX_FOUND)
    list(APPEND cuda_host_flags ${OpenMP_CXX_FLAGS})
  endif()
  list(JOIN cuda_host_flags "," cuda_host_flags)
  target_compile_options(suture_development INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_host_flags}>")
endif()

# suture_zarr: what suture/feed/zarr.hpp needs, where it is installed.
find_package(ZLIB QUIET)
find_package(nlohmann_json 3 QUIET)
find_path(BLOSC_INCLUDE_DIR blosc.h)
find_library(BLOSC_LIBRARY blosc)
find_path(ZSTD_INCLUDE_DIR zstd.h)
find_library(ZSTD_LIBRARY zstd)
mark_as_advanced(BLOSC_INCLUDE_DIR BLOSC_LIBRARY ZSTD_INCLUDE_DIR ZSTD_LIBRARY)
if(ZLIB_FOUND AND nlohmann_json_FOUND AND BLOSC_INCLUDE_DIR AND BLOSC_LIBRARY AND ZSTD_INCLUDE_DIR AND ZSTD_LIBRARY)
  add_library(suture_zarr INTERFACE)
  target_include_directories(suture_zarr SYSTEM INTERFACE "${BLOSC_INCLUDE_DIR}" "${ZSTD_INCLUDE_DIR}")
  target_link_libraries(suture_zarr INTERFACE nlohmann_json::nlohmann_json "${BLOSC_LIBRARY}" "${ZSTD_LIBRARY}" ZLIB::ZLIB)
else()
  message(STATUS "suture: c-blosc or zstd is missing (Debian: libblosc-dev libzstd-dev): no Zarr arrays are read")
endif()

# suture_precompile(NAME [target...] HEADERS header...): precompiles headers that many sources read, once for all programs
# that say suture_use_precompiled(PROGRAM NAME). Sources with other options read the headers themselves.
function(suture_precompile name)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$" OR SUTURE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS")
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "// A source of its own, which CMake asks for.\n")
  add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  target_link_libraries(${name} PRIVATE suture::suture suture_development ${arg_UNPARSED_ARGUMENTS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()
function(suture_use_precompiled program name)
  if(TARGET ${name})
    set_target_properties(${program} PROPERTIES PCH_WARN_INVALID OFF)
    target_precompile_headers(${program} REUSE_FROM ${name})
    target_compile_options(${program} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  endif()
endfunction()
