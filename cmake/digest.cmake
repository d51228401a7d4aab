# SPDX-License-Identifier: Apache-2.0
# suture_digest_program(NAME SOURCE main.cpp [CUDA_SOURCE main.cu] [EVERY_SET] [LONG]): one program that prints digests,
# compiled in every way that keeps IEEE arithmetic and run with several thread counts. All of them must print the same
# text. LONG ones belong to tests/run --all, where the second compiler and -O0 are left to tests/run --full if there is nvcc.
# Its device code is optimized and contracted like the second compiler's, and the host's half beside it is compiled at -O0.
#   NAME.host    compilers, optimization levels, instruction sets, contraction, OMP_NUM_THREADS
#   with EVERY_SET, instruction sets from the baseline to that of the machine
#   NAME.device  CUDA_SOURCE on a GPU or under the emulator, against the host's text. With -fmad=true alone, since
#   codegen.contraction shows of its PTX that there is nothing to fuse
# A program with SUBJECTS prints the one that its argument names. Each has both tests, digest_SUBJECT.host
# and digest_SUBJECT.device.
option(SUTURE_TEST_EVERY_FLAG "Build digest programs with every combination of flags, not a choice" OFF)

# Instruction sets are compared where there are several, whatever SUTURE_MARCH is.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-march=x86-64-v3 SUTURE_HAS_X86_64_V3)

# One test of the commands, or one for each of arg_SUBJECTS.
function(suture_digest_test name kind labels)
  if(NOT arg_SUBJECTS)
    set(tests "${name}")
  else()
    list(TRANSFORM arg_SUBJECTS PREPEND digest_ OUTPUT_VARIABLE tests)
  endif()
  foreach(test IN LISTS tests)
    set(commands ${ARGN})
    if(arg_SUBJECTS)
      string(REPLACE "digest_" "" subject "${test}")
      list(TRANSFORM commands APPEND " ${subject}")
    endif()
    add_test(NAME ${test}.${kind} COMMAND bash "${PROJECT_SOURCE_DIR}/tests/same_output" ${commands})
    set_tests_properties(${test}.${kind} PROPERTIES LABELS "${labels}" TIMEOUT 1200)
    if(kind STREQUAL "device")
      set_tests_properties(${test}.${kind} PROPERTIES SKIP_RETURN_CODE 77)
    endif()
  endforeach()
endfunction()

function(suture_digest_program name)
  if(SUTURE_SANITIZE)  # which look at one way to compile
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "EVERY_SET;LONG" "SOURCE;CUDA_SOURCE" "SUBJECTS")
  if(arg_LONG AND NOT SUTURE_TEST_ALL AND NOT SUTURE_BUNDLE)
    return()
  endif()
  get_filename_component(source "${arg_SOURCE}" ABSOLUTE)
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  file(MAKE_DIRECTORY "${dir}")
  set(openmp "")
  if(OpenMP_CXX_FOUND)
    set(openmp "${OpenMP_CXX_FLAGS}")
  endif()

  # Each variant: a label, then flags. The first is what the others are compared with. A compiler takes seconds to minutes
  # for each, so the default is a choice; g++ contracts by default and takes -ffp-contract=on for off.
  if(SUTURE_HAS_X86_64_V3)
    set(optimized "O2_v3|-O2 -march=x86-64-v3")  # two thirds of the time of -O3, which the set of all operations tries
    if(SUTURE_TEST_EVERY_FLAG)
      set(optimized "O3_v3|-O3 -march=x86-64-v3")
    endif()
    set(variants ${optimized} "O0_v3|-O0 -march=x86-64-v3")
    set(native "O3_native|-O3 -march=native -mtune=generic")
    if(SUTURE_TEST_EVERY_FLAG)
      list(APPEND variants ${native} "O1_baseline_fma|-O1 -march=x86-64 -mfma")
    elseif(arg_EVERY_SET AND SUTURE_TEST_ALL)
      set(variants ${native} "O0_baseline_fma|-O0 -march=x86-64 -mfma")
    endif()
    set(other_variants "contract_fast|-O3 -march=x86-64-v3 -ffp-contract=fast -fno-math-errno -fno-trapping-math")
    if(SUTURE_TEST_EVERY_FLAG)
      list(APPEND variants "O2_baseline|-O2 -march=x86-64" "contract_on|-O3 -march=x86-64-v3 -ffp-contract=on"
           "contract_off|-O3 -march=x86-64-v3 -ffp-contract=off" ${other_variants})
      list(APPEND other_variants "O0_v3|-O0 -march=x86-64-v3" "O3_native|-O3 -march=native -mtune=generic")
    endif()
  else()
    set(variants "O3|-O3" "O0|-O0" "contract_off|-O3 -ffp-contract=off" "contract_fast|-O3 -ffp-contract=fast")
    set(other_variants "contract_fast|-O3 -ffp-contract=fast")
  endif()
  # What is tried all the time. The optimizer takes most of the time that digests cost.
  if(NOT SUTURE_TEST_ALL)
    list(FILTER variants INCLUDE REGEX "^O0_v3|^O0$")
    set(other_variants "")
  elseif(arg_LONG AND SUTURE_CUDA_FOUND AND NOT SUTURE_TEST_EVERY_FLAG)
    list(FILTER variants EXCLUDE REGEX "^O0")
    set(other_variants "")
  endif()
  set(programs "")
  set(commands "")
  foreach(compiler IN LISTS suture_compilers)
    get_filename_component(compiler_name "${compiler}" NAME)
    set(compiler_variants ${variants})
    set(threads ${openmp})
    set(memory ${suture_gnu_memory})
    if(NOT compiler STREQUAL CMAKE_CXX_COMPILER)
      set(compiler_variants ${other_variants})
      set(threads "")  # the second compiler may lack an OpenMP runtime; one thread gives the same digest
      set(memory "")
    endif()
    foreach(variant IN LISTS compiler_variants)
      string(REGEX MATCH "^[^|]+" label "${variant}")
      string(REGEX REPLACE "^[^|]+\\|" "" flags "${variant}")
      separate_arguments(flags)
      set(program "${dir}/${compiler_name}.${label}")
      add_custom_command(
        OUTPUT "${program}"
        COMMAND "${compiler}" -std=c++20 ${flags} ${threads} ${memory} "-I${PROJECT_SOURCE_DIR}/include"
                "-I${PROJECT_SOURCE_DIR}/tests" -MD -MF "${program}.d" -MT "${program}" "${source}" -o "${program}"
        DEPENDS "${source}" DEPFILE "${program}.d" COMMENT "Building ${name} (${compiler_name} ${label})" VERBATIM)
      list(APPEND programs "${program}")
      list(APPEND commands "${compiler_name}.${label}=${program}")
    endforeach()
  endforeach()
  list(POP_FRONT programs reference)
  if(openmp)
    foreach(threads IN ITEMS 1 2 3 8)
      list(APPEND commands "threads_${threads}=env OMP_NUM_THREADS=${threads} ${reference}")
    endforeach()
  endif()
  suture_digest_test(${name} host digest ${commands})

  add_custom_target(${name}_reference ALL DEPENDS "${reference}")
  add_custom_target(${name}_programs ALL DEPENDS ${programs})

  if(SUTURE_CUDA_FOUND AND arg_CUDA_SOURCE)
    get_filename_component(cuda_source "${arg_CUDA_SOURCE}" ABSOLUTE)
    get_filename_component(cuda_name "${arg_CUDA_SOURCE}" NAME_WE)
    suture_device_launcher(plain launcher)
    list(JOIN launcher " " launcher)
    set(commands "host=${reference}")
    set(device_programs "")
    set(fmads true)
    # -O0 is for the host's half, which plans; the device's is optimized.
    set(code -O0 -gencode arch=compute_80,code=compute_80 "-Xlinker=-rpath,${CUDAToolkit_LIBRARY_DIR}")
    if(SUTURE_BUNDLE)  # which is to be small
      set(code -O1 -gencode "arch=compute_80,code=[compute_80,sm_80,sm_90]" --compress-mode=size
          "-Xlinker=--enable-new-dtags,-rpath,$ORIGIN/../lib")
    endif()
    if(SUTURE_TEST_EVERY_FLAG)
      list(APPEND fmads false)
    endif()
    foreach(fmad IN LISTS fmads)
      set(program "${dir}/nvcc.fmad_${fmad}")
      add_custom_command(
        OUTPUT "${program}" BYPRODUCTS "${program}.ptx"
        # Its PTX is what codegen.contraction reads.
        COMMAND ${CMAKE_COMMAND} -E make_directory "${program}.kept"
        COMMAND "${CMAKE_CUDA_COMPILER}" -std=c++20 ${code} -fmad=${fmad} -cudart shared
                "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests" -MD -MF "${program}.d"
                -MT "${program}" -keep -keep-dir "${program}.kept" "${cuda_source}" -o "${program}"
        COMMAND ${CMAKE_COMMAND} -E rename "${program}.kept/${cuda_name}.ptx" "${program}.ptx"
        COMMAND ${CMAKE_COMMAND} -E rm -rf "${program}.kept"
        DEPENDS "${cuda_source}" DEPFILE "${program}.d" COMMENT "Building ${name} (nvcc -fmad=${fmad})" VERBATIM)
      list(APPEND device_programs "${program}")
      list(APPEND commands "fmad_${fmad}=${launcher} ${program}")
    endforeach()
    suture_digest_test(${name} device "digest;device" ${commands})
    add_custom_target(${name}_device_programs ALL DEPENDS ${device_programs})
    add_dependencies(suture_device_tests ${name}_reference ${name}_device_programs)
  endif()
endfunction()

# suture_digest_subjects(NAME SUBJECT...): digest programs of tests/digest/SUBJECT.cpp and SUBJECT.cu. tests/run --all
# compiles them as one program NAME, in which compilers read the headers once; with every flag there is one for each.
function(suture_digest_subjects name)
  if(SUTURE_TEST_EVERY_FLAG OR SUTURE_BUNDLE)
    foreach(subject IN LISTS ARGN)
      suture_digest_program(digest_${subject} SOURCE digest/${subject}.cpp CUDA_SOURCE digest/${subject}.cu LONG)
    endforeach()
    return()
  endif()
  foreach(type IN ITEMS cpp cu)
    set(includes "")
    set(calls "")
    foreach(subject IN LISTS ARGN)
      string(APPEND includes "#define main print_${subject}_digests\n"
                             "#include \"${CMAKE_CURRENT_SOURCE_DIR}/digest/${subject}.${type}\"\n#undef main\n")
      string(APPEND calls "  if (subject == \"${subject}\") return print_${subject}_digests();\n")
    endforeach()
    file(CONFIGURE OUTPUT ${name}.${type} @ONLY CONTENT
"#include <string_view>
#pragma GCC diagnostic error \"-Wreturn-type\"  // main alone may end without a value
${includes}
int main(int count, char** arguments) {
  const std::string_view subject = count == 2 ? arguments[1] : \"\";
${calls}  return 1;
}
")
  endforeach()
  suture_digest_program(${name} SOURCE "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp"
                        CUDA_SOURCE "${CMAKE_CURRENT_BINARY_DIR}/${name}.cu" LONG SUBJECTS ${ARGN})
endfunction()
