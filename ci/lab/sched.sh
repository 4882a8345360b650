#!/usr/bin/env bash
# The scheduling tier over kernel verbs: conformance, then small urgent messages
# beside a bulk stream with it and without. Ratios of one run mean something here,
# absolute times do not.
#
#   ci/lab/run --timeout 1800 ci/lab/sched.sh [DEVICE…]
set -uo pipefail
(($#)) || set -- rxe0 siw0
code=0
list=$(printf ',sched+verbs:%s' "$@")
rdmaperf conform --transport "${list#,}" --strict --ledger /lab/ledger.json --jsonl "$OUT/conform.jsonl" >"$OUT/matrix.txt" || code=$?
sed -n '/^$/,$p' "$OUT/matrix.txt"
for dev in "$@"; do
	rdmaperf run --transport "verbs:$dev,sched+verbs:$dev" --workload hol --hol-arm same-qp --bulk-size 1M --probe-size 64 -D 3s \
		--json "$OUT/hol-$dev.json" || code=$?
done
exit "$code"
