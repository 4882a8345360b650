# shellcheck shell=bash
# rping.sh: librdmacm's rping over siw against rdmaperf's, both ways. For scripts in the
# guest that have sourced lib.sh and set port, which next counts up.
# shellcheck disable=SC2154 # lib.sh sets here and there

# pinged LOG NETNS OPTION…: starts rdmaperf's server and waits until it says that it
# listens, as a TCP/IP stack of its own is in no table of the kernel.
pinged() {
	local log=$1 ns=$2 n
	shift 2
	set -- rdmaperf rping -s "$@"
	if [[ $ns == peer ]]; then set -- ip netns exec peer "$@"; fi
	: >"$log"
	"$@" >"$log" 2>&1 &
	server=$!
	for ((n = 0; n < 150; n++)); do
		if grep -q 'rping server listens' "$log"; then return; fi
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	echo "  no server: $*"
	tail -n 5 "$log"
	return 1
}

# pings LOG COUNT: the log shows ping 0 to COUNT-1, each once. rping's threads
# write side by side and cut each other's lines, so the pings are looked for anywhere, and
# what its other thread says is taken out first, with the end of its line: by one line of
# all, as the guest's sed knows no -z.
pings() {
	local seen
	seen=$(tr '\n' '\1' <"$1" | sed -E $'s/(client|server) DISCONNECT EVENT[.]*\001//g' | tr '\1' '\n' | grep -aoE 'rdma-ping-[0-9]+:' | sort -u | wc -l)
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
	pinged "$log.server" peer -a "$there" -p "$port" --transport "$1" -v || return
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
	pinged "$log.server" "$1" -a "$to" -p "$port" --transport "$2" -v || return
	"${from[@]}" timeout 120 rdmaperf rping -c -a "$to" -p "$port" --transport "$3" -C "$4" -S "$5" -V >"$log.client" 2>&1 || code=$?
	stops "$server" || { echo "  rdmaperf rping -s ended with $?"; code=1; }
	((code == 0)) || { tail -n 3 "$log.client" "$log.server"; return "$code"; }
	pings "$log.server" "$4"
}

next() { # NAME COMMAND…
	check "$@"
	port=$((port + 1))
}
