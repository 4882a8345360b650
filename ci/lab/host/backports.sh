# shellcheck shell=bash
# shellcheck disable=SC2154 # ci/lab/run sets what is not set here
# Kernels of the backports of the Debian release after this one, for what the release's own
# are too old for: rxe has on-demand paging since Linux 6.14. apt gets a configuration of its
# own for them, signed by Debian's keyring: the machine's sources, lists and packages stay as
# they are, and no root is needed.
#
# siw is not built for them: their headers come with programs that need a newer C library.

backports_suite=trixie-backports
backports_keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# What Debian 12's kernels have and these have not is built into them.
backports_modules=(rdma_rxe ib_uverbs rdma_ucm ib_umad veth tun virtio_pci virtio_net 9p 9pnet_virtio sch_netem)
# Why anybody takes such a kernel.
backports_config=(CONFIG_RDMA_RXE=m CONFIG_INFINIBAND_ON_DEMAND_PAGING=y)

# backports SECONDS TOOL ARG…: apt-get or apt-cache, which know nothing but the backports.
backports() {
	local limit=$1 tool=$2 dir=$cache/backports
	shift 2
	# As root apt would read the cache as a user who may not: what it gets is signed.
	timeout "$limit" "$tool" -o Dir::State="$dir" -o Dir::State::lists="$dir/lists" -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" \
		-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- -o Dir::Etc::trusted=/dev/null -o Dir::Etc::trustedparts=- \
		-o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

# need_backports: the archive's list, at most a day old where it can be had.
need_backports() {
	local dir=$cache/backports archive
	[[ -z $(find "$dir/updated" -mtime -1 2>/dev/null) ]] || return 0
	# shellcheck disable=SC2016 # the format is apt's
	archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
	[[ -n $archive && -r $backports_keyring ]] || not_run "apt here knows no Debian archive, or there is no $backports_keyring" \
		"apt-get update, with a Debian 12 archive among apt's sources, and the package debian-archive-keyring"
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	: >"$dir/status"
	echo "deb [arch=amd64 signed-by=$backports_keyring] $archive $backports_suite main" >"$dir/sources.list"
	if backports 300 apt-get update >"$dir/log" 2>&1; then
		touch "$dir/updated"
	elif [[ -e $dir/updated ]]; then
		say "the list of $backports_suite cannot be read anew: that of $(date -r "$dir/updated" +%F) is used"
	else
		tail -n 5 "$dir/log" >&2
		not_run "$backports_suite cannot be read from Debian's archive" "see above; $archive has to be reachable and to have it"
	fi
}

# newest_backport SERIES: prints "PACKAGE-SUFFIX VERSION" of the newest image of the series,
# or of all where it is "backports", of which every part is there: of old ones the archive
# keeps some packages.
newest_backport() {
	local number=${1//./\\.} name version
	if [[ $1 == backports ]]; then number='[0-9]+\.[0-9]+'; fi
	while read -r name; do
		version=$(backports 60 apt-cache show --no-all-versions "$name" 2>/dev/null | sed -n 's/^Version: //p')
		if [[ -n $version ]] && whole_backport "${name#linux-image-}" "$version"; then
			echo "${name#linux-image-} $version"
			return
		fi
	done < <(backports 60 apt-cache pkgnames linux-image- | grep -E "^linux-image-$number\.[0-9]+\+deb[0-9]+-amd64$" | sort -rV)
	return 1
}

# backport_parts RELEASE VERSION: the packages of an image. Of late it is several, which it
# depends on.
backport_parts() {
	echo "linux-image-$1=$2"
	backports 60 apt-cache show "linux-image-$1=$2" | grep '^Depends:' | grep -oE "linux-(base|binary|modules)-${1//+/\\+}" | sort -u | sed "s|\$|=$2|"
}

whole_backport() {
	local part
	for part in $(backport_parts "$1" "$2"); do [[ -n $(backports 60 apt-cache show "$part" 2>/dev/null) ]] || return; done
}

# prepare_backport VERSION: kernel_release with its modules, in result.
prepare_backport() {
	local version=$1 want parts deb
	mapfile -t parts < <(backport_parts "$kernel_release" "$version")
	backports 900 apt-get download "${parts[@]}"
	for deb in *.deb; do dpkg -x "$deb" image; done
	mkdir -p result
	[[ -d image/lib ]] || mv image/usr/lib image/
	modules=image/lib/modules/$kernel_release
	for want in vmlinuz config; do
		if [[ -e image/boot/$want-$kernel_release ]]; then mv "image/boot/$want-$kernel_release" "$modules/$want"; fi
		cp "$modules/$want" result/
	done
	for want in "${backports_config[@]}"; do
		grep -x "$want" result/config || { echo "$kernel_release has no $want" && return 1; }
	done
	# shellcheck disable=SC2034 # collect_modules uses it
	kernel_modules=("${backports_modules[@]}")
	collect_modules
}
