#!/usr/bin/env bash
# The lab in short: the soft devices as libibverbs and as rdmaperf see them, whether
# both carry data as they should, and how long a message takes. Figures are shown and not
# judged here; conform.sh runs the whole suite.
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh

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

say "$(uname -r): devices"
check devices devices
say "verdicts"
check "conformance of $LAB_DEVICES" verdicts
say "latency"
check "latency over $LAB_DEVICES" latency
verdict "lab smoke"
