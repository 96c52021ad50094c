# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts. find_program NAME prints the path of an executable program in the
# directories of CROUT_TESTS, by default the directory of the scripts. Prints nothing if there is
# none.
programs=${CROUT_TESTS:-$(dirname "$0")}

find_program() {
  for directory in $programs; do
    if [ -x "$directory/$1" ]; then
      echo "$directory/$1"
      return
    fi
  done
}
