#!/usr/bin/env bash
# Wire interop: librdmacm's rping over the kernel's siw against our user-space
# iWARP, each in a namespace of its own with a real interface between them; then
# rdmaperf at both ends, with verbs over siw at one. Every byte is compared at the
# client, and the server must have seen every ping.
#
#   ci/lab/run ci/lab/rping-interop.sh [ITERATIONS]
#
# Logs of every case are in the out directory; wire.pcap only after a failure.
# lab devices: siw0
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
many=${1:-1000} few=50 port=7200

# shellcheck source=ci/lab/guest/rping.sh
. guest/rping.sh

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
