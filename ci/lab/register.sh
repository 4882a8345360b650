#!/usr/bin/env bash
# Registrations of kernel verbs: the real ibv_reg_mr of rxe, which pins pages as an
# adapter's driver does, against a cache and memory that was registered when it was
# mapped, as ci/register judges them with io_uring, in a table of ratios; and the tier
# over it by the conformance suite. Ratios of one run mean something here, absolute times
# do not.
#
#   ci/lab/run ci/lab/register.sh [DEVICE…] [PART…] [REPEATS]
#
# A part is conform, cost or workload (the whole workload once, for its tables); without
# one, all of them. cost is measured in 6 repeats or what is said.
#
# Exit codes: 0 targets met, 1 something failed or could not be measured, 3 a target was
# missed.
# lab builds: ./ci/registertable
# lab timeout: 1800
set -uo pipefail
cd "$(dirname "$0")" || exit

devices=() parts=() repeats=6
for arg in "$@"; do
	case $arg in
	conform | cost | workload) parts+=("$arg") ;;
	[1-9]*) repeats=$arg ;;
	*) devices+=("$arg") ;;
	esac
done
((${#devices[@]})) || devices=(rxe0)
((${#parts[@]})) || parts=(conform cost workload)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

# worse CODE: what the script ends with. A failure weighs more than a missed target.
code=0
worse() { if ((code == 0 || code == 3 && $1 != 0)); then code=$1; fi; }

# measure NAME ARGUMENTS…: one repeat on $dev.
measure() {
	local file=$OUT/$dev.$repeat.$1.json
	shift
	timeout 300 rdmaperf run --transport "verbs:$dev" --workload register "$@" --quiet --no-save --json "$file" >"$OUT/run.txt" ||
		{ worse $?; tail -n 3 "$OUT/run.txt"; }
	documents+=("$file")
}

cost() {
	local repeat documents=()
	for ((repeat = 1; repeat <= repeats; repeat++)); do
		measure cost --pattern repeated --arms none,cache,prereg --pages base -s 4K,64K,1M,16M -D 200ms
		measure lazy --pattern new --arms prereg,prereg+lazy --pages base --offload none -s 16M -D 200ms
		measure hits --pattern threads --arms cache --offload none --register-threads 1,2 -D 200ms
	done
	# A hit's time in ns is that of a translated guest: shown, not judged.
	registertable -only cost -json "$OUT/ratios-$dev.json" -host "${documents[@]}" || worse $?
}

if wants conform; then
	list=$(printf ',regcache+verbs:%s' "${devices[@]}")
	rdmaperf conform --transport "${list#,}" --strict --case-timeout 30s --ledger /lab/ledger.json --jsonl "$OUT/conform.jsonl" >"$OUT/matrix.txt" || worse $?
	sed -n '/^$/,$p' "$OUT/matrix.txt"
fi
for dev in "${devices[@]}"; do
	if wants cost; then
		echo "== $dev: ratios"
		cost
	fi
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
