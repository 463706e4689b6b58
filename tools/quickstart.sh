#!/usr/bin/env bash
# Sets up, builds, and takes a small checkpoint through the programs. Everything it makes is below
# build/; run it again whenever you like.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DDF11_TESTS=OFF >build.log 2>&1 || { cat build.log; exit 1; }
cmake --build build >>build.log 2>&1 || { tail -50 build.log; exit 1; }
mv build.log build/quickstart.log

work=build/quickstart
rm -rf "$work"
mkdir -p "$work"
export PATH="$PWD/build/bin:$PATH"
run() {
  echo
  echo "\$ $*"
  "$@"
}
run df11-make-checkpoint "$work/tiny-qwen3" --layers 4 --hidden 512 --intermediate 1536 --vocab 16384 --max-shard-bytes 20000000
run df11-compress "$work/tiny-qwen3" "$work/tiny-qwen3-df11"
run df11-verify "$work/tiny-qwen3-df11" --source "$work/tiny-qwen3"
run df11-verify "$work/tiny-qwen3-df11"
run df11-decompress "$work/tiny-qwen3-df11" "$work/tiny-qwen3-restored"
run diff -r "$work/tiny-qwen3" "$work/tiny-qwen3-restored"
run df11-inspect "$work/tiny-qwen3-df11"
echo
echo "The programs are in build/bin; try them on a checkpoint of yours:"
echo "  build/bin/df11-compress MODEL_DIR MODEL_DIR-DF11 && build/bin/df11-verify MODEL_DIR-DF11 --source MODEL_DIR"
