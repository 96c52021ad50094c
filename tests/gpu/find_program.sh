# For the scripts beside it: find_program NAME prints where a program of the tests is: in one of the
# directories that CROUT_TESTS holds, or beside the scripts.
programs=${CROUT_TESTS:-$(dirname "$0")}

find_program() {
  for directory in $programs; do
    if [ -x "$directory/$1" ]; then
      echo "$directory/$1"
      return
    fi
  done
}
