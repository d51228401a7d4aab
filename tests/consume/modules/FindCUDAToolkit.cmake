# SPDX-License-Identifier: Apache-2.0
# CMake's own module, and then what that of CMake 3.25.1 (Debian 12) does whether or not the toolkit has nvToolsExt: with
# CUDA 13, which has not, it ends with an error.
include("${CMAKE_ROOT}/Modules/FindCUDAToolkit.cmake")
if(CUDAToolkit_FOUND AND CMAKE_MINIMUM_REQUIRED_VERSION VERSION_GREATER_EQUAL 3.25)
  set_property(TARGET CUDA::nvToolsExt PROPERTY DEPRECATION "nvToolsExt has been superseded by nvtx3.")
endif()
