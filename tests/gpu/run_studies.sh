#!/bin/sh
# Runs what docs/studies shows of a GPU, and of its machine's processor, the most telling first: each
# result is whole when the next begins. Programs and libraries are found as run_suite.sh says.
#
#   run_studies.sh RESULTS_DIRECTORY MATRICES_DIRECTORY
#
# Exit status: 0 if everything ran.
set -uf  # Patterns of matrices are for crout-bench.
if [ $# -ne 2 ]; then
  echo "usage: $0 RESULTS_DIRECTORY MATRICES_DIRECTORY" >&2
  exit 2
fi
results=$1
matrices=$2
mkdir -p "$results" || exit 2
. "$(dirname "$0")/find_program.sh"
failed=0

# run SECONDS NAME PROGRAM ARGUMENTS...: what it prints becomes NAME.json.
run() {
  limit=$1
  name=$2
  program=$(find_program "$3")
  shift 3
  if [ -n "$program" ] && timeout "$limit" "$program" "$@" >"$results/$name.json" 2>"$results/$name.log"; then
    echo "$name: done"
  else
    echo "$name: FAILED"
    failed=1
  fi
}

small=558,665,1157,2599,3839,4156
orders=$small,5069,6075,6192,6574,7510,7972,8385,9234,10135
real="--matrices=$matrices --match=@(hb|poc)/*.mtx* --min-n=1"
cube="--generate=bddc:20,24,28,32"
every="--dtype=f64,f32 --repetitions=3 --case-seconds=1 --pattern-cells=0"

# The thesis's set by both rules, and every solver.
run 300 crout_bench_thesis crout-bench --device=cuda:0 $real $cube --generate=thesis:$orders $every \
  --algorithms=getrf,crout_lu,pcmpp,icmpp --pivoting=default,interval --solvers --accuracy-limit=4200
run 120 crout_bench_published crout-bench --device=cuda:0 $real $cube --generate=thesis:558,665,1157 \
  --dtype=f64,f32 --repetitions=1 --algorithms=icmpp --variant=published --pattern-cells=48
run 60 crout_bench_published_blocks crout-bench --device=cuda:0 --generate=thesis:558,1157 --dtype=f64,f32 \
  --repetitions=3 --case-seconds=2 --algorithms=getrf,icmpp --variant=published --block-size=8,16,32 --pattern-cells=0
run 60 gpu_stripes_bench gpu_stripes_bench 256 512 1024 2048
run 120 gpu_methods_bench gpu_methods_bench 256 1024 4096 8192 16384
# Gauss-Jordan with one right-hand side and with n, on the GPU and on the host.
for device in cuda:0 host; do
  run 60 "crout_bench_direct_${device%:0}" crout-bench --device=$device --generate=eyvazov:512,1024,2048,4096 \
    $every --algorithms=getrf --direct
done
# The host's methods, which a quiet machine with more cores shows better.
run 120 crout_bench_host crout-bench --device=host $real $cube --generate=thesis:$small --generate=dominant:1024,4096 \
  $every --algorithms=getrf,gem,cmpp,icmpp,block_lu --pivoting=default,interval:1e-5:inf --solvers
# block_lu: sizes of blocks, the report's priorities of tasks, threads; and the plain loops.
export OMP_MAX_TASK_PRIORITY=64
for threads in 1 2 4 8 16; do
  [ "$threads" -le "$(nproc)" ] || continue
  run 60 "crout_bench_block_lu_$threads" crout-bench --threads=$threads --generate=dominant:2048,4096 \
    $every --algorithms=block_lu,getrf --variant=fast,published --block-size=0,64,128,256,512
done
run 60 crout_bench_lu_loop crout-bench --threads=1 --generate=dominant:1024,2048 $every \
  --algorithms=lu_loop,block_lu,getrf --block-size=128,256
exit $failed
