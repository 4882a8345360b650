#!/usr/bin/env bash
# The scheduling tier over kernel verbs: conformance with sends left whole and cut, and what it
# costs a message that has the wire to itself. What sRDMA claims is in reproduce.sh.
#
#   ci/lab/run ci/lab/sched.sh [DEVICE…] [PART…]
#
# A part is one of these; without one, all of them.
#   conform, conform-cut   the cases through the tier, with sends left whole and cut
#   latency                64 bytes alone
#
# Exit codes: 0 nothing failed, else that of what failed last.
# lab timeout: 3600
set -uo pipefail
cd "$(dirname "$0")" || exit

devices=() parts=()
for arg in "$@"; do
	case $arg in
	conform | conform-cut | latency) parts+=("$arg") ;;
	*) devices+=("$arg") ;;
	esac
done
((${#devices[@]})) || read -ra devices <<<"$LAB_DEVICES"
((${#parts[@]})) || parts=(conform conform-cut latency)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

code=0
worse() { code=$1; }

# conform NAME LAYER: the matrix of the layer over all devices.
conform() {
	local list
	list=$(printf ",$2+verbs:%s" "${devices[@]}")
	rdmaperf conform --transport "${list#,}" --strict --case-timeout 30s --ledger /lab/ledger.json --jsonl "$OUT/$1.jsonl" >"$OUT/matrix-$1.txt" || worse $?
	sed -n '/^$/,$p' "$OUT/matrix-$1.txt"
}

latency() {
	rdmaperf run --transport "verbs:$1,sched+verbs:$1" --workload latency --op send,write,read -s 64 -n 1000 --timeout 60s --quiet \
		--format perftest --json "$OUT/latency-$1.json" || worse $?
}

if wants conform; then conform conform sched; fi
if wants conform-cut; then conform conform-cut 'sched(sends=slice)'; fi
for dev in "${devices[@]}"; do
	if wants latency; then
		echo "== $dev: 64 bytes alone"
		latency "$dev"
	fi
done
exit "$code"
