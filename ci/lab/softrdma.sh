#!/usr/bin/env bash
# SoftRDMA's schemes with a kernel's iWARP in the table: user-space iWARP on lwIP through
# AF_XDP on a veth against siw on the kernel's TCP at its other end, by rping both ways;
# the wire suite against it; and latency and throughput of kernel iWARP, and of user-space
# iWARP on lwIP's raw and Sequential API and on kernel sockets. In translated code only
# ratios of the figures mean something, and they are shown and not judged.
#
#   ci/lab/run ci/lab/softrdma.sh [ITERATIONS]
#
# lab tags: lwip
# lab needs: liblwip.so.0
# lab timeout: 900
# lab devices: siw0
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
# shellcheck source=ci/lab/guest/rping.sh
. guest/rping.sh
many=${1:-1000} few=50 port=7300
xdp='iwarp(stack=raw,link=xdp)'

# wire: the cases of the wire suite, by a scripted peer on kernel sockets.
wire() {
	local code=0
	pinged "$OUT/wire.server" peer -a "$there" -p "$port" --transport "$xdp" || return
	timeout 300 rdmaperf conform --wire "$there:$port" --case-timeout 30s >"$OUT/wire.txt" 2>&1 || code=$?
	stops "$server" || { echo "  rdmaperf rping -s ended with $?"; code=1; }
	tail -n 6 "$OUT/wire.txt"
	return "$code"
}

schemes() {
	timeout 400 rdmaperf run --workload softrdma --transport 'verbs:siw0,iwarp(stack=raw,link=shm),iwarp(stack=sequential,link=shm),iwarp' \
		-s 64,1000,10000,100000 -D 1s --quiet --json "$OUT/schemes.json" >"$OUT/schemes.txt" 2>&1 || { tail -n 5 "$OUT/schemes.txt"; return 1; }
	sed -n '/^side by side/,/^verdict/p' "$OUT/schemes.txt"
}

say "siw server, iWARP on lwIP as client ($(uname -r))"
next "$many pings of 64 bytes" kernel_server "$xdp" "$many" 64
next "$few pings of 65000 bytes" kernel_server "$xdp" "$few" 65000
next "$few pings without CRC" kernel_server "iwarp(nocrc,${xdp#*(}" "$few" 64
next "$few pings, peer-to-peer start" kernel_server "iwarp(p2p,${xdp#*(}" "$few" 64
say "iWARP on lwIP as server, siw client"
next "$many pings of 64 bytes" kernel_client "$xdp" "$many" 64
next "$few pings of 65000 bytes" kernel_client "$xdp" "$few" 65000
next "$few pings, three clients at once" kernel_client "$xdp" "$few" 4096 3
say "rdmaperf at both ends, verbs over siw at one"
next "verbs server, client on lwIP, $few pings of 65000 bytes" ours lab verbs:siw0 "$xdp" "$few" 65000
next "server on lwIP, verbs client, $few pings of 65000 bytes" ours peer "$xdp" verbs:siw0 "$few" 65000
say "the wire suite against iWARP on lwIP"
next "its cases" wire
say "SoftRDMA's schemes beside kernel iWARP"
next "latency and throughput, every message compared" schemes
verdict softrdma
