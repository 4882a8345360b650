#!/usr/bin/env bash
# The scheduling tier over kernel verbs: conformance, what it costs a message that has
# the wire to itself, and the project's targets for it, as ci/sched-ratio judges them on
# loopback, in a table of ratios; ratios-DEVICE.json in the out directory. Ratios of one
# run mean something here, absolute times do not.
#
#   ci/lab/run ci/lab/sched.sh [DEVICE…] [PART…] [REPEATS]
#
# A part is one of these; without one, all of them. hol, bulk and sends are measured in 6
# repeats or what is said, and judged together: six are the fewest whose least and most
# hold the median with 95 %.
#   conform, conform-cut   the cases through the tier, with sends left whole and cut
#   latency                64 bytes alone
#   hol                    64-byte probes beside writes on their QP, bare and scheduled,
#                          and on a QP of their own
#   bulk                   writes alone
#   sends                  the same probes beside sends: bare, sends left whole, and cut
#
# The targets for streams are those of loopback and RXE. Over siw, where the tier loses 1 to
# 7 % of long messages, bulk is measured and shown, and judged where siw0 is named.
#
# Exit codes: 0 targets met, 1 something failed or could not be measured, 3 a target was
# missed. Two programs poll on two CPUs, so on a busy host even ratios are noise.
#
# The longest message is 8 MiB, as rxe takes no longer one. A translated guest sends 60 to
# 90 MB/s, so that 16 of them take 2 s to drain; probes start every 2 ms instead of 0.5.
# The measured windows are short, so that a p99 is of 500 probes, and the median of
# repeats. CPU per byte is that of the whole guest: what the drivers do in the kernel's
# own threads and in interrupts is on no process's account, and moves to one where it
# posts more often. The client spins, so its CPU is full either way, and the figure sees
# hardly more than the other CPU and the rate. The two processes' is shown, not judged.
# lab builds: ./ci/schedratio
# lab tests: ./sched
# lab timeout: 3600
set -uo pipefail
cd "$(dirname "$0")" || exit

devices=() parts=() repeats=6 named=no
for arg in "$@"; do
	case $arg in
	conform | conform-cut | latency | hol | bulk | sends) parts+=("$arg") ;;
	[1-9]*) repeats=$arg ;;
	*) devices+=("$arg") named=yes ;;
	esac
done
((${#devices[@]})) || read -ra devices <<<"$LAB_DEVICES"
((${#parts[@]})) || parts=(conform conform-cut latency hol bulk sends)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

# worse CODE: what the script ends with. A failure weighs more than a missed target.
code=0
worse() { if ((code == 0 || code == 3 && $1 != 0)); then code=$1; fi; }

# conform NAME LAYER: the matrix of the layer over all devices.
conform() {
	local list
	list=$(printf ",$2+verbs:%s" "${devices[@]}")
	rdmaperf conform --transport "${list#,}" --strict --case-timeout 30s --ledger /lab/ledger.json --jsonl "$OUT/$1.jsonl" >"$OUT/matrix-$1.txt" || worse $?
	sed -n '/^$/,$p' "$OUT/matrix-$1.txt"
}

latency() {
	rdmaperf run --transport "verbs:$1,sched+verbs:$1" --workload latency --op send,write,read -s 64 -n 1000 --timeout 60s --quiet \
		--format perftest --json "$OUT/latency-$1.json" || worse $?
}

# measure SET ARGUMENTS…: one repeat of a set on $dev.
measure() {
	local file=$OUT/$dev.$repeat.$1.json
	shift
	timeout 300 rdmaperf run "$@" --timeout 60s --quiet --json "$file" >"$OUT/run.txt" || { worse $?; tail -n 3 "$OUT/run.txt"; }
	documents+=("$file")
}

# alone ROUNDS SIZES: writes of these lengths over the bare and the scheduled device, in
# rounds of four windows in one process: the host's pace changes within seconds, and pairs
# of windows of runs of their own scattered by 0.2 where the goal is 0.02.
alone() {
	RDMAPERF_VERBS_DEVICES=$dev timeout 300 /lab/tests/sched/sched.test -test.run NONE -test.bench "Alone/verbs/^($2)\$" \
		-test.benchtime 1x -test.count "$1" >"$OUT/bench.txt" 2>&1 || { worse $?; tail -n 3 "$OUT/bench.txt"; }
	cat "$OUT/bench.txt" >>"$OUT/bench-$dev.txt"
}

targets() {
	local repeat sets='' documents=() v=verbs:$dev show=cpu
	if [[ $dev == siw* ]]; then
		v="verbs(cm):$dev" # as documents call it
		[[ $named == yes ]] || show=cpu,bulk,machine
	fi
	local probes=(--workload hol --probe-size 64 --probe-interval 2ms -D 1s)
	if wants hol; then sets+=,hol; fi
	if wants bulk; then sets+=,bulk,cpu,machine; fi
	if wants sends; then sets+=,sends; fi
	: >"$OUT/bench-$dev.txt"
	for ((repeat = 1; repeat <= repeats; repeat++)); do
		if wants hol; then
			measure same "${probes[@]}" --transport "$v,sched+$v" --hol-arm same-qp --bulk-size 1M,8M
			measure two "${probes[@]}" --transport "$v" --hol-arm two-qp --bulk-size 1M
		fi
		if wants bulk; then
			alone 5 '64K|1M'
			alone 3 '64|8M'
		fi
		if wants sends; then
			measure sends "${probes[@]}" --transport "$v,sched+$v,sched(sends=slice)+$v" --op send --hol-arm same-qp --bulk-size 1M
		fi
	done
	schedratio -stack "$v" -large $((8 << 20)) -only "${sets#,}" -show "$show" -bench "$OUT/bench-$dev.txt" -json "$OUT/ratios-$dev.json" "${documents[@]}" || worse $?
}

if wants conform; then conform conform sched; fi
if wants conform-cut; then conform conform-cut 'sched(sends=slice)'; fi
for dev in "${devices[@]}"; do
	if wants latency; then
		echo "== $dev: 64 bytes alone"
		latency "$dev"
	fi
	if wants hol || wants bulk || wants sends; then
		echo "== $dev: targets"
		targets
	fi
done
exit "$code"
