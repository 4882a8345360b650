#!/usr/bin/env bash
# gRPC's byte stream over kernel verbs: golang.org/x/net/nettest and the tests of the
# stream, of arrival and of gRPC on top, on both devices.
# lab tests: ./grpcrdma
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
(($#)) || set -- rxe0 siw0
RDMAPERF_VERBS_DEVICES=$(IFS=, && echo "$*")
export RDMAPERF_VERBS_DEVICES

# passes DEVICE TESTS: the tests ran on the device, and passed.
passes() {
	local log=$OUT/$1.log
	timeout 400 tests/grpcrdma/grpcrdma.test -test.v -test.timeout 380s -test.run "^($2)\$/^verbs:$1\$" >"$log" 2>&1 || {
		grep -E '^ *(--- FAIL|panic:|.*_test\.go:)' "$log" | head -n 20
		return 1
	}
	echo "  $(grep -cE -- '--- PASS: Test[A-Za-z0-9]+/verbs:' "$log") tests"
	! grep -qE -- '--- SKIP' "$log" && grep -qE -- '--- PASS: TestConnIsANetConn/verbs:' "$log"
}

for dev in "$@"; do
	check "byte stream over $dev" passes "$dev" TestConnIsANetConn
done
verdict grpc-tests
