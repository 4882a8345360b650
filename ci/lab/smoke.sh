#!/usr/bin/env bash
# The lab in short: the soft devices as libibverbs and as rdmaperf see them, whether
# both carry data as they should, how long a message takes, and rdmaperf beside
# perftest. Figures are shown and not judged here; perftest-ratio.sh judges them, and
# conform.sh runs the whole suite.
# lab builds: ./ci/lab/ratiotable
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
# shellcheck source=ci/lab/guest/ratio.sh
. guest/ratio.sh

# One case of every operation and of what must be refused; seconds and not minutes.
cases=snd/sizes,snd/both-directions,snd/gather-scatter,snd/list,snd/receive-bad-key,inl/gather,imm/value,wim/delivers,rdw/sizes
cases+=,rdw/passive-target,rdw/before-start,rdr/sizes,rdr/passive-target,atm/fetch-add,atm/cmp-swap,ord/write-then-send,srq/shared-each-once

# shellcheck disable=SC2086 # words
lists=$(printf ',verbs:%s' $LAB_DEVICES)
lists=${lists#,}
lists_all() { # FILE
	local dev
	for dev in $LAB_DEVICES; do grep -q "$dev" "$1" || return; done
}

devices() {
	ibv_devinfo >"$OUT/ibv_devinfo.txt" && lists_all "$OUT/ibv_devinfo.txt" &&
		rdmaperf devices | tee "$OUT/devices.txt" && lists_all "$OUT/devices.txt" &&
		rdmaperf devices --format json >"$OUT/devices.json" && lists_all "$OUT/devices.json"
}

verdicts() {
	timeout 400 rdmaperf conform --transport "$lists" --ledger ledger.json --only "$cases" --case-timeout 30s \
		--jsonl "$OUT/conform.jsonl" --junit "$OUT/junit.xml"
}

latency() {
	timeout 200 rdmaperf run --transport "$lists" --workload latency --op send,write,read -s 64 -n 300 --timeout 30s --quiet \
		--format perftest --json "$OUT/latency.json"
}

ratios() {
	local op
	rdmaperf_server || return
	for op in send write read; do point 1 rxe0 "${op}_lat" 64 500; done
	point 1 rxe0 write_bw 64 2000
	[[ $LAB_DEVICES != *siw0* ]] || point 1 siw0 send_lat 64 500
	stops "$ours" || return
	ratiotable -dir "$raw" -json "$OUT/ratios.json" -targets=false
}

say "$(uname -r): devices"
check devices devices
say "verdicts"
check "conformance of $LAB_DEVICES" verdicts
say "latency"
check "latency over $LAB_DEVICES" latency
say "rdmaperf beside perftest"
check "ratios of a few points" ratios
verdict "lab smoke"
