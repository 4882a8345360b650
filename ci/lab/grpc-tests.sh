#!/usr/bin/env bash
# gRPC over kernel verbs, on both devices: golang.org/x/net/nettest on the byte stream,
# and the tests of streams, of calls and of peers that mean harm.
#
#   ci/lab/run ci/lab/grpc-tests.sh [DEVICE…]
# lab tests: ./grpcrdma
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
read -ra all <<<"$LAB_DEVICES"
(($#)) || set -- "${all[@]}"
RDMAPERF_VERBS_DEVICES=$(IFS=, && echo "$*")
export RDMAPERF_VERBS_DEVICES

stream='TestLargeRecordsArriveWhole|TestStreamsArriveWhole|TestSlowReaderHoldsTheWriter|TestOrderlyClose|TestNetCloseEndsEverything|TestMemoryIsBoundedAndReported'
stream+='|TestTornRecordWaitsForItsDeadline|TestDialErrorsSayWhatHappened|TestFallbackToTCP'
calls='TestGRPCUnchanged|TestResolverTargets'

# passes DEVICE TESTS [CASES/]: every one of the tests ran on the device, and passed.
passes() {
	local log=$OUT/$1.${2%%|*}.log name
	timeout 200 tests/grpcrdma/grpcrdma.test -test.v -test.timeout 180s -test.run "^($2)\$/${3-}^verbs:$1\$" >"$log" 2>&1 || {
		grep -E '^ *(--- FAIL|panic:|.*_test\.go:)' "$log" | head -n 20
		return 1
	}
	for name in ${2//|/ }; do
		grep -qE -- "^ +--- PASS: $name/.*verbs:$1" "$log" || { echo "  $name did not run"; return 1; }
	done
	! grep -E -- '--- SKIP' "$log"
}

for dev in "$@"; do
	check "$dev: net.Conn" passes "$dev" TestConnIsANetConn
	check "$dev: streams" passes "$dev" "$stream"
	check "$dev: calls" passes "$dev" "$calls"
	check "$dev: hostile peers" passes "$dev" TestHostilePeersAreCutOff '.*/'
done
verdict grpc-tests
