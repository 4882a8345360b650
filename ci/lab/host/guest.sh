# shellcheck shell=bash
# shellcheck disable=SC2154 # ci/lab/run sets what is not set here
# Boots a guest, waits for its end and judges what it left.

# How long a guest's kernel may take until it has its share, in seconds, and how often it is
# booted (boot_limit, boots). Both arbitrary: it takes a few seconds. A translated guest was seen to hang there,
# on a busy host: both its CPUs spun, and its console ended after a second.
boots=3
readonly no_boot=75 # EX_TEMPFAIL of sysexits.h

# qemu LIMIT ACCEL SHARE CONSOLE CMDLINE…: boots kernel_dir with $initrd; the
# guest's second serial line is our stdout. Ends with the guest, after LIMIT seconds, or
# with $no_boot when the guest did not have its share after $boot_limit seconds.
qemu() {
	local limit=$1 accel=$2 share=$3 console=$4 forward=() host=() f net=user,id=net0
	shift 4
	for f in "${forwards[@]}"; do net+=",hostfwd=tcp:127.0.0.1:${f%:*}-10.0.2.15:${f#*:}"; done
	# A script that wants this machine's programs has its files, without being able to write them.
	if [[ -n ${script-} ]] && grep -q '^# lab host:' "$script"; then
		host=(-fsdev "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap" -device "virtio-9p-pci,fsdev=host,mount_tag=host")
	fi
	if ((${#forwards[@]})); then forward=(-netdev "$net" -device "virtio-net-pci,netdev=net0,romfile="); fi
	# tsc=reliable: translated CPUs share one counter, but the kernel cannot know, and
	# its other clock costs 1 us a reading, which is what a latency loop would show.
	# -erms: with that flag the kernel copies and clears by rep movsb and rep stosb, which
	# QEMU translates as one store for each byte. With rep movsq siw reads
	# 64 KiB 1.7 times as fast.
	# A background process of this shell, so that end_child can end it by its id. A shell that
	# is killed ends nothing: timeout receives it by itself and hands SIGTERM on, and where
	# timeout was killed, the guest dies.
	# shellcheck disable=SC2016 # the inner shell expands it
	following TERM timeout --kill-after=5 "$limit" bash -c '. "$0"; following KILL "$@"' "$lab/host/common.sh" qemu-system-x86_64 -accel "$accel" \
		-cpu "$([[ $accel == kvm ]] && echo host || echo max,-erms)" -smp "$cpus" -m "$mem" \
		-nodefaults -no-user-config -display none -no-reboot -nic none "${forward[@]}" \
		-chardev "file,id=console,path=$console" -serial chardev:console \
		-chardev stdio,id=out,signal=off -serial chardev:out \
		-fsdev "local,id=share,path=$share,security_model=none" -device virtio-9p-pci,fsdev=share,mount_tag=share "${host[@]}" \
		-kernel "$kernel_dir/vmlinuz" -initrd "$initrd" \
		-append "console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off no_timer_check tsc=reliable rdinit=/init $*" </dev/null &
	child=$!
	local code=0 waited
	for ((waited = 0; waited < boot_limit; waited++)); do
		if [[ -e $share/up ]] || ! kill -0 "$child" 2>/dev/null; then break; fi
		sleep 1
	done
	if ((waited == boot_limit)) && [[ ! -e $share/up ]] && kill -0 "$child" 2>/dev/null; then
		end_child
		code=$no_boot
	else
		wait "$child" || code=$?
	fi
	child=
	return "$code"
}

# boot: one life of the guest, after as many boots as it needs; sets ended.
boot() {
	local tries
	for ((tries = 1; tries <= boots; tries++)); do
		rm -f "$job/share/up"
		ended=0
		qemu "$limit" "$accel" "$job/share" "$job/console" || ended=$?
		((ended == no_boot)) || return 0
		say "the guest's kernel did not come up within $boot_limit s (boot $tries of $boots); the end of its console:"
		tail -n 5 "$job/console" >&2 || true
	done
}

# choose_accel: sets accel. A device file that opens proves nothing: KVM is used
# only after a guest came up with it. The answer holds until this machine reboots.
choose_accel() {
	local answer
	answer=$cache/accel-$(cat /proc/sys/kernel/random/boot_id)
	accel=tcg,thread=multi
	[[ -r /dev/kvm && -w /dev/kvm ]] || return 0
	if [[ ! -e $answer ]]; then
		rm -f "$cache"/accel-*
		say "try a guest with KVM, at most 20 s"
		mkdir -p "$job/probe"
		if qemu 20 kvm "$job/probe" "$job/probe.console" lab.probe=1 >"$job/probe.out" 2>&1 && grep -q lab-probe-ok "$job/probe.out"; then
			echo kvm >"$answer.$$"
		else
			echo "$accel" >"$answer.$$"
		fi
		mv "$answer.$$" "$answer"
	fi
	accel=$(cat "$answer")
}

# run_guest: one run of the script; sets code.
run_guest() {
	local started=$SECONDS ended=0 deaths_so_far=0
	mkdir -p "$job/share/out"
	touch "$kernel_dir" "$base_image" # in use: not to be forgotten
	say "boot Linux $kernel_release with $accel, $cpus CPUs, $mem MiB; the script has $limit s"
	boot
	while [[ ! -s $job/share/exit ]] && ((ended != 124 && ended != 137 && ended != no_boot && deaths_so_far < may_die)); do
		deaths_so_far=$((deaths_so_far + 1))
		say "the guest died, as its script allows: boot it again ($deaths_so_far)"
		tr -d '\r' <"$job/console" >"$job/share/out/death-$deaths_so_far.txt"
		boot
	done
	if [[ -s $job/share/exit ]]; then
		code=$(cat "$job/share/exit")
	elif ((ended == 124 || ended == 137)); then
		say "the guest did not end within $limit s (--timeout); the end of its console:"
		tail -n 15 "$job/console" >&2
		code=1
	elif ((ended == no_boot)); then
		say "the guest's kernel came up in none of $boots boots (RDMAPERF_LAB_BOOT_LIMIT)"
		code=1
	else
		say "the guest died (qemu ended with $ended); the end of its console:"
		tail -n 40 "$job/console" >&2
		code=1
	fi
	[[ -s $job/share/dmesg ]] || cp "$job/console" "$job/share/dmesg"
	judge_dmesg || { ((code != 0)) || code=1; }
	say "exit code $code after $((SECONDS - started)) s"
}

# What a healthy kernel never says.
findings='Oops|BUG:|WARNING:|KASAN|UBSAN|KCSAN|general protection fault|Kernel panic|Call Trace|kernel BUG at|soft lockup|hard LOCKUP|detected stall|blocked for more than|refcount_t:|list_(add|del) corruption|waiting for .* to become free|scheduling while atomic|bad page state'

# judge_dmesg: fails when the kernel complained and dmesg.known has no row for it.
judge_dmesg() {
	local kernels pattern reason rest=$job/findings
	grep -E "$findings" "$job/share/dmesg" >"$rest" || true
	while IFS=$'\t' read -r kernels pattern reason; do
		[[ -n $kernels && $kernels != \#* ]] || continue
		# shellcheck disable=SC2053 # the ledger's kernels are a glob
		[[ $kernel_release == $kernels ]] || continue
		if grep -qE "$pattern" "$rest"; then
			say "dmesg: known: $reason"
			grep -vE "$pattern" "$rest" >"$rest.new" || true
			mv "$rest.new" "$rest"
		fi
	done <"$lab/dmesg.known"
	[[ -s $rest ]] || return 0
	say "dmesg: the guest's kernel complained:"
	head -n 20 "$rest" >&2
	return 1
}

# bring_back DIR: what the script left in /out, the kernel's messages, and the console.
bring_back() {
	rm -rf "$1"
	mkdir -p "$1"
	cp -r "$job/share/out/." "$1/"
	cp "$job/share/dmesg" "$1/dmesg.txt"
	tr -d '\r' <"$job/console" >"$1/console.txt"
	say "files: $1"
}
