#!/usr/bin/env bash
# What users get wrong with RDMA devices: each mistake has one line that names the
# operation, the object, the cause and a way out, and its exit code. Runs inside
# the lab's guest, which it breaks in many ways.
#
#   ci/lab/run ci/lab/bad-input.sh
#
# lab needs: setpriv timeout
# lab devices: siw0
set -uo pipefail

readonly ok=0 failed=1 usage=2 peer=5 not_run=77
bad=0 cases=0

# check CODE PATTERN COMMAND…: COMMAND ends with CODE and one line on stderr that
# matches PATTERN (extended regular expression); with CODE 0 what it says is free.
check() {
	local code=$1 pattern=$2 got lines
	shift 2
	((cases++))
	timeout 120 "$@" >"$OUT/out" 2>"$OUT/err" </dev/null
	got=$?
	lines=$(wc -l <"$OUT/err")
	if ((got != code)) || { ((code)) && { ((lines != 1)) || ! grep -qE -- "$pattern" "$OUT/err"; }; }; then
		((bad++))
		printf 'WRONG  %s\n  exit %d, want %d; %d lines on stderr, want one with: %s\n' "$*" "$got" "$code" "$lines" "$pattern"
		sed 's/^/  | /' "$OUT/err"
	else
		printf 'ok %3d %s\n' "$got" "$(head -c 400 "$OUT/err")"
	fi
}

# short is the smallest run there is. It saves nothing: one of its users may write nowhere.
short=(rdmaperf run --quiet --no-save --workload latency --op write -n 20 --warmup none --timeout 30s)

say() { printf '\n%s\n' "$*"; }

# serve FLAGS…: a server for the next checks, which end_serve ends.
serve() {
	rdmaperf serve --quiet -p 18600 "$@" 2>"$OUT/serve" &
	server=$!
	local n
	for ((n = 0; n < 100; n++)); do
		(exec 3<>/dev/tcp/127.0.0.1/18600) 2>/dev/null && return
		sleep 0.1
	done
	echo "the server does not listen"
	cat "$OUT/serve"
	exit 1
}
end_serve() {
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
}

# state DEVICE WORD: waits until port 1 says so.
state() {
	local n
	for ((n = 0; n < 100; n++)); do
		[[ $(cat "/sys/class/infiniband/$1/ports/1/state") == *"$2"* ]] && return
		sleep 0.1
	done
	echo "$1 does not become $2"
	exit 1
}

say "nothing is wrong"
check $ok '' "${short[@]}" -d rxe0
check $ok '' "${short[@]}" -d rxe0 -i 1 -x 1
check $ok '' "${short[@]}" -d siw0

say "a device that does not exist"
check $not_run 'no device rxe9: this machine has rxe0, siw0; try -d' "${short[@]}" -d rxe9
check $not_run 'not run: open transport "verbs:rxe9": no device rxe9: this machine has rxe0, siw0; try -d' rdmaperf conform --only 'dev/*' --transport verbs:rxe9
check $not_run 'no device rxe9: this machine has rxe0, siw0; try -d' rdmaperf rping -c -a 10.78.0.1 --transport verbs:rxe9
check $usage '-d rxe0 is for kernel verbs, and --transport iwarp has none; try --transport verbs' "${short[@]}" --transport iwarp -d rxe0

say "a port that does not exist, and one that is down"
check $usage 'rxe0 has no port 2: it has 1; try -i' "${short[@]}" -d rxe0 -i 2
ip link set r0 down
state rxe0 DOWN
check $not_run 'rxe0 has no ACTIVE port; try ip link set up' "${short[@]}" -d rxe0
check $not_run 'port 1 of rxe0 is not ACTIVE; try ip link set up' "${short[@]}" -d rxe0 -i 1
ip link set r0 up
state rxe0 ACTIVE

say "a GID index out of range, and an empty one"
check $usage 'use gid index 200: no such entry; the port has 0 fe80::.*RoCE v2, r0.*; try -x' "${short[@]}" -d rxe0 -x 200
check $usage 'use gid index 9: no such entry; the port has .*::ffff:10.77.0.1.*; try -x' "${short[@]}" -d rxe0 -x 9
check $usage 'siw0 is iWARP, which has no gid' "${short[@]}" -d siw0 -x 0

say "a size above max_msg_sz" # 8 MiB on Linux 6.1, 2 GiB on 6.12, which is rdmaperf's own limit
most=$(rdmaperf devices --format json | sed -n 's/.*"max_msg_sz": \([0-9]*\).*/\1/p' | head -1)
check $usage "size $((most + 1)) is above the limit of ($most bytes|2G)" "${short[@]}" -d rxe0 -s $((most + 1))

say "more queue pairs than the device has, or gives"
check $usage '--qp 5000|5000.*QPs' "${short[@]}" -d rxe0 -q 5000
mkdir -p /sys/fs/cgroup
grep -q ' /sys/fs/cgroup cgroup2' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
echo +rdma >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/few
echo 'rxe0 hca_handle=50 hca_object=10' >/sys/fs/cgroup/few/rdma.max
check $failed 'create .*rdma cgroup.*; try fewer --qp' \
	bash -c 'echo $$ >/sys/fs/cgroup/few/cgroup.procs; exec "$@"' - "${short[@]}" -d rxe0 -q 16

say "too little memory may be locked"
check $failed 'register memory [0-9]+ bytes: the limit of locked memory is 65536 bytes.*; try ulimit -l unlimited' \
	setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock bash -c 'ulimit -l 64; exec "$@"' - "${short[@]}" -d rxe0 -s 1M

say "a peer on another fabric, or none"
serve -d siw0
check $peer "peer on another fabric: this server's device siw0 is iWARP, the client's is not; try -d" "${short[@]}" -p 18600 -d rxe0 127.0.0.1
check $ok '' "${short[@]}" -p 18600 -d siw0 127.0.0.1
end_serve
serve -d rxe0 -x 0
check $peer 'peer on another fabric: .*gid.*one is IPv4, one IPv6.*; try rdmaperf devices on both sides|peer on another fabric: it refused' "${short[@]}" -p 18600 -d rxe0 -x 1 127.0.0.1
end_serve
serve -d rxe0
check $peer 'rdma_cm leads there through rxe0, not siw0; try an address of the network of siw0' "${short[@]}" -p 18600 -d siw0 127.0.0.1
end_serve
check $usage '-a 10.77.0.1 is not an address of verbs\(cm\):siw0; try -a 10.78.0.1' rdmaperf rping -s -a 10.77.0.1 --transport verbs:siw0
check $peer 'resolve address 10.99.0.1: no route' rdmaperf rping -c -a 10.99.0.1 -C 1 --timeout 2s --transport verbs:siw0
check $not_run 'no device rxe9: this machine has rxe0, siw0' rdmaperf serve --quiet -p 18600 -d rxe9
check $peer 'connect 127.0.0.1:18600: connection refused; try rdmaperf serve' "${short[@]}" --timeout 5s -p 18600 -d rxe0 127.0.0.1
check $peer 'rping: .*10.78.0.1.*; try' rdmaperf rping -c -a 10.78.0.1 -C 1 --timeout 2s --transport verbs:siw0

say "ports in use: rdma_cm asks TCP for another"
ports=/proc/sys/net/ipv4/ip_local_port_range
range=$(cat $ports)
serve -d siw0
echo "40000 40031" >$ports
for ((n = 0; n < 14; n++)); do (exec 3<>/dev/tcp/10.78.0.1/18600); done # their ports are in TIME-WAIT
for ((n = 0; n < 5; n++)); do
	check $ok '' "${short[@]}" -p 18600 -d siw0 127.0.0.1
done
echo "$range" >$ports
end_serve

say "a library that is missing"
library=$(ldconfig -p 2>/dev/null | awk '/libibverbs\.so\.1 /{print $NF; exit}')
: "${library:=$(find /lib /usr/lib -name libibverbs.so.1 | head -1)}"
# shellcheck disable=SC2016 # the inner shell expands it
check $not_run 'load libibverbs.so.1: .*; try .*install' \
	unshare -m bash -c 'mount --bind /dev/null "$(readlink -f "$0")"; exec "$@"' "$library" "${short[@]}" -d rxe0

say "a module that is missing"
modprobe -r rdma_ucm
module=$(find /lib/modules/ -name 'rdma_ucm.ko*')
mv "$module" /rdma_ucm # opening rdma_cm would load it
check $not_run 'open rdma_cm: .*rdma_ucm.*; try modprobe rdma_ucm' "${short[@]}" -d rxe0 -R
check $ok '' "${short[@]}" -d rxe0
mv /rdma_ucm "$module"
modprobe rdma_ucm

say "no way to the devices"
check $not_run 'the kernel has rxe0, siw0, but /dev/infiniband has no uverbs; try modprobe ib_uverbs' \
	unshare -m bash -c 'mount -t tmpfs none /dev/infiniband; exec "$@"' - "${short[@]}" -d rxe0
chmod 600 /dev/infiniband/uverbs*
check $failed "open device rxe0: no permission for /dev/infiniband.*; try rdma-core's udev rules, or root" \
	setpriv --reuid 65534 --regid 65534 --clear-groups "${short[@]}" -d rxe0
chmod 666 /dev/infiniband/uverbs*

say "no device at all"
rdma link delete rxe0
rdma link delete siw0
check $not_run 'this machine has no RDMA device; try .*modprobe rdma_rxe' "${short[@]}" --transport verbs
check $ok '' "${short[@]}"
grep -q iwarp "$OUT/out" || { ((bad++)) && echo "WRONG  without a device, iwarp is measured"; cat "$OUT/out"; }
modprobe -r siw rdma_rxe

printf '\n%d of %d wrong\n' "$bad" "$cases"
rm -f "$OUT/out" "$OUT/err" "$OUT/serve"
exit $((bad > 0))
