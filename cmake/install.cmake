# SPDX-License-Identifier: Apache-2.0
# Install rules, the package configuration of both the install tree and the build tree, and a file for pkg-config.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/suture")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/suture" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(TARGETS suture suture_cuda EXPORT suture_targets)
install(EXPORT suture_targets NAMESPACE suture:: FILE suture-targets.cmake DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/suture-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/suture-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change interfaces.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/suture-config-version.cmake" COMPATIBILITY ${compatibility}
                                 ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/suture-config.cmake" "${PROJECT_BINARY_DIR}/suture-config-version.cmake"
        DESTINATION "${package_dir}")
export(EXPORT suture_targets NAMESPACE suture:: FILE "${PROJECT_BINARY_DIR}/suture-targets.cmake")

# For builds without CMake. Paths start at the file itself, so that the tree may be moved and `cmake --install --prefix`
# may choose it; a directory that was given as an absolute path stays where it is.
set(pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_DATADIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/suture.pc.in" "${PROJECT_BINARY_DIR}/suture.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/suture.pc" DESTINATION "${pkgconfig_dir}")
