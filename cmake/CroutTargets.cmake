# SPDX-License-Identifier: Apache-2.0
# crout_library(NAME [PARSES_INPUT] SOURCES ... DEPS ... [PRECOMPILE HEADER ...]): a static library, alias
# crout::NAME. PARSES_INPUT: fuzz targets measure the coverage of this library. PRECOMPILE names external
# headers that take most of the compile time of its small sources; each source still includes what it uses.
function(crout_library name)
  cmake_parse_arguments(arg "PARSES_INPUT" "" "SOURCES;DEPS;PRECOMPILE" ${ARGN})
  add_library(crout_${name} STATIC ${arg_SOURCES})
  add_library(crout::${name} ALIAS crout_${name})
  target_link_libraries(crout_${name} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:crout_flags>)
  target_include_directories(crout_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  if(CROUT_FUZZ AND arg_PARSES_INPUT)
    target_compile_options(crout_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(arg_PRECOMPILE)
    target_precompile_headers(crout_${name} PRIVATE ${arg_PRECOMPILE})
  endif()
endfunction()

# The build type sets the optimisation of the product. Optimising the tests, and the service under a sanitizer, takes
# more compile time than it saves at run time.
if(CROUT_UNOPTIMISED_TESTS)
  set(CROUT_TEST_OPTIONS -O0)
else()
  set(CROUT_TEST_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O1>)
endif()
if(CROUT_SANITIZE)
  set(CROUT_SERVICE_OPTIONS -O0)
endif()

# crout_test(NAME [OWN_NEW] [SHARDS N] LABELS unit|rpc|tool|e2e|gpu ... SOURCES ... DEPS ...): a GoogleTest
# program, registered as one CTest test, or as N that each run a share of its cases (NAME.0 to
# NAME.N-1). Labels select tests for a preset or a machine; the target tests_LABEL builds those of a
# label. OWN_NEW: the test defines operator new, which ThreadSanitizer's runtime does not support, so
# that preset leaves it out. Precompiled headers: see tests/CMakeLists.txt.
# Tests with a daemon mostly wait: they start first, and others compute beside them. OpenMP threads
# wait passively, as in the daemon (UsePassiveOpenMpWaits), to leave the cores to other tests.
function(crout_test name)
  cmake_parse_arguments(arg "OWN_NEW" "SHARDS" "LABELS;SOURCES;DEPS" ${ARGN})
  if(arg_OWN_NEW AND CROUT_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} crout_flags GTest::gmock GTest::gtest_main
    Threads::Threads)
  target_compile_options(${name} PRIVATE ${CROUT_TEST_OPTIONS})
  if(arg_DEPS MATCHES "crout::rpc_fixture")
    target_precompile_headers(${name} REUSE_FROM crout_rpc_fixture_headers)
  elseif(arg_LABELS MATCHES "rpc|e2e" OR arg_DEPS MATCHES "crout::(auth|cli|net|observability|replicas|s3)")
    target_precompile_headers(${name} REUSE_FROM crout_rpc_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM crout_test_headers)
  endif()
  if(NOT arg_SHARDS)
    crout_add_test(${name} ${name} "${arg_LABELS}" "")
  else()
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(shard RANGE ${last})
      crout_add_test(${name}.${shard} ${name} "${arg_LABELS}"
        "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endif()
  foreach(label ${arg_LABELS})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS ${name})
endfunction()

# Registers a run of `program`; used by crout_test() alone.
function(crout_add_test name program labels environment)
  add_test(NAME ${name} COMMAND ${program})
  # The limit ends a test that hangs: with a sanitizer on a busy machine one takes ten times as long.
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1800
    SKIP_REGULAR_EXPRESSION "ALL TESTS SKIPPED")
  if(labels MATCHES "e2e")
    set_tests_properties(${name} PROPERTIES COST 10)
  else()
    list(APPEND environment OMP_WAIT_POLICY=passive)
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
endfunction()

# crout_find_python(VARIABLE MODULES): the first Python, CMake's own or the system's, that can import
# MODULES ("a, b"); empty where there is none.
function(crout_find_python variable modules)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  foreach(candidate IN ITEMS "${Python3_EXECUTABLE}" /usr/bin/python3)
    execute_process(COMMAND "${candidate}" -c "import ${modules}" RESULT_VARIABLE missing
      OUTPUT_QUIET ERROR_QUIET)
    if(missing EQUAL 0)
      set(${variable} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
endfunction()
