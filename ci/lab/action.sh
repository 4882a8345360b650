#!/usr/bin/env bash
# What action.yml does on a runner, step by step on a stock kernel: brings up devices of
# its own with ci/action/devices, runs the main job and conformance with the ledger by
# ci/action/measure, compares with a baseline, misses a threshold, finds no device, and
# takes everything away again. result.json, report.html, junit.xml and summary.md come back.
#
#   ci/lab/run ci/lab/action.sh [KIND…]        KIND is rxe or siw; default: both
# lab needs: ci/action/devices ci/action/measure awk paste
# lab timeout: 1500
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
read -ra all <<<"$LAB_DEVICES"
(($#)) || set -- "${all[@]}"
kinds=()
for k in "$@"; do kinds+=("${k%0}"); done # rxe0 as well

brings_up() {
	GITHUB_OUTPUT=$OUT/output ./devices "${kinds[@]}" | tee "$OUT/devices.txt" &&
		devices=$(sed -n 's/^devices=//p' "$OUT/devices.txt") && [ -n "$devices" ] && grep -qx "devices=$devices" "$OUT/output"
}
again_is_the_same() { [ "$(./devices "${kinds[@]}" | tail -n 1)" = "devices=$devices" ]; }

# As the action asks for it by default, but shorter: a guest's code is translated, and every
# point of it disturbed, which would be taken three times. Four repeats are what a comparison needs.
points="-n 50 --warmup 10 --repeat 4 --timeout 60s"
main_job() {
	GITHUB_STEP_SUMMARY=$OUT/summary.md ./measure --devices "$devices" --ledger /lab/ledger.json --run "-s 64,64K $points" \
		--baseline "$OUT/no-baseline.json" "$OUT"
}
leaves() { # everything that an upload wants
	local f
	for f in result.json conform.jsonl junit.xml report.html summary.md; do [ -s "$OUT/$f" ] || { echo "no $f"; return 1; }; done
	grep -q 'No baseline yet' "$OUT/summary.md" && grep -q "sched(strict,[^\"+]*)+verbs" "$OUT/result.json" && grep -q '"iwarp' "$OUT/result.json"
}
compares() {
	cp "$OUT/result.json" "$OUT/baseline.json"
	GITHUB_STEP_SUMMARY=$OUT/summary2.md ./measure --devices "$devices" --transport verbs@ --workload latency --conform none --run "-s 64 $points" \
		--baseline "$OUT/baseline.json" --fail-if 'p50>+2000%' "$OUT/again" && [ -s "$OUT/again/compare.md" ] && grep -q 'exit code 0' "$OUT/summary2.md"
}
misses() {
	./measure --devices "$devices" --transport verbs@ --workload latency --conform none --run "-s 64 -n 50 --warmup 10 --timeout 60s" --fail-if 'p50>1ns' "$OUT/missed"
	[ $? = 3 ]
}
without_device() {
	./measure --devices '' --transport verbs@ --conform none "$OUT/none"
	[ $? = 77 ]
}
takes_away() { ./devices --remove "${kinds[@]}" && ! compgen -G "/sys/class/infiniband/*_perf" >/dev/null; }

devices=
say "$(uname -r): ci/action/devices ${kinds[*]}"
check "devices come up" brings_up
check "a second time changes nothing" again_is_the_same
say "the main job"
check "run and conformance on $devices" main_job
check "everything is left behind" leaves
say "baseline and thresholds"
check "a baseline is compared with" compares
check "a missed threshold is exit code 3" misses
check "no device is exit code 77" without_device
check "devices go away" takes_away
verdict "the action's steps"
