#!/usr/bin/env bash
# rdmaperf beside perftest, in turns on the same device with the same settings, as a
# table of ratios with the project's targets; ratios.json in the out directory.
#
#   ci/lab/run ci/lab/perftest-ratio.sh [REPEATS [DEVICE…]]
#
# Exit codes: 0 targets met, 1 something could not be measured or is undecided, 3 a
# target was missed.
# Two programs poll on two CPUs, so on a busy host even ratios are noise.
#
# The targets are for hardware and KVM. A translated guest (TCG) takes ten times as
# long for every instruction, and the host's pace changes by up to 1.4x from one probe to
# the next. So p50 is taken with both tools in turns of a few hundredths of a second, and
# the median of the ratios of pairs is judged.
# What is undecided then, as the scatter reaches over the bound, gets as many pairs once
# more, twice at most, and all its pairs are judged together: a ratio just at its bound
# passes at one of three looks in two of three runs instead of one of two.
# Both tools poll all the time (busy), their streams as nice threads. That rdmaperf's
# streams can sleep while a device in software is at work (adaptive) is shown beside and
# judged by nothing: perftest cannot.
# perftest's figure is the period from post to post, rdmaperf's the time from post to
# arrival; both are halved for send and write, and the table has both tools' periods
# below. perftest has one thread; the Go runtime's monitor is given slack
# (other_threads), since its wake-ups made every second read longer.
# lab builds: ./ci/lab/ratiotable
# lab needs: chrt
# lab timeout: 2700
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
# shellcheck source=ci/lab/guest/ratio.sh
. guest/ratio.sh

repeats=${1:-5}
shift $(($# > 0))
(($#)) || set -- rxe0 siw0
mkdir -p "$OUT/whole"
# count DEVICE TEST SIZE: messages for about a second. The start and the end of a stream,
# with the last acknowledgement, take rdmaperf 2 ms longer than perftest, which is a percent
# of a fifth of a second.
count() {
	case $1.$2.$3 in
	*.64) echo 40000 ;;
	siw*) echo 8000 ;;
	*.send_bw.*) echo 3000 ;;
	*) echo 2000 ;;
	esac
}
for ((repeat = 1; repeat <= repeats; repeat++)); do
	for device in "$@"; do
		for op in send write read; do
			# Medians of two processes differ by a few percent that last as long as they do, as
			# where their memory lies does, so many pairs tell more than long ones.
			for ((probe = 4 * repeat - 3; probe <= 4 * repeat; probe++)); do together "$probe" "$device" "${op}_lat" 64 15000; done
			raw=$OUT/whole point "$repeat" "$device" "${op}_lat" 64 2000 # for the periods
			# Rates differ by more than that, so the same holds, the more the closer they are to
			# their target: long sends over RXE, where the kernel's work is the same for both
			# tools but for half a percent, and fills one CPU, and short messages over siw.
			rates=3
			[[ $device$op != rxe*send ]] || rates=8
			for ((probe = rates * (repeat - 1) + 1; probe <= rates * repeat; probe++)); do
				((probe < rates * repeat)) || adaptive=yes
				point "$probe" "$device" "${op}_bw" 65536 "$(count "$device" "${op}_bw" 65536)"
				adaptive=no
			done
			rates=3
			[[ $device$op != siw*@(send|write) ]] || rates=6
			for ((probe = rates * (repeat - 1) + 1; probe <= rates * repeat; probe++)); do
				point "$probe" "$device" "${op}_bw" 64 "$(count "$device" "${op}_bw" 64)"
			done
			if ((repeat == 1)); then point 1 "$device" "${op}_lat" 65536 200; fi # only shown
		done
		if [[ $device == rxe* ]]; then point "$repeat" "$device" atomic_lat 8 2000; fi # only shown
	done
done

# table: what all probes say, and which of it more of them could decide.
table() { ratiotable -dir "$raw" -periods "$OUT/whole" -json "$OUT/ratios.json" -undecided "$OUT/undecided"; }
for round in 1 2; do
	table >"$OUT/table.$round" 2>&1 && break
	while read -r device test size last <&3; do
		echo "undecided after $last pairs: $device $test, $size bytes"
		for ((probe = last + 1; probe <= last + last / round; probe++)); do
			((probe % 5)) || rdmaperf_server
			if [[ $test == *_lat ]]; then
				together "$probe" "$device" "$test" "$size" 15000
			else
				point "$probe" "$device" "$test" "$size" "$(count "$device" "$test" "$size")"
			fi
		done
	done 3<"$OUT/undecided"
done
stops "$ours"
table
