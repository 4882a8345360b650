#!/usr/bin/env bash
# gRPC over kernel verbs: the interoperability cases and what else calls must do, each
# in its own process, on both devices and in both forms; net.Conn's own tests; and a
# short run of calls, whose figures are shown and not judged.
#
#   ci/lab/run --timeout 3000 ci/lab/grpc.sh [DEVICE…]
# lab tests: ./grpcrdma
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
(($#)) || set -- rxe0 siw0

# A case that takes a second on a machine takes many where code is translated.
case_timeout=${CASE_TIMEOUT:-60s}

# matrix DEVICE: the verdicts of both forms; a case that is not pass is shown.
matrix() {
	local code=0
	timeout 1100 rdmaperf conform --transport "grpc(dropin)+verbs:$1,grpc(fused)+verbs:$1" --case-timeout "$case_timeout" --ledger ledger.json \
		--junit "$OUT/junit-$1.xml" --jsonl "$OUT/conform-$1.jsonl" >"$OUT/matrix-$1.txt" || code=$?
	sed -n '/^$/,$p' "$OUT/matrix-$1.txt"
	return "$code"
}

calls() {
	timeout 200 rdmaperf run --transport "grpc(dropin)+verbs:$1,grpc(fused)+verbs:$1" --workload rpc -s 64 -n 300 --timeout 60s --quiet --json "$OUT/rpc-$1.json"
}

for dev in "$@"; do
	say "$dev"
	check "matrix of both forms over $dev" matrix "$dev"
	check "calls over $dev" calls "$dev"
done
check "net.Conn and the tests above it" ./grpc-tests.sh "$@"
verdict grpc
