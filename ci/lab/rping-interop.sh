#!/usr/bin/env bash
# Wire interop: librdmacm's rping over the kernel's siw against our user-space
# iWARP, each in a namespace of its own with a real interface between them; then
# rdmaperf at both ends, with verbs over siw at one. Every byte is compared at the
# client, and the server must have seen every ping.
#
#   ci/lab/run ci/lab/rping-interop.sh [ITERATIONS]
#
# Logs of every case are in the out directory; wire.pcap only after a failure.
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
many=${1:-1000} few=50 port=7200

# pings LOG COUNT: the log shows ping 0 to COUNT-1, each once. rping's threads
# write side by side and cut each other's lines, so the pings are looked for anywhere.
pings() {
	local seen
	seen=$(grep -aoE 'rdma-ping-[0-9]+:' "$1" | sort -u | wc -l)
	((seen == $2)) || { echo "  $1: $seen different pings, want $2"; return 1; }
}

# rping_ended CODE LOG: rping did its job. At its end it closes the event channel that
# its own thread still reads; when the thread notices before the process is gone, it
# exits with 255 and this message.
rping_ended() {
	(($1 == 0)) && return
	(($1 == 255)) && grep -q 'DISCONNECT EVENT' "$2" && grep -q '^rdma_get_cm_event: Bad file descriptor' "$2" && return
	echo "  rping ended with $1:"
	grep -v 'ping data' "$2" | tail -n 5
	return 1
}

# kernel_server STACK COUNT SIZE: rping -s over siw0, our client.
kernel_server() {
	local log=$OUT/$port code=0
	serve "$log.server" lab "$port" rping -s -a "$here" -p "$port" -S "$3" -v || return
	peer timeout 120 rdmaperf rping -c -a "$here" -p "$port" --transport "$1" -C "$2" -S "$3" -V >"$log.client" 2>&1 || code=$?
	ends "$server" 10
	rping_ended $? "$log.server" || code=1
	((code == 0)) || { tail -n 3 "$log.client"; return "$code"; }
	pings "$log.server" "$2"
}

# kernel_client STACK COUNT SIZE [CLIENTS]: our server, rping -c over siw0.
kernel_client() {
	local log=$OUT/$port code=0 n clients=()
	serve "$log.server" peer "$port" rdmaperf rping -s -a "$there" -p "$port" --transport "$1" -v || return
	for ((n = 0; n < ${4:-1}; n++)); do
		timeout 120 rping -c -a "$there" -p "$port" -C "$2" -S "$3" -V -v >"$log.client.$n" 2>&1 &
		clients+=($!)
	done
	for ((n = 0; n < ${#clients[@]}; n++)); do
		wait "${clients[n]}"
		rping_ended $? "$log.client.$n" || code=1
		pings "$log.client.$n" "$2" || code=1
	done
	stops "$server" || { echo "  rdmaperf rping -s ended with $?"; code=1; }
	((code == 0)) || { tail -n 3 "$log.server"; return "$code"; }
	pings "$log.server" "$2"
}

# ours SERVER-NAMESPACE SERVER-STACK CLIENT-STACK COUNT SIZE: rdmaperf's rping at both
# ends, one of them over siw0 by verbs.
ours() {
	local log=$OUT/$port code=0 to=$there from=()
	if [[ $1 == lab ]]; then to=$here from=(ip netns exec peer); fi
	serve "$log.server" "$1" "$port" rdmaperf rping -s -a "$to" -p "$port" --transport "$2" -v || return
	"${from[@]}" timeout 120 rdmaperf rping -c -a "$to" -p "$port" --transport "$3" -C "$4" -S "$5" -V >"$log.client" 2>&1 || code=$?
	stops "$server" || { echo "  rdmaperf rping -s ended with $?"; code=1; }
	((code == 0)) || { tail -n 3 "$log.client" "$log.server"; return "$code"; }
	pings "$log.server" "$4"
}

# refused STACK: the kernel's side turns us down, and our client says so in one line.
refused() {
	local log=$OUT/$port code=0
	serve "$log.server" lab "$port" rping -s -a "$here" -p "$port" || return
	peer timeout 30 rdmaperf rping -c -a "$here" -p "$port" --transport "$1" -C 1 >"$log.client" 2>&1 || code=$?
	kill "$server" 2>/dev/null
	wait "$server"
	sed 's/^/  /' "$log.client"
	if ((code != 5)) || (($(wc -l <"$log.client") != 1)); then
		echo "  client: exit code $code, want 5 and one line"
		return 1
	fi
}

next() { # NAME COMMAND…
	check "$@"
	port=$((port + 1))
}

tcpdump -Z root -i s0 -s 256 -w /tmp/wire.pcap >/dev/null 2>&1 &
dump=$!
say "siw server, user-space client ($(uname -r))"
next "$many pings of 64 bytes" kernel_server iwarp "$many" 64
next "$few pings of 65000 bytes" kernel_server iwarp "$few" 65000
next "$few pings without CRC" kernel_server 'iwarp(nocrc)' "$few" 64
next "$few pings, peer-to-peer start" kernel_server 'iwarp(p2p)' "$few" 64
next "siw has no markers and refuses them" refused 'iwarp(markers)'
# siw accepts revision 1 with ORD 0 (its debug log says so), and rping's server reads.
next "siw allows itself no read with MPA revision 1" refused 'iwarp(rev1)'
say "user-space server, siw client"
next "$many pings of 64 bytes" kernel_client iwarp "$many" 64
next "$few pings of 65000 bytes" kernel_client iwarp "$few" 65000
next "$few pings without CRC" kernel_client 'iwarp(nocrc)' "$few" 64
next "$few pings, three clients at once" kernel_client iwarp "$few" 4096 3
say "rdmaperf at both ends, verbs over siw at one"
next "verbs server, user-space client, $few pings of 64 bytes" ours lab verbs:siw0 iwarp "$few" 64
next "verbs server, user-space client, $few pings of 65000 bytes" ours lab verbs:siw0 iwarp "$few" 65000
next "user-space server, verbs client, $few pings of 64 bytes" ours peer iwarp verbs:siw0 "$few" 64
next "user-space server, verbs client, $few pings of 65000 bytes" ours peer iwarp verbs:siw0 "$few" 65000
kill "$dump"
wait "$dump" 2>/dev/null
if ((failed)); then cp /tmp/wire.pcap "$OUT/"; fi
verdict rping-interop
