# SPDX-License-Identifier: Apache-2.0
# Sourced by demo.sh and test.sh: finds the CUDA toolkit and the architectures of the machine's GPUs.
# shellcheck shell=bash

if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH="/usr/local/cuda/bin:$PATH"
fi

# Options for every configure step on this machine.
configure_options=()
if command -v ccache >/dev/null; then
  configure_options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
if command -v nvidia-smi >/dev/null; then
  architectures=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    tr -d . | sort -u | paste -sd ';' || true)
  [[ "$architectures" =~ ^[0-9\;]+$ ]] &&
    configure_options+=("-DCROUT_CUDA_ARCHITECTURES=$architectures")
fi
