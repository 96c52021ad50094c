# crout_library(NAME SOURCES ... DEPS ... [PRECOMPILE HEADER ...]): a static library of ours, alias
# crout::NAME. PRECOMPILE names outside headers that most of its small sources include, where parsing
# them is most of the time; every source includes what it uses all the same.
function(crout_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRECOMPILE" ${ARGN})
  add_library(crout_${name} STATIC ${arg_SOURCES})
  add_library(crout::${name} ALIAS crout_${name})
  target_link_libraries(crout_${name} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:crout_flags>)
  target_include_directories(crout_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  if(CROUT_FUZZ)
    target_compile_options(crout_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(arg_PRECOMPILE)
    target_precompile_headers(crout_${name} PRIVATE ${arg_PRECOMPILE})
  endif()
endfunction()

# What is tested is optimised as the build type says; the tests' own code is not worth the time, and
# least of all where a sanitizer's checks of it are compiled with it.
if(CROUT_SANITIZE)
  set(CROUT_TEST_OPTIONS -O0)
else()
  set(CROUT_TEST_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-O1>)
endif()

# crout_test(NAME [OWN_NEW] LABELS unit|rpc|tool|e2e|gpu ... SOURCES ... DEPS ...): a GoogleTest binary, registered
# as one CTest test. Labels choose what a preset or a machine runs; the target tests_LABEL builds
# those of one label. OWN_NEW: the test has an operator new of its own, with which ThreadSanitizer's
# runtime cannot live: there it is left out. Precompiled headers: see tests/CMakeLists.txt.
# Tests with a daemon mostly wait: they begin first, so that others compute beside them. What computes
# inside the test waits as in the daemon (UsePassiveOpenMpWaits), not on the cores of those beside it.
function(crout_test name)
  cmake_parse_arguments(arg "OWN_NEW" "" "LABELS;SOURCES;DEPS" ${ARGN})
  if(arg_OWN_NEW AND CROUT_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} crout_flags GTest::gmock GTest::gtest_main
    Threads::Threads)
  target_compile_options(${name} PRIVATE ${CROUT_TEST_OPTIONS})
  if(arg_DEPS MATCHES "crout::rpc_fixture")
    target_precompile_headers(${name} REUSE_FROM crout_rpc_fixture_headers)
  elseif(arg_LABELS MATCHES "rpc|e2e" OR arg_DEPS MATCHES "crout::cli")
    target_precompile_headers(${name} REUSE_FROM crout_rpc_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM crout_test_headers)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  # Only what hangs should meet it: a sanitizer on a busy machine takes ten times as long.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600
    SKIP_REGULAR_EXPRESSION "ALL TESTS SKIPPED")
  if(arg_LABELS MATCHES "e2e")
    set_tests_properties(${name} PROPERTIES COST 10)
  else()
    set_tests_properties(${name} PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
  endif()
  foreach(label ${arg_LABELS})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS ${name})
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
