#!/bin/sh
# Runs a script under the Python that has the peers' packages; 77 tells CTest that it was skipped.
if [ -z "${DF11_PEER_PYTHON:-}" ]; then
  echo "SKIPPED, NOTHING WAS COMPARED: set DF11_PEER_PYTHON to a Python with tests/interop/requirements.txt" >&2
  exit 77
fi
exec "$DF11_PEER_PYTHON" "$@"
