# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # guest/lib.sh sets server, the scripts use ours
# Measures one point with perftest and with rdmaperf, one right after the other: same
# device, same CPUs, same depth, nothing inline, busy polling. perftest checks no data, so
# rdmaperf does not either. Raw output goes to $raw in the names that ratiotable reads.

raw=$OUT/raw
limit=60 # seconds for one probe
reads=128 # outstanding reads: rdmaperf takes as many as the queue is deep and the device can
mkdir -p "$raw"

# on: all of a program's threads on one CPU, as perftest's one thread is. A thread of the
# other side's program would empty this CPU's tables of addresses. The Go runtime still
# thinks of two: the control connection must not wait for the polling loop.
on=(env GOMAXPROCS=2 taskset -c)

# rdmaperf_server: the far side of rdmaperf's points; $ours is its id.
rdmaperf_server() {
	serve "$OUT/serve.log" lab 18600 "${on[@]}" 1 rdmaperf serve -p 18600 || return
	ours=$server
}

# point REPEAT DEVICE TEST SIZE COUNT: both tools, in an order that changes with the repeat.
point() {
	echo "repeat $1: $2 $3, $4 bytes"
	if (($1 % 2)); then
		by_perftest "$@"
		by_rdmaperf "$@"
	else
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

# by_perftest: again where perftest could not find how fast its clock runs, because
# something came between two readings of it (then it prints zeros or inf), and where its
# client died of a signal, as it does now and then in librdmacm when the first connection
# is refused.
by_perftest() {
	local try
	for try in 1 2 3; do
		perftest_once "$@"
		if grep -q '^Correlation coefficient' /tmp/client.log; then
			echo "  perftest did not find its clock's rate, try $try"
		elif grep -q '^died' "$raw/$1.perftest.$2.$3.$4.failed" 2>/dev/null; then
			echo "  perftest's client died, try $try"
			((try == 3)) || rm -f "$raw/$1.perftest.$2.$3.$4.failed"
		else
			return 0
		fi
	done
}

perftest_once() {
	local file=$raw/$1.perftest.$2.$3.$4 test=$3 code=0 address=10.77.0.1
	queues "$3" "$4"
	local options=(-d "$2" -F -s "$4" -n "$5" "${queues[@]}")
	case $test in
	atomic_lat) options=(-d "$2" -F -n "$5" -A FETCH_AND_ADD) ;;
	read_*) options+=(-o "$reads") ;;
	*) options+=(-I 0) ;;
	esac
	case $2 in
	siw*) options+=(-R) address=10.78.0.1 ;;
	*) options+=(-x 1) ;;
	esac
	if serve /tmp/server.log lab 18515 timeout "$limit" taskset -c 1 "ib_$test" "${options[@]}"; then
		timeout "$limit" taskset -c 0 "ib_$test" "${options[@]}" "$address" >"$file" 2>/tmp/client.log || code=$?
		if ((code == 139)); then
			stops "$server"
			echo "died: segmentation fault" >"$file.failed"
			rm -f "$file"
			return
		fi
		ends "$server" 10 || code=$?
	else
		code=$?
	fi
	((code == 0)) && return
	mv "$file" "$file.failed" 2>/dev/null
	echo "exit code $code: $(tail -n 1 /tmp/client.log)" >"$file.failed"
}

by_rdmaperf() {
	local file=$raw/$1.rdmaperf.$2.$3.$4 code=0 op=${3%_*} address=10.77.0.1
	queues "$3" "$4"
	local options=(-p 18600 --transport "verbs:$2" --op "${op/atomic/fetch_add}" -s "$4" -n "$5" --pin '0,1' --no-verify)
	options+=(--timeout 20s --quiet --format json)
	case $3 in
	*_lat) options+=(--workload latency) ;;
	*) options+=(--workload throughput "${queues[@]}") ;;
	esac
	case $2 in
	siw*) address=10.78.0.1 ;;
	*) options+=(-x 1) ;;
	esac
	timeout "$limit" "${on[@]}" 0 rdmaperf run "$address" "${options[@]}" >"$file" 2>/tmp/client.log || code=$?
	((code == 0)) && return
	rm -f "$file"
	echo "exit code $code: $(tail -n 1 /tmp/client.log)" >"$file.failed"
}
