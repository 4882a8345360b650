#!/usr/bin/env bash
# The lab's devices, as libibverbs and as rdmaperf see them.
set -euo pipefail
uname -r
ibv_devinfo
rdmaperf devices
rdmaperf devices --format json >"$OUT/devices.json"
