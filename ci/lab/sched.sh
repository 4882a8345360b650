#!/usr/bin/env bash
# The scheduling tier over kernel verbs: conformance, what it costs a message that has
# the wire to itself, and small urgent messages beside a bulk stream on the same QP, on
# a QP of their own, and with the tier. Ratios of one run mean something here, absolute
# times do not.
#
#   ci/lab/run --timeout 1800 ci/lab/sched.sh [DEVICE…]
set -uo pipefail
(($#)) || set -- rxe0 siw0
code=0
list=$(printf ',sched+verbs:%s' "$@")
rdmaperf conform --transport "${list#,}" --strict --case-timeout 30s --ledger /lab/ledger.json --jsonl "$OUT/conform.jsonl" >"$OUT/matrix.txt" || code=$?
sed -n '/^$/,$p' "$OUT/matrix.txt"
for dev in "$@"; do
	echo "== $dev: 64 bytes alone"
	rdmaperf run --transport "verbs:$dev,sched+verbs:$dev" --workload latency --op send,write,read -s 64 -n 1000 --timeout 60s --quiet \
		--format perftest --json "$OUT/latency-$dev.json" || code=$?
	echo "== $dev: 64 bytes beside bulk"
	rdmaperf run --transport "verbs:$dev,sched+verbs:$dev" --workload hol --hol-arm same-qp,two-qp --bulk-size 1M --probe-size 64 -D 3s \
		--timeout 60s --quiet --json "$OUT/hol-$dev.json" || code=$?
done
exit "$code"
