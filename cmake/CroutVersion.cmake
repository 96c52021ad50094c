# SPDX-License-Identifier: Apache-2.0
# crout_version: CROUT_VERSION and CROUT_COMMIT for the sources that include "crout_version.h". A
# header rather than definitions, so that a new commit compiles those sources anew and no others.
execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE CROUT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT CROUT_COMMIT)
  set(CROUT_COMMIT "unknown")
endif()
# What a build says it is of must not be the commit that was there when it was configured first.
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
