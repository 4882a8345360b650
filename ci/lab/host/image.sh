# shellcheck shell=bash
# shellcheck disable=SC2154 # ci/lab/run sets what is not set here
# The guest's root: distribution programs with their libraries, and a job's own files.

# busybox gives the small tools. What iproute2, kmod and bash have is theirs alone:
# busybox runs its own ip and modprobe even when PATH says otherwise.
guest_programs=(
	bash kmod ip tc rdma ibv_devinfo ibv_devices ibv_rc_pingpong ibv_ud_pingpong rping udaddy rdma_server rdma_client
	ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw tcpdump nice
)
no_applets='^(ash|sh|hush|bash|ip|ipaddr|iplink|ipneigh|iproute|iprule|iptunnel|tc|modprobe|insmod|rmmod|lsmod|depmod|modinfo|init|linuxrc)$'

# put FILE ROOT: copies a host file to the same place under ROOT, following links.
put() {
	local to
	to=$2$(readlink -f "$(dirname "$1")")
	mkdir -p "$to"
	cp -L "$1" "$to/"
}

# put_program NAME ROOT: a program and the libraries that it links.
put_program() {
	local path lib
	path=$(command -v "$1") || die "the guest needs the program $1, and this machine has none"
	put "$path" "$2"
	while read -r lib; do put "$lib" "$2"; done < <(libraries_of "$path")
}

# put_library NAME ROOT: a library that a program loads by name, which ldd does not tell.
put_library() {
	local path
	path=$(ldconfig -p | awk -v n="$1" '$1 == n { print $NF; exit }')
	[[ -n $path ]] || die "the guest needs the library $1, and this machine has none" 77
	put "$path" "$2"
	put_libraries "$path" "$2"
}

libraries_of() { ldd "$1" 2>/dev/null | grep -oE '/[^ ]+' || true; }

# need_base: sets base_image, the part of the initramfs that does not change from
# run to run: modules and programs.
need_base() {
	local key
	key=$(digest "$kernel_dir" "$(package_versions)" "$(sha256sum <"$lab/host/image.sh")")
	base_image=$cache/base-$kernel_release-$key.cpio.zst
	locked "$cache/base-$kernel_release.lock" build_base
}

build_base() {
	local work name
	[[ ! -e $base_image ]] || return 0
	say "build the guest's root for Linux $kernel_release"
	forget_old base "build.base-$kernel_release.*"
	work=$(mktemp -d "$cache/build.base-$kernel_release.XXXXXX")
	mkdir -p "$work/root/usr/"{bin,sbin,lib,lib64} "$work/root/"{proc,sys,dev,run,tmp,root,out,etc}
	for name in bin sbin lib lib64; do ln -s "usr/$name" "$work/root/$name"; done
	cp -r "$kernel_dir/lib/modules" "$work/root/usr/lib/"
	for name in "${guest_programs[@]}"; do put_program "$name" "$work/root"; done
	for name in modprobe insmod rmmod lsmod depmod modinfo; do ln -sf ../bin/kmod "$work/root/usr/sbin/$name"; done
	ln -s bash "$work/root/usr/bin/sh"
	put_providers "$work/root"
	put_busybox "$work/root"
	put_etc "$work/root"
	pack "$work/root" | zstd -q -3 -T0 -o "$work/base.cpio.zst"
	truncate -s %512 "$work/base.cpio.zst" # the kernel looks for the job's archive at a multiple of four
	mv "$work/base.cpio.zst" "$base_image"
	rm -rf "$work"
}

# libibverbs opens its providers, and glibc opens libgcc_s for pthread_exit: ldd
# names neither.
put_providers() {
	local file lib name
	lib=$(dirname "$(libraries_of "$(command -v ibv_devinfo)" | grep libibverbs)")
	for name in rxe siw; do
		for file in "$lib/libibverbs/lib$name-"*.so "/etc/libibverbs.d/$name.driver"; do put "$file" "$1"; done
	done
	put "$lib/libgcc_s.so.1" "$1"
}

put_busybox() {
	local name
	put "$(command -v busybox)" "$1"
	while read -r name; do
		[[ -e $1/usr/bin/$name || -e $1/usr/sbin/$name ]] || ln -s /bin/busybox "$1/usr/bin/$name"
	done < <(busybox --list | grep -vE "$no_applets")
}

put_etc() {
	echo 'root:x:0:0:root:/root:/bin/bash' >"$1/etc/passwd"
	echo 'root:x:0:' >"$1/etc/group"
	printf '127.0.0.1 localhost lab\n::1 localhost\n' >"$1/etc/hosts"
	echo 'hosts: files' >"$1/etc/nsswitch.conf"
	echo lab >"$1/etc/hostname"
}

# pack DIR: a cpio archive of the directory, on stdout.
pack() { (cd "$1" && find . -mindepth 1 -print0 | LC_ALL=C sort -z | cpio --quiet -0 -o -H newc -R 0:0); }

# build_job: the part of the initramfs that belongs to one run: this tree's
# programs, the lab's scripts and what the script asks for.
build_job() { # JOB SCRIPT ARGS…
	local job=$1 script=$2 root=$1/root need pkg dir tags
	shift 2
	mkdir -p "$root/lab" "$root/usr/bin"
	cp "$lab/guest/init" "$root/init"
	cp -r "$lab/." "$root/lab/"
	cp "$kernel_dir/config" "$root/lab/kernel.config"
	echo "$kernel_dir" >"$root/lab/kernel.dir"
	cp "$script" "$root/lab/${script##*/}"
	chmod +x "$root/init" "$root/lab/${script##*/}"
	printf '%q ' "/lab/${script##*/}" "$@" >"$root/lab/command"
	# Position independent, as the distribution's perftest is: another place in each process.
	# Fixed addresses cost 2 % of the p50 of writes over rxe (three guests), presumably as their
	# slots in the emulator's table of pages are those of hot pages of the kernel.
	tags=$(sed -n 's/^# lab tags: //p' "$script")
	(cd "$tree" && go build -buildmode=pie ${race:+"$race"} ${tags:+-tags "$tags"} -o "$root/usr/bin/rdmaperf" ./cmd/rdmaperf) || die "go build ./cmd/rdmaperf failed"
	put_libraries "$root/usr/bin/rdmaperf" "$root"
	for pkg in "${test_packages[@]}" $(sed -n 's/^# lab tests: //p' "$script"); do
		dir=$root/lab/tests/${pkg##*/}
		(cd "$tree" && go test -c ${race:+"$race"} -o "$dir/${pkg##*/}.test" "$pkg") || die "go test -c $pkg failed"
		put_libraries "$dir/${pkg##*/}.test" "$root"
		if [[ -d $tree/$pkg/testdata ]]; then cp -r "$tree/$pkg/testdata" "$dir/"; fi
	done
	# shellcheck disable=SC2013 # words are wanted
	for need in $(sed -n 's/^# lab needs: //p' "$script"); do
		case $need in
		*/*) cp -r "$tree/$need" "$root/lab/" ;;
		*.so.*) put_library "$need" "$root" ;;
		*) put_program "$need" "$root" ;;
		esac
	done
	{ cat "$base_image" && pack "$root"; } >"$job/initrd"
}

put_libraries() {
	local l
	for l in $(libraries_of "$1"); do put "$l" "$2"; done
}
