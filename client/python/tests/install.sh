#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the client into a fresh virtual environment, using the system's packages only.
#
# usage: install.sh PYTHON DIRECTORY     PYTHON has grpcio, protobuf, numpy, setuptools and wheel
set -euo pipefail
package=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
"$1" -m venv --clear --system-site-packages "$2"
"$2/bin/pip" install --quiet --no-index --no-build-isolation --no-deps "$package"
"$2/bin/python" -c 'import crout; print("crout", crout.__version__, "in", crout.__file__)'
