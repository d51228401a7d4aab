# SPDX-License-Identifier: Apache-2.0
# suture_test and suture_device_test: one line registers a GoogleTest program.
include(GoogleTest)
find_package(GTest REQUIRED)
option(SUTURE_TEST_ALL "Register what takes long as well: see tests/run" OFF)
include("${CMAKE_CURRENT_LIST_DIR}/emulator.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/digest.cmake")

# Headers and misuses are compiled by g++ and clang++ both, where both are at hand.
set(suture_compilers "${CMAKE_CXX_COMPILER}")
find_program(SUTURE_CLANGXX NAMES clang++ clang++-19 clang++-16 clang++-14)
mark_as_advanced(SUTURE_CLANGXX)
if(SUTURE_CLANGXX AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND suture_compilers "${SUTURE_CLANGXX}")
endif()

if(SUTURE_CUDA_FOUND)
  add_executable(suture_device_probe "${PROJECT_SOURCE_DIR}/tests/device/probe.cpp")
  target_link_libraries(suture_device_probe PRIVATE CUDA::cudart)
  add_custom_target(suture_device_tests)  # all that `ctest -L device -LE strict` runs, but the examples
  add_dependencies(suture_device_tests suture_device_probe)
  if(TARGET suture_cudaemu)
    add_dependencies(suture_device_tests suture_cudaemu)
  endif()
endif()

# A launcher: COMMAND of device tests in one of the modes of tests/device/run.
function(suture_device_launcher mode result)
  if(suture_emulator)
    set(emulator "${suture_emulator}")
  else()
    set(emulator none)
  endif()
  set(${result} bash "${PROJECT_SOURCE_DIR}/tests/device/run" "${PROJECT_BINARY_DIR}/tests/suture_device_probe"
      "${emulator}" ${mode} PARENT_SCOPE)
endfunction()

# Host tests to build alone: ThreadSanitizer has nothing to find in those of a single thread.
set(SUTURE_TEST_ONLY "" CACHE STRING "Build these host tests alone; empty for all")

# What every host test reads is read once.
suture_precompile(suture_precompiled_headers GTest::gtest_main HEADERS <gtest/gtest.h> <suture/suture.hpp>)

# This file is the one that knows the path of the clone: tests/support/source_directory.hpp.
file(CONFIGURE OUTPUT source_directory.cpp @ONLY CONTENT [[
#include "support/source_directory.hpp"
std::filesystem::path support::source_directory() { return "@PROJECT_SOURCE_DIR@"; }
]])
add_library(suture_source_directory STATIC "${CMAKE_CURRENT_BINARY_DIR}/source_directory.cpp")
target_link_libraries(suture_source_directory PRIVATE suture_development)
target_include_directories(suture_source_directory PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_compile_features(suture_source_directory PRIVATE cxx_std_20)

# Sets the result to the source that a test's name promises, or to nothing where the test has other sources alone.
function(suture_own_source result source)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    set(${result} "${source}" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

function(suture_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE suture::suture suture_development suture_source_directory GTest::gtest_main)
  if(NOT "${ARGN}" MATCHES "\\.cu")
    suture_use_precompiled(${name} suture_precompiled_headers)
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  set_property(GLOBAL APPEND PROPERTY suture_test_programs "$<TARGET_FILE:${name}>")
endfunction()

# tests/run --all runs the programs of the preset asan_core with sanitizers (variant.address_and_undefined), and does not
# build them once more without.
set(suture_sanitized_tests "")
if(SUTURE_TEST_ALL AND NOT SUTURE_TEST_EVERY_FLAG AND NOT SUTURE_TEST_ONLY)
  file(READ "${PROJECT_SOURCE_DIR}/CMakePresets.json" presets)
  string(JSON count LENGTH "${presets}" configurePresets)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON name GET "${presets}" configurePresets ${i} name)
    if(name STREQUAL "asan_core")
      string(JSON suture_sanitized_tests GET "${presets}" configurePresets ${i} cacheVariables SUTURE_TEST_ONLY)
    endif()
  endforeach()
endif()

# suture_test(NAME FLOOR folder [LABELS long|full] [SOURCES file.cpp...] [LIBRARIES target...]): host tests, one ctest entry
# per test case. Their source is FLOOR/NAME.cpp, and more where SOURCES names them. Those labeled long belong to
# tests/run --all, those labeled full to --full; each is built where it is asked for by name.
function(suture_test name)
  if((SUTURE_TEST_ONLY AND NOT name IN_LIST SUTURE_TEST_ONLY) OR name IN_LIST suture_sanitized_tests)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FLOOR" "LABELS;SOURCES;LIBRARIES")
  if(NOT SUTURE_TEST_ONLY AND (("long" IN_LIST arg_LABELS AND NOT SUTURE_TEST_ALL) OR
                               ("full" IN_LIST arg_LABELS AND NOT SUTURE_TEST_EVERY_FLAG)))
    return()
  endif()
  suture_own_source(own ${arg_FLOOR}/${name}.cpp)
  suture_test_program(${name} ${own} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 600 LABELS host.${arg_FLOOR})
endfunction()

# suture_device_test(NAME FLOOR folder [LABELS long|full] [SOURCES file.cu...] [LIBRARIES target...] [JOINED program]): one
# ctest entry per test case, and one for the whole program in strict mode. Tests labeled long belong to tests/run --all, those
# labeled full to --full: they compile the same loops for every corner. tests/run compiles those that are JOINED as one
# program of that name, since nvcc and its host compiler take ten seconds to read the headers.
option(SUTURE_JOIN_DEVICE_TESTS "Compile device tests as few programs" OFF)
set(SUTURE_WITHOUT_DEVICE_TESTS "" CACHE STRING "Device tests that are left out, of a bundle that is to be small")
function(suture_device_test name)
  if(name IN_LIST SUTURE_WITHOUT_DEVICE_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FLOOR;JOINED" "LABELS;SOURCES;LIBRARIES")
  if(NOT SUTURE_BUNDLE AND (("long" IN_LIST arg_LABELS AND NOT SUTURE_TEST_ALL) OR
                            ("full" IN_LIST arg_LABELS AND NOT SUTURE_TEST_EVERY_FLAG)))
    return()
  endif()
  suture_own_source(own ${arg_FLOOR}/${name}.cu)
  list(PREPEND arg_SOURCES ${own})
  if(NOT SUTURE_CUDA_FOUND)
    # It cannot be built, but it is counted.
    set(cases 0)
    foreach(source IN LISTS arg_SOURCES)
      file(STRINGS "${source}" lines REGEX "^ *(TYPED_)?TEST(_F|_P)?\\(")
      list(LENGTH lines count)
      math(EXPR cases "${cases} + ${count}")
    endforeach()
    add_test(NAME ${name} COMMAND bash -c "echo 'skipped: ${cases} device tests, no nvcc'; exit 77")
    set_tests_properties(${name} PROPERTIES LABELS device SKIP_RETURN_CODE 77)
    return()
  endif()
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set(program ${name})
  if(arg_JOINED AND SUTURE_JOIN_DEVICE_TESTS)
    set(program ${arg_JOINED})
  endif()
  set_property(GLOBAL APPEND PROPERTY suture_device_programs ${program})
  set_property(GLOBAL APPEND PROPERTY suture_tests_of_${program} ${name})
  set_property(GLOBAL APPEND PROPERTY suture_labels_of_${program} device.${arg_FLOOR})
  set_property(GLOBAL APPEND PROPERTY suture_libraries_of_${program} ${arg_LIBRARIES})
  set_property(GLOBAL PROPERTY suture_sources_of_${name} ${arg_SOURCES})
endfunction()

# Adds the programs of device tests, once all tests are named. A program of several sources is compiled as one. Where it has
# several tests, the headers of all come first, and then the sources of each test in a namespace of its own.
function(suture_device_test_programs)
  get_property(programs GLOBAL PROPERTY suture_device_programs)
  list(REMOVE_DUPLICATES programs)
  foreach(program IN LISTS programs)
    foreach(property IN ITEMS tests labels libraries)
      get_property(${property} GLOBAL PROPERTY suture_${property}_of_${program})
      list(REMOVE_DUPLICATES ${property})
    endforeach()
    set(all_sources "")
    set(headers "")
    set(joined "")
    list(LENGTH tests test_count)
    foreach(test IN LISTS tests)
      get_property(sources GLOBAL PROPERTY suture_sources_of_${test})
      list(APPEND all_sources ${sources})
      list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE text)
      string(JOIN "" text ${text})
      if(test_count GREATER 1)
        set(text "namespace ${test}_sources {\n${text}}  // namespace ${test}_sources\n")
        foreach(source IN LISTS sources)
          file(STRINGS "${source}" included REGEX "^#include")
          list(APPEND headers ${included})
        endforeach()
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})  # whose headers may change
      endif()
      string(APPEND joined "${text}")
    endforeach()
    list(LENGTH all_sources count)
    if(count GREATER 1)  # nvcc takes ten seconds to read the headers
      list(REMOVE_DUPLICATES headers)
      list(JOIN headers "\n" headers)
      file(CONFIGURE OUTPUT ${program}.cu CONTENT "${headers}\n${joined}" @ONLY)
      set(all_sources "${CMAKE_CURRENT_BINARY_DIR}/${program}.cu")
    endif()
    list(JOIN labels "," label)  # one, since gtest_discover_tests takes no list
    suture_device_test_program(${program} ${label} "${libraries}" ${all_sources})
  endforeach()
endfunction()

function(suture_device_test_program name label libraries)  # SOURCE...
  suture_test_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE suture::cuda ${libraries})
  if(NOT SUTURE_BUNDLE)  # which carries no source to show
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
  endif()
  add_dependencies(suture_device_tests ${name})
  suture_device_launcher(plain launcher)
  set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${launcher}")
  # tests/run --all runs each program once where there is no GPU, by the emulator in strict mode: the same assertions with
  # all checks of memory, in a process a program, not a case.
  if(NOT SUTURE_TEST_ALL OR SUTURE_TEST_EVERY_FLAG OR SUTURE_NVIDIA_SMI OR NOT suture_emulator)
    gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 600 LABELS ${label} SKIP_RETURN_CODE 77)
  endif()
  if(NOT SUTURE_TEST_ALL)
    return()
  endif()
  suture_device_launcher(strict launcher)
  add_test(NAME ${name}.strict COMMAND ${launcher} "$<TARGET_FILE:${name}>")
  set_tests_properties(${name}.strict PROPERTIES TIMEOUT 1200 COST 30 LABELS "${label};strict" SKIP_RETURN_CODE 77)
endfunction()
cmake_language(DEFER CALL suture_device_test_programs)

# The strict modes themselves must see a fault, and the mode of both checks must see both faults.
function(suture_check_strict_modes)
  if(NOT suture_emulator OR NOT SUTURE_TEST_ALL)
    return()
  endif()
  add_executable(suture_faulty "${PROJECT_SOURCE_DIR}/tests/device/faulty.cu")
  set(initcheck_sees "initcheck [1-9]")
  set(racecheck_sees "racecheck [1-9]")
  set(strict_sees "initcheck [1-9][0-9]*,racecheck [1-9]")
  foreach(mode IN ITEMS initcheck racecheck strict)
    add_test(NAME strict_modes.${mode}_sees_a_fault
             COMMAND bash "${PROJECT_SOURCE_DIR}/tests/device/run" false "${suture_emulator}" ${mode}
                     "$<TARGET_FILE:suture_faulty>")
    set_tests_properties(strict_modes.${mode}_sees_a_fault PROPERTIES LABELS "device;strict" TIMEOUT 300
                         PASS_REGULAR_EXPRESSION "reported by the emulator in mode ${mode}: ${${mode}_sees}")
  endforeach()
endfunction()

# Runs after the last test is registered: a program without a single test case is an error.
function(suture_check_no_program_is_empty)
  get_property(programs GLOBAL PROPERTY suture_test_programs)
  if(programs)
    add_test(NAME every_test_program_has_tests
             COMMAND bash "${PROJECT_SOURCE_DIR}/tests/not_empty" ${programs})
  endif()
endfunction()
suture_check_strict_modes()
cmake_language(DEFER CALL suture_check_no_program_is_empty)
