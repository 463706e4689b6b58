#!/usr/bin/env bash
# Installs what building and testing need on Debian 12, as root or through sudo. Quiet and quick when
# everything is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config git
  nlohmann-json3-dev libexpected-dev libcli11-dev libtbb-dev
  libxxhash-dev libzstd-dev libssl-dev libpcre2-dev libyaml-cpp-dev libhwy-dev libgtest-dev
)
if [[ "${1:-}" == --tests ]]; then
  # Python peers come from the package index into a virtual environment; the product needs none.
  packages+=(clang-format jq openssl python3 python3-venv xxhash)
elif [[ "${1:-}" == --coverage ]]; then
  packages+=(gcovr jq)
elif [[ "${1:-}" == --fuzz ]]; then
  packages+=(clang libclang-rt-14-dev)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed \
    || missing+=("$package")
done
((${#missing[@]} == 0)) && exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || { echo "error: need root or sudo to install: ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
