# SPDX-License-Identifier: Apache-2.0
# Adds the CUDA toolkit to PATH and sets configure_options for this machine. demo.sh and test.sh source this file.
# shellcheck shell=bash

if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH="/usr/local/cuda/bin:$PATH"
fi

# CMake options for every configure step: ccache, and the architectures of the machine's GPUs.
configure_options=()
if command -v ccache >/dev/null; then
  for language in C CXX CUDA; do configure_options+=("-DCMAKE_${language}_COMPILER_LAUNCHER=ccache"); done
  # Without these, ccache caches nothing that uses a precompiled header, and nothing for another clone.
  export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi
if command -v nvidia-smi >/dev/null; then
  architectures=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    tr -d . | sort -u | paste -sd ';' || true)
  [[ "$architectures" =~ ^[0-9\;]+$ ]] &&
    configure_options+=("-DCROUT_CUDA_ARCHITECTURES=$architectures")
fi
