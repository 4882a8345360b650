# shellcheck shell=bash
# shellcheck disable=SC2154 # ci/lab/run sets what is not set here
# A distribution kernel without installing it, and siw built for it: no root needed.

# Programs in the guest need these; a module that the kernel has built in is fine.
kernel_modules=(
	rdma_rxe siw ib_uverbs rdma_ucm ib_umad veth tun virtio_pci virtio_net
	9p 9pnet_virtio crc32_generic crc32c_generic libcrc32c sch_netem overlay
)

# newest_kernel SERIES: prints "PACKAGE-SUFFIX VERSION" of the newest full image of
# the series in the archive for which headers and source exist too. The cloud image
# has no drivers/infiniband.
newest_kernel() {
	local series=$1 pattern name version
	case $series in
	6.1) pattern='^linux-image-6\.1\.0-[0-9]+-amd64$' ;;
	*) pattern="^linux-image-${series//./\\.}\.[0-9]+\+deb12-amd64$" ;;
	esac
	while read -r name; do
		version=$(package_version "$name")
		if [[ -n $version && $(package_version "${name/image/headers}") == "$version" ]] && source_has "linux-source-$series" "$version"; then
			echo "${name#linux-image-} $version"
			return
		fi
	done < <(apt-cache pkgnames linux-image-"$series" | grep -E "$pattern" | sort -rV)
	return 1
}

package_version() { apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^Version: //p'; }
source_has() { [[ -n $(apt-cache show "$1=$2" 2>/dev/null) ]]; } # its exit code is 0 without the version

# need_kernel SERIES: sets kernel_dir (vmlinuz, config, lib/modules), kernel_release and
# kernel_series.
need_kernel() {
	local series=$1 found version
	case $series in
	6.1 | 6.12)
		found=$(newest_kernel "$series") || {
			if ((EUID == 0)); then timeout 300 apt-get update >/dev/null 2>&1 || true; fi
			found=$(newest_kernel "$series") || not_run "the archive has no Linux $series with image, headers and source" \
				"apt-get update, with a Debian 12 archive and its security updates among apt's sources"
		}
		;;
	*)
		locked "$cache/backports.lock" need_backports
		found=$(newest_backport "$series") || not_run "$backports_suite has no Linux $series now" "--kernel backports is the newest that it has"
		;;
	esac
	read -r kernel_release version <<<"$found"
	kernel_series=$(grep -oE '^[0-9]+\.[0-9]+' <<<"$kernel_release")
	kernel_dir=$cache/kernel-$kernel_release-$version-$(digest "$(cat "$lab/host/kernel.sh" "$lab/host/backports.sh" | sha256sum)")
	locked "$cache/kernel-$kernel_series.lock" build_kernel "$series" "$version"
}

# has_devices SCRIPT: whether the kernel has what the script is about. Where a device is one
# of several, the guest leaves it out by name.
has_devices() {
	local siw
	grep -qE '^# lab devices:.*\bsiw0' "$1" || return 0
	siw=$(find "$kernel_dir/lib/modules" -name 'siw.ko*')
	[[ -n $siw ]] || not_run "${1##*/} is about siw0, and siw is not built for Linux $kernel_release" "--kernel 6.1 or 6.12"
}

build_kernel() {
	local series=$1 version=$2 work
	[[ ! -e $kernel_dir/done ]] || return 0
	say "get Linux $kernel_release ($version); this is done once"
	rm -rf "$kernel_dir"
	forget_old kernel "build.kernel-$kernel_series.*"
	work=$(mktemp -d "$cache/build.kernel-$kernel_series.XXXXXX")
	( # in the background, because errexit is off in a command before ||
		cd "$work" || exit
		case $series in
		6.1 | 6.12) prepare_release "$series" "$version" ;;
		*) prepare_backport "$version" ;;
		esac
		touch result/done
	) >"$work/log" 2>&1 &
	child=$!
	wait "$child" || {
		tail -n 20 "$work/log" >&2
		not_run "Linux $kernel_release cannot be prepared" "see above; the whole log is $work/log"
	}
	child=
	mv "$work/result" "$kernel_dir"
	rm -rf "$work"
}

# prepare_release SERIES VERSION: kernel_release with its modules and siw, in result.
prepare_release() {
	download_kernel "$1" "$2"
	unpack_image
	build_siw "$1"
	collect_modules
}

# kbuild's newest will do: headers want their version or later, and the archive may have that alone.
download_kernel() {
	local series=$1 version=$2 kbuild
	kbuild=$(apt-cache show "linux-headers-$kernel_release=$version" | grep -oE 'linux-kbuild-[^ ,]+' | head -n 1)
	timeout 900 apt-get download "linux-image-$kernel_release=$version" "linux-headers-$kernel_release=$version" \
		"linux-headers-${kernel_release%-amd64}-common=$version" "$kbuild" "linux-source-$series=$version"
}

unpack_image() {
	mkdir -p result image/lib
	dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x -C image --wildcards './boot/vmlinuz-*' './boot/config-*' './*lib/modules/*'
	cp image/boot/vmlinuz-* result/vmlinuz
	cp image/boot/config-* result/config
	modules=image/lib/modules/$kernel_release
	if [[ ! -d $modules ]]; then mv image/usr/lib/modules image/lib/; fi
}

# The headers name each other by absolute path, as if they were installed.
build_siw() {
	local series=$1 deb headers=$PWD/headers
	mkdir headers
	for deb in linux-headers-*.deb linux-kbuild-*.deb; do dpkg -x "$deb" headers; done
	find headers/usr/src -maxdepth 2 -type f -name Makefile -exec sed -i "s|/usr/src/|$headers/usr/src/|g" {} +
	dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO "./usr/src/linux-source-$series.tar.xz" | xz -dc -T0 |
		tar -x "linux-source-$series/drivers/infiniband/sw"
	# The guest, whose code is translated, would unpack all of the archive for minutes.
	mkdir -p result/source/usr/src
	tar -cJf "result/source/usr/src/linux-source-$series.tar.xz" "linux-source-$series/drivers/infiniband/sw"
	local siw=$PWD/linux-source-$series/drivers/infiniband/sw/siw
	timeout 600 make -j2 -C "headers/usr/src/linux-headers-$kernel_release" M="$siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules
	strip --strip-debug "$siw/siw.ko"
	# What a machine has that builds modules by itself: see "# lab host" in README.md.
	mv headers result/headers
	dpkg-deb -f linux-source-*.deb Version >result/version
	find result/headers/usr/src -maxdepth 2 -type f -name Makefile -exec sed -i "s|$headers/usr/src/|/usr/src/|g" {} +
	mkdir -p "$modules/updates"
	cp "$siw/siw.ko" "$modules/updates/"
}

# Only the modules that the guest loads, with all that they depend on.
collect_modules() {
	local name line to=result/lib/modules/$kernel_release
	depmod -b image "$kernel_release"
	mkdir -p "$to"
	for name in "${kernel_modules[@]}"; do
		while read -r line; do
			case $line in
			insmod*)
				line=${line#insmod }
				line=${line%% *}
				mkdir -p "$to/$(dirname "${line#*/"$kernel_release"/}")"
				cp -n "$line" "$to/${line#*/"$kernel_release"/}"
				;;
			esac
		done < <(modprobe -d "$PWD/image" -S "$kernel_release" --ignore-install --show-depends "$name" || echo "missing $name")
	done
	cp "$modules"/modules.{builtin,builtin.modinfo,order} "$to/"
	depmod -b result "$kernel_release"
	for name in "${kernel_modules[@]}"; do
		modprobe -d "$PWD/result" -S "$kernel_release" --ignore-install --show-depends "$name" >/dev/null
	done
}
