#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the current PETSc and petsc4py from PyPI's source packages, and runs petsc_test.py with them. Not part of CI:
# it downloads 20 MB and compiles for 20 minutes and more. Needs an MPI compiler, make, LAPACK and g++.
#
# usage: current_petsc.sh BUILD DIRECTORY [real|complex]
#   BUILD       build tree of Crout, after its Python tests, which create a Python environment
#   DIRECTORY   for PETSc; a second run continues there
set -euo pipefail
build=$(realpath "$1")
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
mkdir -p "$2"
cd "$2"
kind=${3:-real}
if [ ! -d env ]; then
  "$build/tests/python/environment/bin/python" -m venv --system-site-packages env
  env/bin/pip install --quiet --upgrade pip
fi
if [ ! -d petsc ]; then
  env/bin/pip download --quiet --no-deps --no-binary petsc petsc
  mkdir petsc
  tar -xzf petsc-*.tar.gz -C petsc --strip-components=1
fi
export PETSC_DIR=$PWD/petsc PETSC_ARCH=$kind
if [ ! -e "petsc/$kind/lib/libpetsc.so" ]; then
  (cd petsc && python3 ./configure --with-scalar-type="$kind" --with-cc=mpicc --with-cxx=mpicxx --with-fc=0 \
    --with-sowing=0 --with-debugging=0 --with-x=0 COPTFLAGS=-O1 CXXOPTFLAGS=-O1 >"$kind.log" && make libs >>"$kind.log")
fi
if [ ! -d "petsc/$kind/lib/petsc4py" ]; then
  env/bin/pip install --quiet --no-deps --no-binary petsc4py --target "petsc/$kind/lib" petsc4py
fi
exec python3 "$tests/petsc_test.py" "$build" "petsc/$kind"
