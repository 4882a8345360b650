# shellcheck shell=bash
# For scripts in the guest: servers, deadlines and a count of what passed.

# shellcheck disable=SC2034 # the scripts use them
here=10.78.0.1 there=10.78.0.2 # siw0's interface, and the other end of its wire
server= # the id of what `serve` started last
passed=0 failed=0
say() { echo "== $*"; }
peer() { ip netns exec peer "$@"; }

# serve LOG NETNS PORT COMMAND…: starts a server and waits until its port listens.
# The namespace is "lab" or "peer"; $server is the server's id.
serve() {
	local log=$1 ns=$2 port n
	port=$(printf ':%04X' "$3")
	shift 3
	if [[ $ns == peer ]]; then set -- ip netns exec peer "$@"; fi
	"$@" >"$log" 2>&1 &
	server=$!
	for ((n = 0; n < 150; n++)); do
		if listens "$ns" "$port"; then return; fi
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	echo "  no server on port $((16#${port#:})): $*"
	tail -n 5 "$log"
	return 1
}

listens() {
	local tables=(cat /proc/net/tcp /proc/net/tcp6)
	if [[ $1 == peer ]]; then tables=(ip netns exec peer "${tables[@]}"); fi
	"${tables[@]}" | grep -E "$2 [0-9A-F]+:0000 0A" >/dev/null # -q leaves a long table's writer with SIGPIPE
}

# ends PID SECONDS: waits for a process that should end by itself; returns its exit
# code, or ends it and returns 124.
ends() {
	local n
	for ((n = 0; n < $2 * 10; n++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	if kill -TERM "$1" 2>/dev/null && [[ $n -ge $(($2 * 10)) ]]; then
		wait "$1"
		return 124
	fi
	wait "$1"
}

# stops PID: interrupts a server as Ctrl-C does, and returns its exit code.
stops() {
	kill -INT "$1" 2>/dev/null
	ends "$1" 10
}

# check NAME COMMAND…: counts a case and says how it went.
check() {
	local name=$1 started=$EPOCHREALTIME code=0 took
	shift
	"$@" || code=$?
	took=$(((${EPOCHREALTIME/./} - ${started/./}) / 1000))
	if ((code == 0)); then
		passed=$((passed + 1))
		printf 'pass  %6d ms  %s\n' "$took" "$name"
	else
		failed=$((failed + 1))
		printf 'FAIL  %6d ms  %s (exit code %d)\n' "$took" "$name" "$code"
	fi
}

# verdict: the last line, and the script's exit code.
verdict() {
	echo "$1: $passed passed, $failed failed"
	((failed == 0 && passed > 0))
}
