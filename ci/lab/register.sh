#!/usr/bin/env bash
# Registrations of kernel verbs: the real ibv_reg_mr of rxe, which pins pages as an
# adapter's driver does, in the tables of the workload, and the cache over it by the
# conformance suite. Ratios of one run mean something here, absolute times do not.
#
#   ci/lab/run ci/lab/register.sh [DEVICE…] [PART…]
#
# A part is conform or workload; without one, all of them.
#
# Exit codes: 0 all of it ran and was right, else that of what failed last.
# lab timeout: 1800
set -uo pipefail
cd "$(dirname "$0")" || exit

devices=() parts=()
for arg in "$@"; do
	case $arg in
	conform | workload) parts+=("$arg") ;;
	*) devices+=("$arg") ;;
	esac
done
((${#devices[@]})) || devices=(rxe0)
((${#parts[@]})) || parts=(conform workload)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

code=0
worse() { code=$1; }

if wants conform; then
	list=$(printf ',regcache+verbs:%s' "${devices[@]}")
	rdmaperf conform --transport "${list#,}" --strict --case-timeout 30s --ledger /lab/ledger.json --jsonl "$OUT/conform.jsonl" >"$OUT/matrix.txt" || worse $?
	sed -n '/^$/,$p' "$OUT/matrix.txt"
fi
for dev in "${devices[@]}"; do
	if wants workload; then
		echo "== $dev: the workload"
		# On-demand paging is said to be missing in each of them, where the kernel has none; where
		# it has, odp.sh shows it, as not every packet of it is placed right (ledger.json).
		arms=none,cache,prereg,prereg+lazy,odp
		if ibv_devinfo -v -d "$dev" | grep -qw ODP_SUPPORT; then arms=${arms%,odp}; fi
		for part in '--pattern repeated,random,overlapping,new -s 4K,64K,1M,16M' '--pattern set,threads,replaced -s 64K --register-threads 1,2'; do
			# shellcheck disable=SC2086 # words
			timeout 600 rdmaperf run --transport "verbs:$dev" --workload register --arms "$arms" $part -D 50ms --quiet --no-save || worse $?
		done
	fi
done
exit "$code"
