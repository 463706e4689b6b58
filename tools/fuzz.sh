#!/usr/bin/env bash
# Builds the fuzz targets (clang, libFuzzer, address and undefined-behaviour sanitizers) and runs each
# for SECONDS, 60 by default, one after the other. Finds are kept in build-fuzz/finds/, what reaches new
# code in build-fuzz/corpus/. Exits 0 only if nothing was found.
#
#   tools/fuzz.sh [SECONDS [TARGET...]]
#
# Replay a find with any build:  build/tests/fuzz/TARGET_fuzz FILE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
targets=("$@")
((${#targets[@]})) || mapfile -t targets < <(ls tests/fuzz/corpus)

tools/install_packages.sh --fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" | tail -n 1

# Bounds for every input: 10 seconds, 2 GiB with the sanitizers' share, no single allocation over 1 GiB.
limits=(-timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=16384)
failed=0
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target" "build-fuzz/finds"
  log=build-fuzz/$target.log
  status=0
  "build-fuzz/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" "${limits[@]}" -print_final_stats=1 \
    -artifact_prefix="build-fuzz/finds/$target-" "build-fuzz/corpus/$target" "tests/fuzz/corpus/$target" \
    >"$log" 2>&1 || status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((status == 0)); then
    printf '%-20s %10s inputs in %s s, nothing found\n' "$target" "${runs:-0}" "$seconds"
  else
    failed=1
    printf '%-20s FOUND SOMETHING (%s):\n' "$target" "$log"
    grep -E 'property violated|ERROR:|runtime error|Test unit written' "$log" || tail -n 5 "$log"
  fi
done
exit $failed
