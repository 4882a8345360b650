#!/usr/bin/env bash
# Conformance of the kernel's soft devices: both in one matrix, with the ledger of
# what is known to deviate; strictly, so that a deviation that is gone shows as well.
# The forms for a pipeline are in the out directory.
#
#   ci/lab/run ci/lab/conform.sh [DEVICE…]
set -uo pipefail
read -ra all <<<"$LAB_DEVICES"
(($#)) || set -- "${all[@]}"
list=$(printf ',verbs:%s' "$@")
code=0
rdmaperf conform --strict --transport "${list#,}" --case-timeout 30s --ledger /lab/ledger.json --junit "$OUT/junit.xml" --jsonl "$OUT/conform.jsonl" >"$OUT/matrix.txt" || code=$?
sed -n '/^$/,$p' "$OUT/matrix.txt"
rdmaperf report "$OUT/conform.jsonl" -o "$OUT/report.html"
exit "$code"
