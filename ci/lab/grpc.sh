#!/usr/bin/env bash
# gRPC over kernel verbs: the interoperability cases and what else calls must do, each
# in its own process, on both devices and in both forms; net.Conn's own tests; and a
# short run of calls, whose figures are shown and not judged.
#
#   ci/lab/run ci/lab/grpc.sh [DEVICE…] [PART…]
#
# A part is dropin, fused, calls or tests; without one, all of them.
# lab tests: ./grpcrdma
# lab timeout: 1200
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh

devices=() parts=()
for arg in "$@"; do
	case $arg in
	dropin | fused | calls | tests) parts+=("$arg") ;;
	*) devices+=("$arg") ;;
	esac
done
((${#devices[@]})) || read -ra devices <<<"$LAB_DEVICES"
((${#parts[@]})) || parts=(dropin fused calls tests)

# A case that takes a second on a machine takes many where code is translated.
case_timeout=${CASE_TIMEOUT:-180s}

# matrix DEVICE FORM: its verdicts.
matrix() {
	timeout 1100 rdmaperf conform --transport "grpc($2)+verbs:$1" --case-timeout "$case_timeout" --ledger ledger.json \
		--junit "$OUT/junit-$1-$2.xml" --jsonl "$OUT/conform-$1-$2.jsonl" >"$OUT/matrix-$1-$2.txt" 2>&1
}

# told PID DEVICE FORM: the end of a matrix that was begun; a case that is not pass is shown.
told() {
	local code=0
	wait "$1" || code=$?
	sed -n '/^$/,$p' "$OUT/matrix-$2-$3.txt"
	return "$code"
}

calls() {
	timeout 200 rdmaperf run --transport "grpc(dropin)+verbs:$1,grpc(fused)+verbs:$1" --workload rpc -s 64 -n 300 --timeout 60s --quiet --json "$OUT/rpc-$1.json"
}

wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

# Both forms of a device go on at once: most cases wait for something, be it a deadline
# or a process that starts.
for dev in "${devices[@]}"; do
	say "$dev"
	declare -A begun=()
	for form in dropin fused; do
		wants "$form" || continue
		matrix "$dev" "$form" &
		begun[$form]=$!
	done
	for form in "${!begun[@]}"; do check "matrix of $form over $dev" told "${begun[$form]}" "$dev" "$form"; done
	if wants calls; then check "calls over $dev" calls "$dev"; fi
done
if wants tests; then check "net.Conn and the tests above it" ./grpc-tests.sh "${devices[@]}"; fi
verdict grpc
