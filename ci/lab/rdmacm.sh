#!/usr/bin/env bash
# librdmacm's own programs over the kernel's soft devices, each to itself: rcopy's file by
# its checksum, rstream's streams compared, ucmatose's connections and messages, and those
# that it moves to another event channel.
#
#   ci/lab/run ci/lab/rdmacm.sh
#
# lab needs: rcopy rstream ucmatose
#
# Logs are in the out directory.
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
port=7500

# both DEVICE SERVER… -- CLIENT…: the client meets a server that has just started, and both
# end well. A server of rdma_cm is in no table of sockets, so the client tries again.
both() {
	local name=$OUT/$port.$1 n code=1 first=()
	shift
	while [[ $1 != -- ]]; do first+=("$1") && shift; done
	shift
	timeout 60 "${first[@]}" >"$name.server" 2>&1 &
	server=$!
	for ((n = 0; n < 30; n++)); do
		sleep 0.5
		code=0
		timeout 60 "$@" >"$name.client" 2>&1 || code=$?
		((code)) || break
		kill -0 "$server" 2>/dev/null || break
	done
	if ((code)); then tail -n 5 "$name.server" "$name.client"; fi
	return "$code"
}

copied() {
	rm -f /tmp/copy
	head -c 3000017 /dev/urandom >/tmp/original
	both "$1" rcopy -p "$port" -- rcopy /tmp/original "$2:/tmp/copy" -p "$port" || return
	kill "$server" 2>/dev/null # it serves for ever
	wait "$server" 2>/dev/null
	[[ $(md5sum </tmp/original) == "$(md5sum </tmp/copy)" ]]
}

# ended: the server has done what the client has, and says so.
ended() {
	both "$@" && ends "$server" 20
}

for pair in rxe0:10.77.0.1 siw0:"$here"; do
	dev=${pair%%:*} at=${pair#*:}
	[[ " $LAB_DEVICES " == *" $dev "* ]] || continue
	say "$dev at $at ($(uname -r))"
	check "$dev: rcopy, 3 MB, by md5" copied "$dev" "$at"
	port=$((port + 1))
	check "$dev: rstream, 13 MB in pieces of 64 KiB, compared" ended "$dev" rstream -b "$at" -p "$port" -S 65536 -I 10 -C 20 -T v -- rstream -s "$at" -p "$port" -S 65536 -I 10 -C 20 -T v
	port=$((port + 1))
	check "$dev: ucmatose, 10 connections, 10 messages each" ended "$dev" ucmatose -b "$at" -p "$port" -c 10 -C 10 -- ucmatose -s "$at" -p "$port" -c 10 -C 10
	port=$((port + 1))
	check "$dev: ucmatose, moved to another channel" ended "$dev" ucmatose -b "$at" -p "$port" -c 4 -C 10 -m -- ucmatose -s "$at" -p "$port" -c 4 -C 10 -m
	port=$((port + 1))
done
verdict rdmacm
