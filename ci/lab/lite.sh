#!/usr/bin/env bash
# LITE over kernel verbs: sessions and calls of the tier beside the bare device, its
# workloads, and its four applications, each of which holds its answer against that of a
# single machine. siw has no immediate data: there "sends" stands in the stack's name.
# Ratios of one run mean something here, absolute times do not.
#
#   ci/lab/run ci/lab/lite.sh [DEVICE…] [PART…]
#
# A part is one of these; without one, all of them.
#   sessions   latency and throughput of 64 bytes and 64 KiB, bare and through the tier;
#              calls of the tier, of its peers and by daemons
#   workloads  regions, sharing, locks and qos, in short; what making a region costs by its
#              size, which here is a kernel's that pins pages
#   conform    the cases of the tier
#   apps       log, wordcount, pagerank and dsm on three nodes
#
# Exit codes: 0 all of it ran and was right, else that of what failed last.
# lab timeout: 1800
set -uo pipefail

devices=() parts=()
for arg in "$@"; do
	case $arg in
	sessions | workloads | conform | apps) parts+=("$arg") ;;
	*) devices+=("$arg") ;;
	esac
done
((${#devices[@]})) || read -ra devices <<<"$LAB_DEVICES"
((${#parts[@]})) || parts=(sessions workloads conform apps)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

code=0 steps=0

# step NAME COMMAND…: runs it, and says what its exit code was. What hangs is asked where it
# stands (SIGQUIT), and its answer kept.
step() {
	local name=$1 got
	shift
	printf '== %s\n' "$name"
	steps=$((steps + 1))
	timeout -s QUIT -k 10 180 "$@" 2>"$OUT/err-$steps"
	got=$?
	if ((got)); then
		code=$got
		printf 'FAILED %s: exit code %d, err-%d\n' "$name" "$got" "$steps"
		grep -v '^$' "$OUT/err-$steps" | head -n 3
	fi
}

# A graph and a text of the lab's own: the guest has no Go.
for n in 1 2 3 4 5 6 7 8 9; do printf 'v%d v%d\nv%d v%d\n' "$n" $((n * 3 % 10)) "$n" $((n * 7 % 10)); done >"$OUT/edges"

for dev in "${devices[@]}"; do
	v=verbs:$dev
	if wants sessions; then
		step "$dev: sessions" rdmaperf run --transport "$v,lite+$v" --workload latency,throughput --op write -s 64,64K -n 500 --timeout 60s --quiet --json "$OUT/sessions-$dev.json"
		for form in lite 'lite(rpc=send)' 'lite(rpc=write)' 'lite(daemon)' 'lite(daemon,cross)'; do
			step "$dev: calls of $form" rdmaperf run --transport "$form+$v" --workload rpc -s 64 -n 200 --timeout 60s --quiet --json "$OUT/calls-$dev-$form.json"
		done
	fi
	if wants workloads; then
		step "$dev: regions" rdmaperf run --transport "$v,lite+$v" --workload regions --regions 1,64 --total 1,16,64 -n 300 --timeout 60s --quiet --json "$OUT/regions-$dev.json"
		step "$dev: sharing" rdmaperf run --transport "$v,lite+$v" --workload sharing --users 1,16 -n 300 --timeout 60s --quiet --json "$OUT/sharing-$dev.json"
		if [[ $dev != siw* ]]; then # siw has no atomics
			step "$dev: locks" rdmaperf run --transport "lite+$v" --workload locks --contenders 1,3 -n 100 --timeout 60s --quiet --json "$OUT/locks-$dev.json"
		fi
		step "$dev: qos" rdmaperf run --transport "lite+$v" --workload qos -D 3s --timeout 60s --quiet --json "$OUT/qos-$dev.json"
	fi
	if wants conform; then
		step "$dev: conformance" rdmaperf conform --transport "lite+$v" --format text
	fi
	if wants apps; then
		step "$dev: pagerank" rdmaperf lite pagerank --nodes 3 --transport "$v" --edges "$OUT/edges" --iterations 10
		step "$dev: dsm" rdmaperf lite dsm --nodes 3 --transport "$v" --pages 8 --accesses 100
		if [[ $dev != siw* ]]; then # these two count by atomics
			step "$dev: wordcount" rdmaperf lite wordcount --nodes 3 --transport "$v" /lab/*.sh /lab/README.md
			step "$dev: log" rdmaperf lite log --nodes 3 --transport "$v" --records 100
		fi
	fi
done
exit "$code"
