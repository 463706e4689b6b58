#!/usr/bin/env bash
# Runs clang-format and clang-tidy over the sources, as .clang-format and .clang-tidy say. Takes a
# few minutes; needs the packages clang-format and clang-tidy, and a configured build/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
git ls-files 'format/*.cpp' 'compressor/*.cpp' 'decoder/*.cpp' 'verify/*.cpp' 'tools/*.cpp' 'tools/cli/*.cpp' \
  | xargs -P "$(nproc)" -n 4 clang-tidy -p build --quiet
