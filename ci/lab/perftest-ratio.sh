#!/usr/bin/env bash
# rdmaperf beside perftest, in turns on the same device with the same settings, as a
# table of ratios with the project's targets; ratios.json in the out directory.
#
#   ci/lab/run --timeout 3600 ci/lab/perftest-ratio.sh [REPEATS [DEVICE…]]
#
# Exit codes: 0 targets met, 1 something could not be measured, 3 a target was missed.
# Two programs poll on two CPUs, so on a busy host even ratios are noise.
# lab builds: ./ci/lab/ratiotable
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
# shellcheck source=ci/lab/guest/ratio.sh
. guest/ratio.sh

repeats=${1:-5}
shift $(($# > 0))
(($#)) || set -- rxe0 siw0
rdmaperf_server || exit
for ((repeat = 1; repeat <= repeats; repeat++)); do
	for device in "$@"; do
		for op in send write read; do
			point "$repeat" "$device" "${op}_lat" 64 2000
			point "$repeat" "$device" "${op}_lat" 65536 200
			point "$repeat" "$device" "${op}_bw" 64 10000
			point "$repeat" "$device" "${op}_bw" 65536 500
		done
		if [[ $device == rxe* ]]; then point "$repeat" "$device" atomic_lat 8 2000; fi
	done
done
stops "$ours"
ratiotable -dir "$raw" -json "$OUT/ratios.json"
