# shellcheck shell=bash
# The guest's network and RDMA devices.
#
#   lab (this namespace)            peer (namespace)
#   r0  10.77.0.1/24  rxe0   <--->  r1  10.77.0.2/24
#   s0  10.78.0.1/24  siw0   <--->  s1  10.78.0.2/24
#   n0  10.0.2.15/24                the host's loopback is 10.0.2.2 (only with --forward)
#
# One device on an interface, and one siw device in all: with rxe and several siw
# devices on an interface, connection requests from outside found no answer.

bring_up() {
	local dev
	modprobe -a veth tun rdma_rxe ib_uverbs rdma_ucm || return 1
	export LAB_DEVICES=rxe0 # which scripts take that were told none
	if modprobe -nq siw; then
		modprobe siw || return 1
		LAB_DEVICES+=' siw0'
	else
		echo "lab: skipped: siw0, and what scripts do with it: there is no siw for Linux $(uname -r) here"
	fi
	ip link set lo up
	ip netns add peer
	ip -n peer link set lo up
	wire r 10.77.0 && wire s 10.78.0 || return 1
	rdma link add rxe0 type rxe netdev r0 || return 1
	[[ $LAB_DEVICES != *siw0* ]] || rdma link add siw0 type siw netdev s0 || return 1
	if [[ -e /sys/bus/virtio/drivers/virtio_net ]] || modprobe virtio_net; then up_link_to_host; fi
	give_mhz
	for dev in $LAB_DEVICES; do wait_active "$dev" || return 1; done
}

# wire NAME NET: a veth pair with one end in each namespace.
wire() {
	ip link add "${1}0" type veth peer name "${1}1" netns peer &&
		ip addr add "$2.1/24" dev "${1}0" && ip link set "${1}0" up &&
		ip -n peer addr add "$2.2/24" dev "${1}1" && ip -n peer link set "${1}1" up
}

up_link_to_host() {
	[[ -e /sys/class/net/eth0 ]] || return 0
	ip link set eth0 name n0 && ip addr add 10.0.2.15/24 dev n0 && ip link set n0 up
}

# perftest prints inf for every figure where /proc/cpuinfo names no frequency. It
# measures the frequency itself and only wants to see one: any will do.
give_mhz() {
	grep -qE '^cpu MHz[[:space:]]*: *[1-9]' /proc/cpuinfo && return
	sed 's/^processor.*/&\ncpu MHz\t\t: 1000.000/' /proc/cpuinfo | grep -v '^cpu MHz.*: *0*\.*0*$' >/run/cpuinfo
	mount --bind /run/cpuinfo /proc/cpuinfo
}

wait_active() {
	local n
	for ((n = 0; n < 100; n++)); do
		[[ $(cat "/sys/class/infiniband/$1/ports/1/state" 2>/dev/null) == *ACTIVE* ]] && return
		sleep 0.1
	done
	echo "lab: $1 is not active after 10 s"
	return 1
}
