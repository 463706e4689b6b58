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
build() {  # build PRESET [cmake options]
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >/dev/null
  cmake --build --preset "$preset" -j "$jobs" | tail -n 1
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

step "address and undefined-behaviour sanitizers"
build asan -DDF11_TESTS=ON -DDF11_CUDA=OFF
ctest --preset asan -j "$jobs" -LE 'slow|interop|gpu|cli'

step "thread sanitizer, on what runs in parallel"
cmake --preset tsan -DDF11_TESTS=ON -DDF11_CUDA=OFF >/dev/null
cmake --build --preset tsan -j "$jobs" --target parallel_tests | tail -n 1
# One test encodes millions of tiny slices: minutes under this sanitizer, and nothing new.
ctest --preset tsan -j "$jobs" -L parallel -E EqualsTheReferenceForEverySliceSize

step "all tests passed"
