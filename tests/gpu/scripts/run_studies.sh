#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the measurements of docs/studies on a GPU and on the processor of its machine. Finds programs
# and libraries like run_suite.sh, and also in the bin directory of a bundle.
#
#   run_studies.sh RESULTS_DIRECTORY MATRICES_DIRECTORY [PART...]
#
# PART is the name of a result; the default is all parts. Each part writes PART.json. crout-bench and
# the Python benchmarks update this file after each case, so a part that reaches its time limit leaves
# its finished cases. `bddc*` and `mean_curvature` need Python with NumPy and SciPy, and CROUT_PYTHON
# must be a client/python directory with an importable package. All parts end by the time CROUT_UNTIL,
# in seconds since 1970.
# Exit status: 0 if every part ran to its end.
set -uf  # crout-bench expands the patterns of matrices
if [ $# -lt 2 ]; then
  echo "usage: $0 RESULTS_DIRECTORY MATRICES_DIRECTORY [PART...]" >&2
  exit 2
fi
results=$1
matrices=$2
shift 2
parts=" $* "
mkdir -p "$results" || exit 2
. "$(dirname "$0")/find_program.sh"
programs="$programs $(dirname "$0")/../../bin"
failed=0

wanted() {
  [ "$parts" = "  " ] || case "$parts" in *" $1 "*) ;; *) return 1 ;; esac
}

# run LIMIT PART COMMAND...: runs a command for at most LIMIT seconds and writes PART.out and PART.log.
run() {
  limit=$1
  part=$2
  shift 2
  begin=$(date +%s)
  left=$((${CROUT_UNTIL:-$((begin + limit))} - begin))
  [ "$left" -ge "$limit" ] || limit=$left
  if [ "$limit" -le 0 ]; then
    echo "$part: left out, there is no time for it"
    failed=1
  elif timeout "$limit" "$@" >"$results/$part.out" 2>"$results/$part.log"; then
    echo "$part: done in $(($(date +%s) - begin)) s"
  else
    echo "$part: FAILED after $(($(date +%s) - begin)) s: $(tail -n 1 "$results/$part.log")"
    failed=1
  fi
}

# bench LIMIT PART CORES ARGUMENTS...: runs crout-bench on the first CORES cores.
bench() {
  limit=$1
  part=$2
  last=$(($3 - 1))
  shift 3
  wanted "$part" || return 0
  run "$limit" "$part" taskset -c "0-$last" "$(find_program crout-bench)" -o "$results/$part.json" "$@"
}

# printed LIMIT PART PROGRAM ARGUMENTS...: runs a program whose output becomes PART.json.
printed() {
  limit=$1
  part=$2
  program=$3
  shift 3
  wanted "$part" || return 0
  run "$limit" "$part" "$(find_program "$program")" "$@"
  [ ! -f "$results/$part.out" ] || mv "$results/$part.out" "$results/$part.json"
}

# served LIMIT PART SCRIPT ARGUMENTS...: runs a script of client/python/bench with its own daemon on
# the first GPU.
served() {
  limit=$1
  part=$2
  script=$3
  shift 3
  wanted "$part" || return 0
  pipe=$(mktemp -u)
  mkfifo "$pipe"
  "$(find_program croutd)" --listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 --devices=cuda:0 --memory-fraction=0.95 \
    --state-dir=none --drain-grace=0s >"$pipe" 2>"$results/$part.croutd.log" &
  daemon=$!
  read -r line <"$pipe"
  rm "$pipe"
  address=${line#*listen=}
  run "$limit" "$part" env PYTHONPATH="$CROUT_PYTHON" python3 "$CROUT_PYTHON/bench/$script.py" "${address%% *}" \
    "$results/$part.json" --device=cuda:0 "$@"
  kill "$daemon"
  wait "$daemon"
}

cores=$(nproc)
gpu=--device=cuda:0
host=--device=host
# Matrices of the thesis that are available as files.
real="--matrices=$matrices --match=@(hb/@(bcsstk0[123]|685_bus|bp_0|bp_1400)|nist/lns_131|suitesparse/@(west0067|west0156|orani678)|poc/poc-*).mtx*"
cubes=bddc:20,24,28,32
every="--dtype=f64,f32 --repetitions=3 --case-seconds=1 --pattern-cells=0"

# Matrices of the thesis, by ascending order, with both pivoting rules and every solver.
bench 330 crout_bench_thesis "$cores" $gpu $real --generate=$cubes \
  --generate=thesis:558,665,1157,2599,3839,4156,5069,6075,6192,6574,7510,7972,8385,9234,10135 --generate=arrow:3792 \
  $every --algorithms=getrf,crout_lu,pcmpp,icmpp --pivoting=default,interval --solvers --accuracy-limit=4200
# The published iterative method of the thesis: with maps of sections, and with several block sizes.
bench 150 crout_bench_published "$cores" $gpu $real --generate=$cubes --generate=bddc_corner:5,25 --generate=thesis:558,665,1157 \
  --generate=arrow:3792 --generate=bddc_corner:50 --dtype=f64,f32 --repetitions=1 --algorithms=icmpp --variant=published --pattern-cells=48
bench 60 crout_bench_published_blocks "$cores" $gpu --generate=thesis:558,1157 --dtype=f64,f32 --repetitions=3 \
  --case-seconds=2 --algorithms=getrf,icmpp --variant=published --block-size=8,16,32 --pattern-cells=0
# The published tolerances, which are absolute.
tolerances="--repetitions=1 --algorithms=icmpp --variant=published --absolute-tolerance=0,1e-10,1e-5,1e-2,1e-1 --pattern-cells=0"
bench 200 crout_bench_tolerances "$cores" $gpu $real --generate=$cubes --generate=thesis:558,665,1157,2599,3839,4156 --dtype=f64,f32 $tolerances
# The host repeats these cases, with the same sweeps and bits.
bench 300 crout_bench_published_host "$cores" $host $real --generate=bddc:20,24,28 --generate=bddc_corner:5,25 --generate=thesis:558,665,1157 \
  --generate=arrow:3792 --dtype=f64,f32 --repetitions=1 --algorithms=icmpp --variant=published --pattern-cells=48
bench 300 crout_bench_tolerances_host "$cores" $host $real --max-n=2000 --generate=bddc:20 --generate=thesis:558,665 --dtype=f64,f32 \
  $tolerances
# Every method and `auto`.
bench 90 crout_bench_methods "$cores" $gpu --generate=random:16,64,128,256,512,1024,2048,4096,8192 \
  --generate=dominant:512,1024,2048,4096 $every --accuracy-limit=4200
bench 90 crout_bench_real "$cores" $gpu "--matrices=$matrices" '--match=!(seq_*|malformed*|poc)/*.mtx*' --min-n=100 \
  --max-n=1300 --dtype=f64 --repetitions=3 --case-seconds=1 --pattern-cells=0
# Gauss-Jordan elimination with 1 and n right-hand sides, on the GPU and on the host, and the
# published version by stripes.
bench 60 crout_bench_direct "$cores" $gpu --generate=eyvazov:512,1024,2048,4096 $every --algorithms=getrf --direct
bench 90 crout_bench_direct_host "$cores" $host --generate=eyvazov:512,1024,2048,4096 $every --algorithms=getrf --direct
printed 60 gpu_stripes_bench gpu_stripes_bench 256 512 1024 2048
printed 120 gpu_methods_bench gpu_methods_bench 256 1024 4096 8192 16384
# The methods of the host.
slow="--algorithms=getrf,gem,cmpp,icmpp --pivoting=default,interval:1e-5:inf --solvers"
bench 180 crout_bench_host "$cores" $host $real --generate=bddc:20,24,28 --generate=random:16,64,256,1024,2048 $every $slow
bench 300 crout_bench_host_thesis "$cores" $host --generate=bddc:32 --generate=thesis:558,665,1157,2599,3839,4156 $every $slow
# block_lu with several numbers of threads and block sizes (0 is the default, 256), and plain loops.
# With at least 8 threads, also the published variant with its task priorities.
export OMP_MAX_TASK_PRIORITY=64
for threads in 1 2 4 8 16; do
  [ "$threads" -le "$cores" ] || continue
  variants=fast
  [ "$threads" -lt 8 ] || variants=fast,published
  bench 60 "crout_bench_block_lu_$threads" "$threads" $host --threads=$threads --generate=dominant:512,1024,2048,4096 \
    --dtype=f64 --repetitions=3 --case-seconds=1 --accuracy-limit=0 --algorithms=block_lu,getrf --variant=$variants \
    --block-size=0,64,128,512
done
bench 90 crout_bench_lu_loop 1 $host --threads=1 --generate=dominant:512,1024,2048 --dtype=f64 --repetitions=3 \
  --case-seconds=1 --accuracy-limit=0 --algorithms=lu_loop
unset OMP_MAX_TASK_PRIORITY
# The two experiments of the thesis, through the service.
served 120 mean_curvature mean_curvature
served 240 bddc bddc_factors 5,10,15,20
served 420 bddc_large bddc_factors 25,30,40,50 --methods=getrf,icmpp --tolerances=1
served 240 bddc_rest bddc_factors 35,45 --methods=getrf
exit $failed
