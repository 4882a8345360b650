#!/usr/bin/env bash
# What papers claim, over kernel verbs: sRDMA's rows with the device in the place of iwarp, the
# schemes of SoftRDMA beside siw, and R9 where rxe0 has on-demand paging. Ratios mean something in
# a translated guest. S2, S13 and S14 are cases of the suite, which sched.sh runs with the ledger
# of what devices deviate in.
#
#   ci/lab/run ci/lab/reproduce.sh [DEVICE…]
#
# Pages are in OUT/DEVICE. Exit codes: 0 nothing is refuted, 1 a claim is not shown.
# lab tags: lwip
# lab needs: liblwip.so.0
# lab timeout: 5400
set -uo pipefail
read -ra devices <<<"${*:-$LAB_DEVICES}"
code=0

# rows: of what cannot run here nothing is refuted.
rows() {
	local got=0
	rdmaperf reproduce "$@" || got=$?
	((got == 0 || got == 77)) || code=$got
}

# A command has five minutes, in which a translated guest measures few rows.
for dev in "${devices[@]}"; do
	order=S1,S3,S4
	[[ $dev == siw* ]] && order=S1,S4 # it completes a send before the read in front of it: see ledger.json
	for ids in $order S5 S5c S6,S7 S8,S9 S10 S11 S12; do
		rows srdma --only "$ids" --transport "verbs:$dev" -o "$OUT/$dev/$ids"
	done
done
if [[ " ${devices[*]} " == *" siw0 "* ]]; then
	rows softrdma --only F6,F7,F9,F11 --transport verbs:siw0 -o "$OUT/siw0/F"
fi
if [[ " ${devices[*]} " == *" rxe0 "* ]]; then
	# A page is one packet, which begins with it: see ledger.json.
	ip link set r0 mtu 9000 && ip -n peer link set r1 mtu 9000
	rows registration --only R9 -o "$OUT/rxe0/R9"
fi
exit "$code"
