# SPDX-License-Identifier: Apache-2.0
# Configures, builds and runs the consumer against the build tree, the install tree or the source tree (MODE), or
# compiles it with the flags that pkg-config gives.
set(work "${WORK_DIR}/${MODE}")
file(REMOVE_RECURSE "${work}")

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nexit status ${status}")
  endif()
endfunction()

if(MODE STREQUAL "pkg_config")
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message("skipped: there is no pkg-config")
    return()
  endif()
  step("${CMAKE_COMMAND}" --install "${SUTURE_BUILD_DIR}" --prefix "${work}/first")
  file(RENAME "${work}/first" "${work}/prefix")  # paths in the file are its own business
  set(ENV{PKG_CONFIG_PATH} "${work}/prefix/share/pkgconfig")
  step("${pkg_config}" "--exact-version=${VERSION}" suture)
  execute_process(COMMAND "${pkg_config}" --cflags suture OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  step("${CXX}" -std=c++20 ${flags} "${CMAKE_CURRENT_LIST_DIR}/main.cpp" -o "${work}/consumer")
  step("${work}/consumer")
  return()
endif()

set(arguments -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Release "-DCONSUMER_VERSION=${VERSION}")
if(MODE STREQUAL "build_tree")
  list(APPEND arguments "-Dsuture_DIR=${SUTURE_BUILD_DIR}")
elseif(MODE STREQUAL "install_tree")
  step("${CMAKE_COMMAND}" --install "${SUTURE_BUILD_DIR}" --prefix "${work}/prefix")
  list(APPEND arguments "-DCMAKE_PREFIX_PATH=${work}/prefix")
else()
  list(APPEND arguments "-DSUTURE_SOURCE_DIR=${SUTURE_SOURCE_DIR}")
endif()
if(CUDA_COMPILER)
  list(APPEND arguments -DCONSUMER_CUDA=ON "-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}" -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared
       "-DCMAKE_BUILD_RPATH=${CUDA_LIBRARY_DIR}" "-DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES}"
       "-DCMAKE_MODULE_PATH=${CMAKE_CURRENT_LIST_DIR}/modules")
endif()

step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${work}/build" ${arguments})
step("${CMAKE_COMMAND}" --build "${work}/build")
step("${work}/build/consumer")
if(CUDA_COMPILER)
  execute_process(COMMAND ${LAUNCHER} "${work}/build/cuda_consumer" RESULT_VARIABLE status)
  if(NOT status EQUAL 0 AND NOT status EQUAL 77)  # 77: nothing here can run it
    message(FATAL_ERROR "cuda_consumer: exit status ${status}")
  endif()
endif()

if(NOT MODE STREQUAL "subdirectory" AND VERSION VERSION_LESS 1)
  # The package must refuse a request for another minor version.
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${work}/refused" ${arguments}
                          -DCONSUMER_VERSION=0.999 -DCONSUMER_CUDA=OFF
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    message(FATAL_ERROR "find_package(suture 0.999) was satisfied by ${VERSION}")
  endif()
endif()
