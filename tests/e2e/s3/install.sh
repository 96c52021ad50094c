#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of requirements.txt into a virtual environment, unless it has them already.
#
# usage: install.sh PYTHON DIRECTORY
set -euo pipefail
requirements=$(realpath "$(dirname "${BASH_SOURCE[0]}")/requirements.txt")
cmp --quiet "$requirements" "$2/requirements.txt" && exit
"$1" -m venv --clear "$2"
"$2/bin/pip" install --quiet --no-compile --disable-pip-version-check -r "$requirements"
cp "$requirements" "$2"
