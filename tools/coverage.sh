#!/usr/bin/env bash
# Line coverage of the libraries by the tests that run in one process, as the sanitizers take them. Leaves everything below
# build-coverage/.
#
#   tools/coverage.sh            a table
#   tools/coverage.sh --html     also build-coverage/html/index.html, line by line
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh --tests
tools/install_packages.sh --coverage
cmake --preset coverage >/dev/null
cmake --build --preset coverage -j "$(nproc)" | tail -n 1
find build-coverage -name '*.gcda' -delete
ctest --preset coverage -j "$(nproc)" -L 'unit|parallel' -LE cli -E install --output-on-failure | tail -n 3

html=()
if [[ "${1:-}" == --html ]]; then
  mkdir -p build-coverage/html
  html=(--html-details build-coverage/html/index.html)
fi
gcovr --root . --object-directory build-coverage --filter 'format/' --filter 'compressor/' --filter 'decoder/' \
  --filter 'verify/' --exclude-throw-branches --exclude 'decoder/cuda/.*\.cu' --json-summary build-coverage/summary.json \
  "${html[@]}" >build-coverage/coverage.txt
jq -r '.files[] | [(.filename | split("/")[0]), .line_covered, .line_total] | @tsv' build-coverage/summary.json |
  awk '{ covered[$1] += $2; total[$1] += $3 }
       END { for (d in total) printf "%-12s %6d of %6d lines  %.1f %%\n", d, covered[d], total[d], 100 * covered[d] / total[d] }' |
  sort
