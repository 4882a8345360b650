#!/usr/bin/env bash
# rdmaperf beside perftest, in turns on the same device with the same settings, as a
# table of ratios with verdicts; ratios.json in the out directory.
#
#   ci/lab/run ci/lab/perftest-ratio.sh [REPEATS [DEVICE…]]
#
# Exit codes: 0 nothing is worse than perftest, 1 something could not be measured or is
# undecided, 3 something is worse.
# Two programs poll on two CPUs, so on a busy host even ratios are noise.
#
# A translated guest (TCG) takes ten times as long for every instruction, and the host's pace
# changes by up to 1.4x from one probe to the next. So p50 is taken with both tools in turns
# of a few hundredths of a second, and the median of the ratios of pairs is judged, by its
# whole interval: equal, better, worse or undecided. There is one look, at all pairs that
# $most seconds gave, however many repeats were asked for: undecided is a verdict, too.
# Both tools poll all the time (busy), their streams as nice threads. That rdmaperf's
# streams can sleep while a device in software is at work (adaptive) is shown beside and
# judged by nothing: perftest cannot.
# perftest's figure is the period from post to post, rdmaperf's the time from post to
# arrival; both are halved for send and write, and the table has both tools' periods
# as well, each with rdmaperf's data not compared, as perftest compares none, and compared.
# perftest has one thread; the Go runtime's monitor is given slack
# (other_threads), since its wake-ups made every second read longer.
# lab builds: ./ci/lab/ratiotable
# lab needs: chrt
# lab timeout: 1200
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
# shellcheck source=ci/lab/guest/ratio.sh
. guest/ratio.sh

repeats=${1:-5}
shift $(($# > 0))
read -ra all <<<"$LAB_DEVICES"
(($#)) || set -- "${all[@]}"
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
# most is for how many seconds a probe is begun. A long one takes a minute, and the lab ends
# the script after 20 minutes.
most=1020
# last: no time for another probe.
last() { ((SECONDS >= most)); }
for ((repeat = 1; repeat <= repeats; repeat++)); do
	for device in "$@"; do
		for op in send write read; do
			! last || break 3
			# Medians of two processes differ by a few percent that last as long as they do, as
			# where their memory lies does, so many pairs tell more than long ones.
			for ((probe = 4 * repeat - 3; probe <= 4 * repeat; probe++)); do last || together "$probe" "$device" "${op}_lat" 64 15000; done
			# For the periods, and what comparing the data costs: in one piece.
			for ((probe = 2 * repeat - 1; probe <= 2 * repeat; probe++)); do
				last || raw=$OUT/whole verified=yes point "$probe" "$device" "${op}_lat" 64 2000
			done
			# Rates differ by more than that, so the same holds, the more the closer they are to
			# their target: long sends over RXE, where the kernel's work is the same for both
			# tools but for half a percent, and fills one CPU, and short messages over siw.
			rates=3
			[[ $device$op != rxe*send ]] || rates=8
			for ((probe = rates * (repeat - 1) + 1; probe <= rates * repeat; probe++)); do
				((probe < rates * repeat)) || adaptive=yes
				last || point "$probe" "$device" "${op}_bw" 65536 "$(count "$device" "${op}_bw" 65536)"
				adaptive=no
			done
			rates=3
			[[ $device$op != siw*@(send|write) ]] || rates=6
			for ((probe = rates * (repeat - 1) + 1; probe <= rates * repeat; probe++)); do
				last || point "$probe" "$device" "${op}_bw" 64 "$(count "$device" "${op}_bw" 64)"
			done
			if ((repeat == 1)) && ! last; then verified=yes point 1 "$device" "${op}_lat" 65536 200; fi # only shown
		done
		if [[ $device == rxe* ]] && ! last; then point "$repeat" "$device" atomic_lat 8 2000; fi # only shown
	done
done

if last; then echo "ended after $SECONDS s, in repeat $repeat of $repeats"; fi
stops "$ours"
ratiotable -dir "$raw" -periods "$OUT/whole" -json "$OUT/ratios.json"
