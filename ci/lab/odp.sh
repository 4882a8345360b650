#!/usr/bin/env bash
# On-demand paging of kernel verbs: what the device declares, its cases of the conformance
# suite with what is known to deviate, whether the workload register sees the bytes that they
# see, and R9: the first touch of a page is slow, and a warmed one as fast as a pinned one.
# Ratios of one run mean something here, absolute times do not.
#
#   ci/lab/run --kernel backports ci/lab/odp.sh [PART…]
#
# A part is conform, bytes or cost; without one, all of them.
#
# Exit codes: 0 all is as it should be, 1 something is not or could not be measured, 77 the
# device has no on-demand paging.
# lab timeout: 1200
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh

dev=rxe0 parts=()
for arg in "$@"; do
	case $arg in
	conform | bytes | cost) parts+=("$arg") ;;
	*) echo "odp.sh: $arg: want conform, bytes or cost" >&2 && exit 2 ;;
	esac
done
((${#parts[@]})) || parts=(conform bytes cost)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

register() { timeout 300 rdmaperf run --transport "verbs:$dev" --workload register --pattern new --pages base --offload none --quiet --no-save "$@"; }

# mtu BYTES: of the wire, at both ends. The device takes the largest of IBTA's that fits.
mtu() { ip link set r0 mtu "$1" && ip -n peer link set r1 mtu "$1"; }

# What libibverbs says, in words: general_odp_caps, and those of reliable connections.
declared=$(ibv_devinfo -v -d "$dev" | sed -n '/general_odp_caps/,/uc_odp_caps/p' | grep -oE '\<(ODP_SUPPORT|SUPPORT_[A-Z_]+)' | paste -sd' ')
say "$dev of Linux $(uname -r): $(grep -xE 'CONFIG_(RDMA_RXE|INFINIBAND_ON_DEMAND_PAGING)=.*' kernel.config | paste -sd' ')"
echo "ibv_query_device_ex: ${declared:-no on-demand paging}"

code=0
if [[ $declared != *ODP_SUPPORT* ]]; then
	register --arms odp -s 4K >"$OUT/absent.txt" 2>&1 || code=$?
	tail -n 1 "$OUT/absent.txt"
	((code == 77)) || { echo "FAIL: the arm odp ended with $code, want 77" && exit 1; }
	exit 77
fi

# agrees: what rdmaperf finds is what the kernel says, and the arm runs.
agrees() {
	local op
	for op in SEND RECV WRITE READ; do
		[[ " $declared " == *" SUPPORT_$op "* ]] || { echo "  no paging for $op of a reliable connection" && return 1; }
	done
	mtu 9000 && register --arms odp -s 4K -D 50ms >"$OUT/present.txt" 2>&1 || { tail -n 3 "$OUT/present.txt" && return 1; }
}
check "$dev declares on-demand paging, and registers with it" agrees

# verdicts: both stacks, strictly: a deviation that is gone shows as well. The page alone has
# no row in the ledger, so that paging itself is held to.
verdicts() {
	local code=0
	mtu 1500 || return
	rdmaperf conform --transport "verbs:$dev,regcache+verbs:$dev" --only 'acc/on-demand*,dev/caps-constant,dev/undeclared-refused' --strict \
		--case-timeout 30s --ledger ledger.json --jsonl "$OUT/conform.jsonl" >"$OUT/matrix.txt" 2>&1 || code=$?
	cat "$OUT/matrix.txt"
	grep -qE '^acc/on-demand-page .*pass +pass' "$OUT/matrix.txt" || { echo "  acc/on-demand-page did not pass on both" && return 1; }
	return "$code"
}

# whole_pages: where each packet is a page, nothing is forgiven, pages that are dropped under
# a stream of writes included.
whole_pages() {
	mtu 9000 || return
	rdmaperf conform --transport "verbs:$dev,regcache+verbs:$dev" --only acc/on-demand-page,acc/on-demand-in-flight --case-timeout 30s
}

# bytes_seen: packets of 1024 bytes reach into pages at offsets. Where the suite finds them
# misplaced, the workload's bytes are wrong, too, and it has to end with exit code 4.
bytes_seen() {
	local want=0 code=0
	mtu 1500 || return
	rdmaperf conform --transport "verbs:$dev" --only acc/on-demand --case-timeout 30s >"$OUT/offset.txt" 2>&1 || want=4
	register --arms odp -s 4K -D 50ms >"$OUT/bytes.txt" 2>&1 || code=$?
	tail -n 1 "$OUT/bytes.txt"
	echo "  acc/on-demand: $( ((want)) && echo fails || echo passes); register with arm odp: exit code $code"
	((code == want))
}

cost() {
	mtu 9000 || return # a page is one packet, which begins with it: see ledger.json
	rdmaperf reproduce registration --only R9 -o "$OUT"
}

if wants conform; then check "$dev: the suite's cases of on-demand paging, and of what is declared" verdicts; fi
if wants conform; then check "$dev: the same with packets of a page, without a ledger" whole_pages; fi
if wants bytes; then check "$dev: the workload notices what the suite notices" bytes_seen; fi
if wants cost; then
	say "$dev: first touch, warmed and pinned pages"
	cost || code=$?
fi
verdict odp || code=1
exit "$code"
