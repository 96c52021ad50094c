# SPDX-License-Identifier: Apache-2.0
# crout_version: CROUT_VERSION and CROUT_COMMIT for the sources that include "crout_version.h". With a header
# instead of compiler definitions, a new commit recompiles these sources only.
# -DCROUT_COMMIT=... names the commit of sources without a Git folder, as in deploy/Dockerfile.
if(NOT CROUT_COMMIT)
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --short=12 HEAD
    OUTPUT_VARIABLE CROUT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT CROUT_COMMIT)
  set(CROUT_COMMIT "unknown")
endif()
# Configure again after each change of HEAD: CROUT_COMMIT must be the commit that is built.
execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --git-path logs/HEAD
  OUTPUT_VARIABLE head_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
get_filename_component(head_log "${head_log}" ABSOLUTE BASE_DIR "${PROJECT_SOURCE_DIR}")
if(EXISTS "${head_log}" AND NOT IS_DIRECTORY "${head_log}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${head_log}")
endif()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/version/crout_version.h" CONTENT
"#define CROUT_VERSION \"@PROJECT_VERSION@\"
#define CROUT_COMMIT \"@CROUT_COMMIT@\"
" @ONLY)
add_library(crout_version INTERFACE)
target_include_directories(crout_version INTERFACE "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/version>")
