# SPDX-License-Identifier: Apache-2.0
# Runs at install time: copies the shared libraries that `crout_programs` need into
# `crout_library_dir` of the install tree, each under the name it is asked for by. Names such as
# libblas.so.3 are chains of alternatives where this runs; the copies are plain files. On Debian, also
# copies the licenses of the libraries to `crout_license_dir`.

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

# The licenses of the libraries, from their Debian packages.
find_program(dpkg_query dpkg-query)
if(NOT dpkg_query)
  message(STATUS "No dpkg-query: the licenses of the bundled libraries are not copied")
  return()
endif()
set(files)
foreach(library ${resolved})
  file(REAL_PATH "${library}" file)
  list(APPEND files "${file}")
endforeach()
string(REGEX REPLACE "(^|;)/usr/" "\\1/" unmerged "${files}")  # names in packages that install to /lib
execute_process(COMMAND "${dpkg_query}" --search ${files} ${unmerged} OUTPUT_VARIABLE owners ERROR_QUIET)
string(REGEX MATCHALL "[^\n]+" owners "${owners}")
foreach(owner ${owners})  # "PACKAGE:ARCHITECTURE: PATH"
  string(REGEX MATCH "^([^:]+).* (/[^ ]+)$" owner "${owner}")
  set("package_of_${CMAKE_MATCH_2}" "${CMAKE_MATCH_1}")
endforeach()
set(list "The license of a library is in the file PACKAGE.txt.\n")
set(packages)
foreach(library file unmerged_file IN ZIP_LISTS resolved files unmerged)
  get_filename_component(name "${library}" NAME)
  set(package "${package_of_${file}}${package_of_${unmerged_file}}")
  if(package)
    string(APPEND list "${name}: ${package}\n")
    list(APPEND packages "${package}")
  else()
    message(STATUS "No Debian package has ${file}: its license is not copied")
  endif()
endforeach()
list(REMOVE_DUPLICATES packages)
execute_process(COMMAND "${dpkg_query}" --show
  "--showformat=\${Package} \${Version}, built from Debian's source \${source:Package} \${source:Version}\n"
  ${packages} OUTPUT_VARIABLE origins COMMAND_ERROR_IS_FATAL ANY)
set(licenses "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${crout_license_dir}")
file(WRITE "${licenses}/libraries.txt" "${list}${origins}")
foreach(package ${packages})
  set(copyright "/usr/share/doc/${package}/copyright")
  file(COPY_FILE "${copyright}" "${licenses}/${package}.txt")
  # It refers to the texts of common licenses.
  file(STRINGS "${copyright}" lines REGEX "/usr/share/common-licenses/")
  string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]" texts "${lines}")
  foreach(text ${texts})
    get_filename_component(name "${text}" NAME)
    if(EXISTS "${text}")
      file(COPY_FILE "${text}" "${licenses}/${name}")
    endif()
  endforeach()
endforeach()
