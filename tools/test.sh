#!/usr/bin/env bash
# Sets up, builds and runs every test: unit, command line, interop with the Python peers, and the
# suite again under sanitizers. Exits 0 only if all of it passed.
#
#   tools/test.sh            everything (what CI runs)
#   tools/test.sh --quick    one build, no peers, no sanitizers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=false
[[ "${1:-}" == --quick ]] && quick=true
step() { printf '\n=== %s\n' "$*"; }
jobs=$(nproc)
build() {  # build PRESET [cmake options] [-- targets]
  local preset=$1 options=()
  shift
  while (($#)) && [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  (($#)) && shift
  cmake --preset "$preset" "${options[@]}" >/dev/null
  cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} | tail -n 1
}

step "packages"
tools/install_packages.sh --tests

step "format"
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

# With CUDA where there is a compiler for it; tests that need a device say so and are skipped.
release=cpu
command -v nvcc >/dev/null && release=cuda
step "release build ($release)"
build "$release" -DDF11_TESTS=ON

if ! $quick; then
  step "peers from the Python package index"
  venv=build/peers
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    python3 -m venv "$venv"
  fi
  pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
  "${pip[@]}" -r tests/interop/requirements.txt
  "${pip[@]}" --no-deps dfloat11==0.5.0
  export DF11_PEER_PYTHON="$PWD/$venv/bin/python"
fi

step "tests"
ctest --preset "$release" -j "$jobs"
$quick && exit 0

# The sanitizers' builds are of no more than their tests need. cli.resume kills programs hundreds of times, which takes
# minutes here. The shim that makes disks fail is loaded before the sanitizer.
step "address and undefined-behaviour sanitizers"
build asan -DDF11_TESTS=ON -DDF11_CUDA=OFF -- unit_tests parallel_tests fuzz_targets programs df11_fault_shim
ASAN_OPTIONS=verify_asan_link_order=0 ctest --preset asan -j "$jobs" -L 'unit|parallel' -E '^cli\.resume$'

step "thread sanitizer, on what runs in parallel"
build tsan -DDF11_TESTS=ON -DDF11_CUDA=OFF -- parallel_tests
# Minutes each under this sanitizer, and nothing new: millions of tiny slices, blocks or directories.
ctest --preset tsan -j "$jobs" -L parallel -E 'EqualsTheReferenceForEverySliceSize|EveryAlteredGapIsRefused|FamilyRoundTrip'

step "all tests passed"
