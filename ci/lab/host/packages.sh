# shellcheck shell=bash
# The distribution packages that the lab takes its tools and the guest's programs from.

lab_packages=(
	qemu-system-x86 busybox-static cpio zstd kmod iproute2 binutils xz-utils
	rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest tcpdump
	gcc gcc-12 libc6-dev make libelf1
)

# need_packages: all installed, or installed now when root, or not run.
need_packages() {
	local p missing=() log
	[[ $(uname -m) == x86_64 ]] || not_run "the guest is x86-64 and this machine is $(uname -m)" "run it on an x86-64 machine"
	command -v apt-get >/dev/null || not_run "this machine has no apt" "run it on Debian 12, or in a container of it"
	for p in "${lab_packages[@]}"; do
		[[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) == ii* ]] || missing+=("$p")
	done
	((${#missing[@]})) || return 0
	((EUID == 0)) || not_run "packages are missing: ${missing[*]}" "as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
	say "install ${missing[*]}"
	log=$(mktemp)
	if ! { timeout 300 apt-get -o DPkg::Lock::Timeout=120 update &&
		DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		not_run "packages cannot be installed: ${missing[*]}" "see what apt said above"
	fi
	rm -f "$log"
}

# package_versions: what the guest's programs are made of, for the cache's key.
package_versions() {
	# shellcheck disable=SC2016 # the format is dpkg's
	dpkg-query -W -f '${Package}=${Version}\n' "${lab_packages[@]}" bash libc6 libibverbs1 librdmacm1
}
