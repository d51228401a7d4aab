# SPDX-License-Identifier: Apache-2.0
# Device tests run on a GPU when there is one. On a machine without, they can run under cudaemu, a replacement of
# the CUDA runtime that executes PTX on the CPU, where its sources are at hand. It is built in the build tree.
set(cudaemu_sources "$ENV{SUTURE_CUDAEMU}")
if(NOT cudaemu_sources)
  set(cudaemu_sources "${PROJECT_SOURCE_DIR}/../shared/tools/cudaemu")
endif()
set(SUTURE_CUDAEMU "${cudaemu_sources}" CACHE PATH "Sources of cudaemu; the environment variable sets the default")
set(suture_emulator "")  # the launcher, empty where there is none
if(NOT SUTURE_CUDA_FOUND OR NOT EXISTS "${SUTURE_CUDAEMU}/cudaemu-run")
  return()
endif()
find_program(SUTURE_MAKE NAMES gmake make)
mark_as_advanced(SUTURE_MAKE)
if(NOT SUTURE_MAKE)
  message(STATUS "suture: make is missing, so cudaemu is not built")
  return()
endif()
if(NOT CUDAToolkit_VERSION_MAJOR EQUAL 13)
  message(STATUS "suture: cudaemu stands in for the runtime of CUDA 13, not of ${CUDAToolkit_VERSION_MAJOR}")
  return()
endif()

set(emulator_dir "${PROJECT_BINARY_DIR}/cudaemu")
set(emulator_library "${emulator_dir}/build/libcudart.so.13")
file(GLOB_RECURSE emulator_sources CONFIGURE_DEPENDS "${SUTURE_CUDAEMU}/src/*")
add_custom_command(
  OUTPUT "${emulator_library}"
  # The sources may be read-only; their copy must not be.
  COMMAND ${CMAKE_COMMAND} -E rm -rf "${emulator_dir}"
  COMMAND cp -r "${SUTURE_CUDAEMU}" "${emulator_dir}"
  COMMAND chmod -R u+w "${emulator_dir}"
  COMMAND ${SUTURE_MAKE} -s -C "${emulator_dir}" "CUDA=${CUDAToolkit_TARGET_DIR}"
  DEPENDS ${emulator_sources}
  COMMENT "Building the CUDA emulator" VERBATIM)
add_custom_target(suture_cudaemu ALL DEPENDS "${emulator_library}")
set(suture_emulator "${emulator_dir}/cudaemu-run")
