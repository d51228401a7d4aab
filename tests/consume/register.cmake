# SPDX-License-Identifier: Apache-2.0
# The three ways to use the library from another project with CMake, and one without.
if(SUTURE_CUDA_FOUND)
  suture_device_launcher(plain launcher)
  string(REPLACE ";" "\\;" launcher "${launcher}")  # stays one argument
  set(cuda_arguments "-DCUDA_COMPILER=${CMAKE_CUDA_COMPILER}" "-DCUDA_LIBRARY_DIR=${CUDAToolkit_LIBRARY_DIR}"
      -DCUDA_ARCHITECTURES=80-virtual "-DLAUNCHER=${launcher}")
else()
  set(cuda_arguments "")
endif()
foreach(mode IN ITEMS build_tree install_tree subdirectory pkg_config)
  add_test(NAME consume.${mode}
           COMMAND "${CMAKE_COMMAND}" -DMODE=${mode} "-DGENERATOR=${CMAKE_GENERATOR}" "-DCXX=${CMAKE_CXX_COMPILER}"
                   "-DVERSION=${PROJECT_VERSION}" "-DSUTURE_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
                   "-DSUTURE_BUILD_DIR=${PROJECT_BINARY_DIR}" "-DWORK_DIR=${PROJECT_BINARY_DIR}/tests/consume"
                   ${cuda_arguments} -P "${PROJECT_SOURCE_DIR}/tests/consume/run.cmake")
  set_tests_properties(consume.${mode} PROPERTIES LABELS consume TIMEOUT 300)
endforeach()
set_tests_properties(consume.pkg_config PROPERTIES SKIP_REGULAR_EXPRESSION "there is no pkg-config")

# This project itself, where CMake's module does not know what the toolkit lacks.
if(SUTURE_CUDA_FOUND)
  add_test(NAME consume.this_project_with_the_module_of_debian
           COMMAND "${CMAKE_COMMAND}" --fresh -S "${PROJECT_SOURCE_DIR}" -B "${PROJECT_BINARY_DIR}/tests/consume/itself"
                   -G "${CMAKE_GENERATOR}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" -DSUTURE_CUDA=ON
                   "-DCMAKE_CUDA_COMPILER=${CMAKE_CUDA_COMPILER}" -DCMAKE_CUDA_ARCHITECTURES=80-virtual
                   "-DCMAKE_MODULE_PATH=${PROJECT_SOURCE_DIR}/tests/consume/modules")
  set_tests_properties(consume.this_project_with_the_module_of_debian PROPERTIES LABELS consume TIMEOUT 600)
endif()
