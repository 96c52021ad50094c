# SPDX-License-Identifier: Apache-2.0
# Runs at install time: copies the shared libraries that `crout_programs` need into
# `crout_library_dir` of the install tree, each under the name it is asked for by. Names such as
# libblas.so.3 are chains of alternatives where this runs; the copies are plain files.

set(runtimes "^lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|stdc\\+\\+|gcc_s)\\.so" "^ld-linux")
set(cuda "^lib(cuda|cudart|cublas|cublasLt|cusolver|cusparse|nvJitLink|nvrtc|nvidia-.*)\\.so")

file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${crout_programs}  # the plugin and libcrout too: all with an RPATH of their own
  RESOLVED_DEPENDENCIES_VAR resolved
  UNRESOLVED_DEPENDENCIES_VAR unresolved
  PRE_EXCLUDE_REGEXES ${runtimes} ${cuda})
if(unresolved)
  message(FATAL_ERROR "Shared libraries that were not found: ${unresolved}")
endif()

set(destination "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${crout_library_dir}")
file(MAKE_DIRECTORY "${destination}")
foreach(library ${resolved})
  get_filename_component(name "${library}" NAME)
  file(REAL_PATH "${library}" file)
  message(STATUS "Bundling: ${name}")
  file(COPY_FILE "${file}" "${destination}/${name}" ONLY_IF_DIFFERENT)
endforeach()
