# SPDX-License-Identifier: Apache-2.0
# suture_test and suture_device_test: one line registers a GoogleTest program.
include(GoogleTest)
find_package(GTest REQUIRED)

set(SUTURE_DATA_DIR "${PROJECT_SOURCE_DIR}/../shared/data" CACHE PATH "Real volumes and slides for the tests")
set(SUTURE_ORACLE_DIR "${PROJECT_SOURCE_DIR}/../shared/oracles" CACHE PATH "Reference results for the tests")

function(suture_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE suture::suture suture_development GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  # Looked up when a test runs: a test whose files are missing skips itself and says so.
  target_compile_definitions(${name} PRIVATE SUTURE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             SUTURE_DATA_DIR="${SUTURE_DATA_DIR}"
                                             SUTURE_ORACLE_DIR="${SUTURE_ORACLE_DIR}")
  set_property(GLOBAL APPEND PROPERTY suture_test_programs $<TARGET_FILE:${name}>)
endfunction()

# suture_test(NAME SOURCES file.cpp... [LIBRARIES target...]): host tests, one ctest entry per test case.
function(suture_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  suture_test_program(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 600 LABELS host)
endfunction()

# suture_device_test(NAME SOURCES file.cu... [LIBRARIES target...]): one ctest entry per program.
function(suture_device_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  if(NOT SUTURE_CUDA_FOUND)
    return()
  endif()
  suture_test_program(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE suture::cuda ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES 80-virtual CUDA_RUNTIME_LIBRARY Shared)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
