# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts. find_program NAME prints the path of a test program: in one of the
# directories in CROUT_TESTS, or beside the scripts.
programs=${CROUT_TESTS:-$(dirname "$0")}

find_program() {
  for directory in $programs; do
    if [ -x "$directory/$1" ]; then
      echo "$directory/$1"
      return
    fi
  done
}
