#!/usr/bin/env bash
# What action.yml does on a runner, step by step on a stock kernel: brings up devices of
# its own with ci/action/devices, runs the main job and conformance with the ledger by
# ci/action/measure, compares with a baseline, misses a threshold, finds no device, and
# takes everything away again. result.json, report.html, junit.xml and summary.md come back.
#
#   ci/lab/run ci/lab/action.sh [build|KIND…]  KIND is rxe or siw; default: both
#
# build: the order in which devices looks for rdma_rxe, on a kernel from which it was moved away. The machine is the one that
# runs the lab, with its compiler and package database, over an overlay in memory; the kernel's headers and source package are
# installed there.
# lab needs: ci/action/devices ci/action/measure ci/action/build-rxe awk paste
# lab host: KERNEL
# lab timeout: 1500
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
read -ra all <<<"$LAB_DEVICES"
(($#)) || set -- "${all[@]}"
kinds=()
for k in "$@"; do kinds+=("${k%0}"); done # rxe0 as well

brings_up() {
	GITHUB_OUTPUT=$OUT/output ./devices "${kinds[@]}" | tee "$OUT/devices.txt" &&
		devices=$(sed -n 's/^devices=//p' "$OUT/devices.txt") && [ -n "$devices" ] && grep -qx "devices=$devices" "$OUT/output"
}
again_is_the_same() { [ "$(./devices "${kinds[@]}" | tail -n 1)" = "devices=$devices" ]; }

# The machine that runs the lab, over an overlay in memory, on this kernel. By a path, because busybox takes
# its own programs else.
machine=/run/machine
on_it() { chroot $machine /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp "$@"; }
# installed PACKAGE SOURCE: what dpkg knows there of the kernel's packages.
installed() { printf '\nPackage: %s\nStatus: install ok installed\nArchitecture: amd64\nMaintainer: lab\nDescription: lab\nSource: %s\nVersion: %s\n' "$1" "$2" "$version" >>$machine/var/lib/dpkg/status; }
becomes_a_runner() {
	local release d
	release=$(uname -r) kernel=$(cat /lab/kernel.dir)
	rdma link delete rxe0 && rdma link delete siw0 && modprobe -r rdma_rxe siw && modprobe overlay || return
	mkdir -p /run/host /run/top $machine && mount -t tmpfs top /run/top && mkdir /run/top/up /run/top/work &&
		mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /run/host &&
		mount -t overlay -o lowerdir=/run/host,upperdir=/run/top/up,workdir=/run/top/work machine $machine || return
	version=$(cat "$machine/$kernel/version")
	mkdir -p $machine/usr/lib/modules && cp -a "/lib/modules/$release" $machine/usr/lib/modules/ || return
	# The packages of the kernel's headers and source, as apt would have installed them.
	for d in "$machine/$kernel"/headers/usr/src/*; do ln -sf "${d#"$machine"}" $machine/usr/src/; done
	for d in "$machine/$kernel"/headers/usr/lib/linux-kbuild-*; do ln -sf "${d#"$machine"}" $machine/usr/lib/; done
	ln -sfn "/usr/src/linux-headers-$release" "$machine/usr/lib/modules/$release/build" || return
	installed "linux-headers-$release" linux
	for d in proc sys dev; do mount --bind /$d $machine/$d || return; done
	mount -t tmpfs tmp $machine/tmp && cp devices build-rxe $machine/tmp/ || return
	on_it find "/usr/lib/modules/$release" -name 'rdma_rxe.ko*' -delete && on_it depmod "$release"
}
gives_source() {
	local d
	for d in "$machine/$kernel"/source/usr/src/linux-source-*.tar.*; do
		ln -sf "${d#"$machine"}" $machine/usr/src/
		d=${d##*/} && installed "${d%.tar.*}" linux
	done
}
brings() { on_it CI=true GITHUB_ACTIONS=true RDMAPERF_MODULES=/var/rxe timeout 2400 /tmp/devices rxe siw 2>&1 | tee "$OUT/$1.txt"; }
goes_on_with_siw() { brings siw && grep -q '^::warning::kernel .* has no rdma_rxe (build-rxe: .*): measured on siw_perf alone' "$OUT/siw.txt" && grep -qx devices=siw_perf "$OUT/siw.txt"; }
builds() { brings built && grep -q "rxe_perf, rxe on .* built from the kernel's source" "$OUT/built.txt" && grep -qx devices=rxe_perf,siw_perf "$OUT/built.txt"; }
is_used() {
	rdmaperf run --transport verbs:rxe_perf --workload latency --op write -s 64 -n 50 --no-save --quiet --timeout 60s && on_it /tmp/devices --remove
}
is_kept() {
	rmmod rdma_rxe && rm -f $machine/usr/bin/gcc && brings kept && grep -q 'build-rxe: ' "$OUT/kept.txt" && return 1
	grep -qx devices=rxe_perf,siw_perf "$OUT/kept.txt" && on_it /tmp/devices --remove
}
stops_in_one_line() {
	local code=0
	rmmod rdma_rxe siw && rm -rf $machine/var/rxe $machine/usr/src/linux-source-* && on_it find /usr/lib/modules/ -name 'siw.ko*' -delete && on_it depmod "$(uname -r)" || return
	set +o pipefail
	on_it CI=true timeout 1200 /tmp/devices rxe siw >"$OUT/none.txt" 2>"$OUT/none.err" || code=$?
	cat "$OUT/none.err"
	[ $code = 77 ] && (($(wc -l <"$OUT/none.err") == 1)) && grep -q 'has no rdma_rxe siw' "$OUT/none.err"
}
if [[ ${kinds[*]} == build ]]; then
	say "$(uname -r): rdma_rxe was moved away"
	check "the guest is a machine with a compiler, and without rdma_rxe" becomes_a_runner || exit 1
	check "without its source siw is a remark" goes_on_with_siw
	check "its source package is there" gives_source
	check "rxe is built from it" builds
	check "and measured" is_used
	check "it is kept by the kernel's version" is_kept
	check "with neither it is one line, exit code 77" stops_in_one_line
	verdict "the order of devices"
	exit
fi

# As the action asks for it by default, but shorter: a guest's code is translated, and every
# point of it disturbed, which would be taken three times. Four repeats are what a comparison needs.
points="-n 50 --warmup 10 --repeat 4 --timeout 60s"
main_job() {
	GITHUB_STEP_SUMMARY=$OUT/summary.md ./measure --devices "$devices" --ledger /lab/ledger.json --run "-s 64,64K $points" \
		--baseline "$OUT/no-baseline.json" "$OUT"
}
leaves() { # everything that an upload wants
	local f
	for f in result.json conform.jsonl junit.xml report.html summary.md; do [ -s "$OUT/$f" ] || { echo "no $f"; return 1; }; done
	grep -q 'No baseline yet' "$OUT/summary.md" && grep -q "sched(strict,[^\"+]*)+verbs" "$OUT/result.json" && grep -q '"iwarp' "$OUT/result.json"
}
# The plain loop, as beside tcp: a baseline of another loop is refused.
compares() {
	cp "$OUT/result.json" "$OUT/baseline.json"
	GITHUB_STEP_SUMMARY=$OUT/summary2.md ./measure --devices "$devices" --transport verbs@ --workload latency --conform none --run "-s 64 --loop plain $points" \
		--baseline "$OUT/baseline.json" --fail-if 'p50>+2000%' "$OUT/again" && [ -s "$OUT/again/compare.md" ] && grep -q 'exit code 0' "$OUT/summary2.md"
}
misses() {
	./measure --devices "$devices" --transport verbs@ --workload latency --conform none --run "-s 64 -n 50 --warmup 10 --timeout 60s" --fail-if 'p50>1ns' "$OUT/missed"
	[ $? = 3 ]
}
without_device() {
	./measure --devices '' --transport verbs@ --conform none "$OUT/none"
	[ $? = 77 ]
}
takes_away() { ./devices --remove "${kinds[@]}" && ! compgen -G "/sys/class/infiniband/*_perf" >/dev/null; }

devices=
say "$(uname -r): ci/action/devices ${kinds[*]}"
check "devices come up" brings_up
check "a second time changes nothing" again_is_the_same
say "the main job"
check "run and conformance on $devices" main_job
check "everything is left behind" leaves
say "baseline and thresholds"
check "a baseline is compared with" compares
check "a missed threshold is exit code 3" misses
check "no device is exit code 77" without_device
check "devices go away" takes_away
verdict "the action's steps"
