#!/usr/bin/env bash
# Runs clang-format and clang-tidy over the sources, as .clang-format and .clang-tidy say. Takes ten
# minutes of a core; needs the packages clang-format and clang-tidy, and a configured build directory.
#
#   tools/lint.sh [BUILD]    build-cuda covers the CUDA decoder's host code as well
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
run-clang-tidy -p "${1:-build}" -quiet -j "$(nproc)" "$PWD/(format|compressor|decoder|verify|tools)/.*\.cpp$"
