#!/usr/bin/env bash
# rdmaperf as perftest: the same ten command lines for both, as server and as client. What one
# prints is what the other prints once figures are masked; beside that exit codes, lists of
# samples, the one figure of --output, names and decimals in JSON.
# Then -T and --tclass: the octet that packets are marked with, seen on a wire.
#
#   ci/lab/run ci/lab/perftest-output.sh [output|marks]
#
# What both printed is in the out directory, and so are the packets.
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
limit=60 port=18700 part=${1:-}

# pair NAME DEVICE TOOL OPTION…: both tools in both roles. @ in an option is the name that
# belongs to the tool at work, for files.
pair() {
	local name=$1 device=$2 tool=$3 who code address=10.77.0.1 as=(-x 1 -F) command
	shift 3
	[[ $device != siw* ]] || address=10.78.0.1 as=(-R -F)
	at=$OUT/$device.$tool.$name
	for who in theirs ours; do
		command=("$tool")
		[[ $who != ours ]] || command=(rdmaperf perftest "$tool")
		port=$((port + 1)) code=0
		command+=(-d "$device" -p "$port" "${as[@]}")
		serve "$at.$who.server" lab "$port" timeout "$limit" "${command[@]}" "${@/@/$at.$who.server}" || return
		timeout "$limit" "${command[@]}" "${@/@/$at.$who}" "$address" >"$at.$who.client" 2>"$at.$who.log" || code=$?
		ends "$server" 10 || { echo "  $who: the server's exit code is $?" && return 1; }
		((code == 0)) || { echo "  $who: exit code $code: $(tail -n 1 "$at.$who.log")" && return 1; }
	done
}

# shape FILE: everything printed, with N for a figure and a list of samples as one: perftest leaves the longest out of
# some. Left out are lines that one side alone can have: the stack; addresses of queue pairs; how rdma_cm is waited for; and
# what perftest 4.5, which Debian 12 has, prints otherwise than 6.29 (a line of dashes in front of reads and atomics, no warning of a peak that is not measured, how it posts, CQE polls, inline defaults, that rdma_cm exchanges, the GID that
# rdma_cm took). 4.5 writes MB/sec for MiB/sec, and a guest's clock makes infinities of its figures.
shape() {
	sed -E 's/[[:space:]]+/ /g; s/ $//; s,\[MB/sec],[MiB/sec],g' "$1" |
		grep -vE '^ (Stack|PCIe relax order|ibv_wr\* API|CQE Poll Batch|Max inline data|Data ex. method|Waiting for client rdma_cm|WARNING: BW peak|Please run the same) ?|^ (local|remote) address|^ GID:|^$|^Device not recognized' |
		if [[ $device == siw* ]]; then grep -vE '^ GID index'; else cat; fi |
		sed -E '/^ ?#/!s/-?\b[0-9]+(\.[0-9]+)?\b|-?nan|\binf\b/N/g; s/^ Outstand reads : .*/ Outstand reads : N/' | uniq | sed -E '1{/^-+$/d}'
}

# alike NAME DEVICE TOOL OPTION…: what both sides print has one shape. Samples are the client's alone.
alike() {
	local side failed=0 sides=(client server)
	[[ $1 != samples ]] || sides=(client)
	pair "$@" || return
	for side in "${sides[@]}"; do
		shape "$at.theirs.$side" >/tmp/theirs
		shape "$at.ours.$side" >/tmp/ours
		if ! diff /tmp/theirs /tmp/ours >"$at.$side.diff"; then
			echo "  $side: < perftest, > rdmaperf" && head -n 12 "$at.$side.diff" | sed 's/^/  /'
			failed=1
		fi
	done
	(($(wc -l </tmp/ours) >= 2)) && grep -q 'Waiting for client' "$at.ours.server" && return $failed
}

# one NAME DEVICE TOOL OPTION…: a figure and nothing else.
one() {
	local who
	pair "$@" || return
	for who in theirs ours; do
		[[ $(<"$at.$who.client") =~ ^[0-9]+\.[0-9]+$ ]] || { head -n 5 "$at.$who.client" && return 1; }
	done
}

names() { grep -oE '"?[A-Za-z0-9_%. ]+"? *: ' "$1" | tr -d ' ":' | sort -u; }

# json NAME DEVICE TOOL OPTION…: the client's file has every name of theirs, with as many decimals.
json() {
	local missing
	pair "$@" --out_json --out_json_file=@.json || return
	names "$at.theirs.json" >/tmp/theirs
	names "$at.ours.json" >/tmp/ours
	# The GID that rdma_cm takes is the kernel's.
	missing=$(grep -vxF -f /tmp/ours /tmp/theirs | grep -vxE "none$([[ $2 != siw* ]] || echo '|GID_index')")
	[[ -s /tmp/theirs && -z $missing ]] || { echo "  not in ours: $missing" && return 1; }
	grep -q "\"Device\": \"$2\"" "$at.ours.json" || { echo "  Device is not $2" && return 1; }
	decimals "$at.theirs.json" >/tmp/theirs
	decimals "$at.ours.json" >/tmp/ours
	diff /tmp/theirs /tmp/ours
}

# decimals FILE: which figures have how many.
decimals() { sed -nE 's/^ *"?(BW_[a-z]+|MsgRate|t_[a-z]+|percentile_[0-9.]+)"?: ?-?([0-9]+\.|inf|-?nan)([0-9]*),?$/\1 \3/p' "$1" | sed 's/[0-9]$/N/; :a; s/[0-9]\(N*\)$/N\1/; ta' | sort; }

# fails TOOL OPTION…: both end with exit code 1.
fails() {
	local command code
	for command in "$1" "rdmaperf perftest $1"; do
		code=0
		# shellcheck disable=SC2086 # words are wanted
		timeout "$limit" $command -d rxe0 -F -p 18699 "${@:2}" >/tmp/fails 2>&1 || code=$?
		((code == 1)) || { echo "  $command: exit code $code: $(tail -n 1 /tmp/fails)" && return 1; }
	done
}

output() {
	local device
	for device in $LAB_DEVICES; do
		say "$device: what both print"
		check "$device: latency" alike plain "$device" ib_send_lat -s 64 -n 100
		check "$device: bandwidth" alike plain "$device" ib_write_bw -s 4096 -n 200
		check "$device: bandwidth in Gb/s, reads" alike gbits "$device" ib_read_bw -s 65536 -n 50 --report_gbits
		check "$device: a duration" alike timed "$device" ib_write_lat -s 64 -D 2
		check "$device: all sizes" alike all "$device" ib_read_lat -a -n 10
		check "$device: samples and their order" alike samples "$device" ib_write_lat -s 64 -n 50 -H -U
		check "$device: both directions" alike both "$device" ib_send_bw -s 4096 -n 200 -b
		check "$device: CPU" alike cpu "$device" ib_write_bw -s 4096 -D 2 --cpu_util
		check "$device: bandwidth alone" one bandwidth "$device" ib_write_bw -s 4096 -n 200 --output=bandwidth
		check "$device: message rate alone" one rate "$device" ib_write_bw -s 64 -n 200 --output=message_rate
		check "$device: latency alone" one latency "$device" ib_send_lat -s 64 -n 100 --output=latency
		check "$device: JSON" json json "$device" ib_write_bw -s 4096 -n 200
		check "$device: JSON of latency" json json "$device" ib_send_lat -s 64 -n 100
	done
	check "rxe0: no peer is exit code 1" fails ib_write_bw 10.77.0.1
	check "rxe0: a link of no kind is exit code 1" fails ib_write_bw --force-link=Token 10.77.0.1
	check "rxe0: atomics" alike atomic rxe0 ib_atomic_lat -n 100 -A FETCH_AND_ADD
}

# second: another RXE whose packets to rxe0's end cross a wire. Both ends are this
# host's, which would keep them at home, so the routes of both interfaces come before the
# local ones, and a packet from the own address is taken (ip-sysctl, accept_local).
second() {
	local i
	ip link add w0 type veth peer name w1 && ip addr add 10.79.0.1/24 dev w0 && ip addr add 10.79.0.2/24 dev w1 && ip link set w0 up && ip link set w1 up || return
	for i in all w0 w1; do
		echo 1 >"/proc/sys/net/ipv4/conf/$i/accept_local" && echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter" || return
	done
	ip rule add pref 10 lookup local && ip rule add pref 1 oif w0 to 10.79.0.2 lookup 101 && ip rule add pref 2 oif w1 to 10.79.0.1 lookup 102 && ip rule del pref 0 lookup local || return
	ip route add 10.79.0.2 dev w0 table 101 && ip route add 10.79.0.1 dev w1 table 102 || return
	ip neigh replace 10.79.0.2 lladdr "$(</sys/class/net/w1/address)" dev w0 nud permanent && ip neigh replace 10.79.0.1 lladdr "$(</sys/class/net/w0/address)" dev w1 nud permanent || return
	rdma link add rxew0 type rxe netdev w0 && rdma link add rxew1 type rxe netdev w1
}

# marked NAME INTERFACE FILTER TOS COMMAND…: all packets of the run have that octet.
marked() {
	local file=$OUT/marks.$1 interface=$2 filter=$3 want dump
	want=$(printf '0x%x' "$4")
	shift 4
	tcpdump -Z root -i "$interface" -w "$file.pcap" -s 128 "$filter" >/dev/null 2>"$file.tcpdump" &
	dump=$!
	sleep 1
	"$@" >"$file.txt" 2>&1 || { tail -n 3 "$file.txt" && kill "$dump" && return 1; }
	sleep 1
	kill -INT "$dump" && wait "$dump"
	tcpdump -Z root -v -n -r "$file.pcap" 2>/dev/null | grep -oE 'tos 0x[0-9a-f]+' | sort | uniq -c | tee "$file.counts" | sed 's/^/  /'
	grep -qE "tos $want\$" "$file.counts" && (($(wc -l <"$file.counts") == 1))
}

# over CLIENT SERVER ADDRESS COMMAND…: a tool of perftest as both sides, on two devices.
over() {
	local client=$1 far=$2 address=$3
	shift 3
	port=$((port + 1))
	serve "$OUT/marks.server" lab "$port" timeout "$limit" "$@" -d "$far" -p "$port" || return
	timeout "$limit" "$@" -d "$client" -p "$port" "$address" && ends "$server" 10
}

marks() {
	say "what -T marks"
	check "a second RXE, over a wire" second || return
	check "RoCE v2, perftest" marked theirs w0 'udp port 4791' 104 over rxew0 rxew1 10.79.0.2 ib_write_bw -x 1 -F -n 50 -s 4096 --tclass 104
	check "RoCE v2, traffic class" marked tclass w0 'udp port 4791' 104 over rxew0 rxew1 10.79.0.2 rdmaperf perftest ib_write_bw -x 1 -F -n 50 -s 4096 --tclass 104
	check "RoCE v2, beside a service level" marked sl w0 'udp port 4791' 8 over rxew0 rxew1 10.79.0.2 rdmaperf perftest ib_send_lat -x 1 -F -n 50 -T 8 -S 3
	check "RoCE v2, unmarked" marked none w0 'udp port 4791' 0 over rxew0 rxew1 10.79.0.2 rdmaperf perftest ib_send_lat -x 1 -F -n 50
	serve "$OUT/marks.serve" lab 18600 rdmaperf serve -p 18600 || return
	local ours=$server stack
	for stack in tcp iwarp; do
		check "$stack" marked "$stack" s0 'tcp and not port 18600 and tcp[tcpflags] & tcp-push != 0' 104 peer timeout "$limit" rdmaperf run 10.78.0.1 -p 18600 --transport "$stack" --workload latency --op write -n 50 -T 104 --no-save --quiet
	done
	check "the server ends" stops "$ours"
}

[[ $part == marks ]] || output
[[ $part == output ]] || marks
verdict "perftest's output"
