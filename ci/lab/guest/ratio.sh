# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # guest/lib.sh sets server, the scripts use ours
# Measures one point with perftest and with rdmaperf, one right after the other: same
# device, same CPUs, same depth, nothing inline, busy polling. perftest checks no data, so
# rdmaperf does not either. rdmaperf's streams over such devices are nice, so perftest's
# are as well, which gains as much by it: reads of 64 KiB over siw 1.7 of its rate, sends
# 2.0. Raw output goes to $raw in the names that ratiotable reads.

raw=$OUT/raw
adaptive=no verified=no
limit=60 # seconds for one probe
nicely=19 # the nice value of streams
reads=128 # outstanding reads: rdmaperf takes as many as the queue is deep and the device can
mkdir -p "$raw"

# on: all of a program's threads on one CPU, as perftest's one thread is. A thread of the
# other side's program would empty this CPU's tables of addresses. The Go runtime still
# thinks of two: the control connection must not wait for the polling loop.
on=(env GOMAXPROCS=2 taskset -c)

# rdmaperf_server: the far side of rdmaperf's points; $ours is its id. One that runs
# already gives way: where a process's memory lies moves a median by some percent for as
# long as it lives, and perftest's far side is another process in each probe.
rdmaperf_server() {
	[[ -z ${ours-} ]] || stops "$ours" || true
	ours=
	serve "$OUT/serve.log" lab 18600 "${on[@]}" 1 rdmaperf serve -p 18600 || return
	ours=$server
}

# point REPEAT DEVICE TEST SIZE COUNT: both tools, in an order that changes with the repeat.
# With adaptive=yes, rdmaperf once more with adaptive polling, and with verified=yes once more
# with its data compared, which perftest has not: never between the two.
point() {
	echo "repeat $1: $2 $3, $4 bytes"
	if (($1 % 2)); then
		by_perftest "$@"
		by_rdmaperf "$@"
		[[ $adaptive != yes ]] || by_rdmaperf_adaptive "$@"
		[[ $verified != yes ]] || by_rdmaperf_verified "$@"
	else
		[[ $verified != yes ]] || by_rdmaperf_verified "$@"
		[[ $adaptive != yes ]] || by_rdmaperf_adaptive "$@"
		by_rdmaperf "$@"
		by_perftest "$@"
	fi
}

# queues TEST SIZE: sets queues, the depths of a stream and after how many operations one
# is signalled: perftest takes every one above 8 KiB, and rdmaperf is told to as well.
queues() {
	queues=()
	if [[ $1 == *_bw ]]; then queues=(-t 128 -Q "$(($2 > 8192 ? 1 : 100))"); fi
	if [[ $1 == send_bw ]]; then queues+=(-r 512); fi
}

# by_perftest REPEAT DEVICE TEST SIZE COUNT
by_perftest() { retried perftest_once "$@"; }

# retried PROBE REPEAT DEVICE TEST SIZE COUNT: again where perftest could not find how fast
# its clock runs, because something came between two readings of it (then it prints zeros
# or inf), and where its client got no connection, as it does now and then over siw: it
# dies of a signal in librdmacm, or says so and leaves a server that waits until its end.
retried() {
	local probe=$1 try
	shift
	for try in 1 2 3; do
		"$probe" "$@"
		if grep -q '^Correlation coefficient' /tmp/theirs.log; then
			echo "  perftest did not find its clock's rate, try $try"
		elif grep -qE '^exit code 139|Unable to init the socket connection' "$raw/$1.perftest.$2.$3.$4.failed" 2>/dev/null; then
			echo "  perftest's client got no connection, try $try"
			((try == 3)) || rm -f "$raw/$1.perftest.$2.$3.$4.failed"
		else
			return 0
		fi
	done
}

perftest_once() {
	local file=$raw/$1.perftest.$2.$3.$4 code=0 options address as=()
	perftest_options "$@"
	[[ $3 != *_bw ]] || as=(nice -n "$nicely")
	if serve /tmp/server.log lab 18515 timeout "$limit" "${as[@]}" taskset -c 1 "ib_$3" "${options[@]}"; then
		timeout "$limit" "${as[@]}" taskset -c 0 "ib_$3" "${options[@]}" "$address" >"$file" 2>/tmp/theirs.log || code=$?
		if ((code == 139)); then stops "$server"; else ends "$server" 10 || code=$?; fi
	else
		code=$?
	fi
	ended "$file" "$code" /tmp/theirs.log
}

# perftest_options REPEAT DEVICE TEST SIZE COUNT: sets options, of both sides, and address.
perftest_options() {
	address=10.77.0.1
	queues "$3" "$4"
	options=(-d "$2" -F -s "$4" -n "$5" "${queues[@]}")
	case $3 in
	atomic_lat) options=(-d "$2" -F -n "$5" -A FETCH_AND_ADD) ;;
	read_*) options+=(-o "$reads") ;;
	*) options+=(-I 0) ;;
	esac
	case $2 in
	siw*) options+=(-R) address=10.78.0.1 ;;
	*) options+=(-x 1) ;;
	esac
}

# ended FILE CODE LOG: what a probe left stays only if it ended well.
ended() {
	(($2 == 0)) && return
	rm -f "$1"
	echo "exit code $2: $(tail -n 1 "$3")" >"$1.failed"
}

by_rdmaperf() { by_rdmaperf_as rdmaperf busy "$@"; }

by_rdmaperf_adaptive() { by_rdmaperf_as adaptive adaptive "$@"; }

by_rdmaperf_verified() { compare=--verify=sample by_rdmaperf_as verified busy "$@"; }

# by_rdmaperf_as NAME POLLING REPEAT DEVICE TEST SIZE COUNT: NAME is the tool in the file's name.
by_rdmaperf_as() {
	local file=$raw/$3.$1.$4.$5.$6 polling=$2 code=0 options address
	shift 2
	rdmaperf_options "$@"
	options+=(--polling "$polling")
	timeout "$limit" "${on[@]}" 0 rdmaperf run "$address" "${options[@]}" >"$file" 2>/tmp/client.log || code=$?
	ended "$file" "$code" /tmp/client.log
}

# rdmaperf_options REPEAT DEVICE TEST SIZE COUNT: as perftest_options.
rdmaperf_options() {
	local op=${3%_*}
	address=10.77.0.1
	queues "$3" "$4"
	options=(-p 18600 --transport "verbs:$2" --op "${op/atomic/fetch_add}" -s "$4" -n "$5" --pin '0,1' "${compare:---verify=none}")
	options+=(--timeout 20s --quiet --format json)
	case $3 in
	*_lat) options+=(--workload latency) ;;
	*) options+=(--workload throughput --nice "$nicely" "${queues[@]}") ;;
	esac
	case $2 in
	siw*) address=10.78.0.1 ;;
	*) options+=(-x 1) ;;
	esac
}

# together REPEAT DEVICE TEST SIZE COUNT: a latency of both tools, which both run from here
# to the end, but never at the same time: one is stopped (SIGSTOP, both its sides) while
# the other has its turn. The host's pace changes between two probes; it hits both tools'
# medians alike where turns are shorter than its moods. Means and tails have the stops in
# them, and are nobody's.
#
# Reads over RXE are taken with ksoftirqd under SCHED_BATCH. Each of them wakes it, though
# the posting call has done all the work before it gets the CPU, and where it does preempt
# who reads, a read takes 23 us instead of 16. In turns that is three reads of five, by its
# context switches, presumably since CFS lets it only some milliseconds after a process was
# continued, and p50 lay where one kind ends and the other begins. Under SCHED_BATCH it does
# not preempt, whichever tool runs; without turns, and without that, four of five reads take
# 23 us with both tools.
turn=0.03 # seconds; arbitrary: a thousand round trips, so that the first ones are few
together() {
	echo "repeat $1: $2 $3, $4 bytes, in turns of $turn s"
	[[ $2$3 != rxe*read_lat ]] || ksoftirqd --batch
	retried together_once "$@"
	[[ $2$3 != rxe*read_lat ]] || ksoftirqd --other
}

# ksoftirqd POLICY: the scheduling policy (chrt(1)) of the threads of that name.
ksoftirqd() {
	local d
	if [[ -z ${softirqds-} ]]; then
		for d in /proc/[0-9]*; do
			[[ $(<"$d/comm") != ksoftirqd/* ]] || softirqds+=" ${d#/proc/}"
		done 2>/dev/null
	fi
	for d in ${softirqds:?no ksoftirqd found}; do chrt "$1" --pid 0 "$d" || return; done
}

together_once() {
	local theirs=$raw/$1.perftest.$2.$3.$4 mine=$raw/$1.rdmaperf.$2.$3.$4 options address a b now code_a=0 code_b=0
	rdmaperf_server || return
	perftest_options "$@"
	serve /tmp/server.log lab 18515 taskset -c 1 "ib_$3" "${options[@]}" || {
		ended "$theirs" 1 /tmp/server.log
		return
	}
	taskset -c 0 "ib_$3" "${options[@]}" "$address" >"$theirs" 2>/tmp/theirs.log &
	a=$!
	connected "$2" "$a" ':4853 '
	kill -STOP "$a" "$server"
	rdmaperf_options "$@"
	"${on[@]}" 0 rdmaperf run "$address" "${options[@]}" >"$mine" 2>/tmp/mine.log &
	b=$!
	connected "$2" "$b"
	now=ours
	local until=$((SECONDS + limit))
	while ((SECONDS < until)); do
		read -rt "$turn" <>"$never"
		if ! kill -0 "$a" 2>/dev/null || ! kill -0 "$b" 2>/dev/null; then break; fi
		if [[ $now == ours ]]; then
			kill -STOP "$b" "$ours" 2>/dev/null
			kill -CONT "$server" "$a" 2>/dev/null
			now=theirs
		else
			kill -STOP "$a" "$server" 2>/dev/null # the server may be done already
			kill -CONT "$ours" "$b" 2>/dev/null
			now=ours
		fi
	done
	kill -CONT "$ours" "$b" "$server" "$a" 2>/dev/null
	ends "$a" "$limit" || code_a=$?
	ends "$b" "$limit" || code_b=$?
	if ((code_a)); then stops "$server"; else ends "$server" 10 || code_a=$?; fi
	ended "$theirs" "$code_a" /tmp/theirs.log
	ended "$mine" "$code_b" /tmp/mine.log
}

# connected DEVICE PID [PORT]: waits until a client over siw has its connection, the one
# to that port (as /proc/net/tcp has it) or to one that has no other use here. A connection
# that ends before siw has accepted it makes siw take its listener for what ended
# (siw_cm_llp_state_change, the new socket still has the listener's endpoint; seen with a TCP
# client that hangs up, Linux 6.1.192): it refuses what comes next, and warns of a reference
# too many when the listener is destroyed. A connect that is stopped presumably leaves such
# a connection behind, as the signal ends it and it is begun again. The tenth of a second for
# what follows in its handshake is arbitrary, and so is the limit of five.
connected() {
	[[ $1 == siw* ]] || return 0
	local n row ends
	for ((n = 0; n < 500; n++)); do
		ends=0
		while read -r row; do
			[[ $row =~ 01004E0A:.*01004E0A:[0-9A-F]+\ 01\  ]] || continue
			if [[ -n ${3-} ]]; then
				[[ $row != *"$3"* ]] || ((++ends))
			elif [[ $row != *:4853\ * && $row != *:48A8\ * ]]; then
				((++ends))
			fi
		done </proc/net/tcp
		if ((ends >= 2)) || ! kill -0 "$2" 2>/dev/null; then break; fi
		read -rt 0.01 <>"$never"
	done
	read -rt 0.1 <>"$never"
}

# A pipe that nobody writes: a read with a time limit is a sleep without a process.
never=/tmp/never
[[ -p $never ]] || mkfifo "$never"
