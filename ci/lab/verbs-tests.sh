#!/usr/bin/env bash
# The tests of the verbs provider that need a device, on both. With the race detector:
#
#   ci/lab/run --race ci/lab/verbs-tests.sh
# lab tests: ./transports/verbs
set -euo pipefail
export RDMAPERF_VERBS_DEVICES=${LAB_DEVICES// /,}
/lab/tests/verbs/verbs.test -test.v -test.run '^(TestDataPathAllocatesNothing|TestQueueRefusesBeyondDepth|TestCloseKeepsCompletions|TestCapabilitiesAreKept|TestManyQueuesOfOneDevice|TestFirstMessageArrives|TestPacketsAreMarked)$'
