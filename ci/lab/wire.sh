#!/usr/bin/env bash
# Wire conformance of Linux siw: the scripted peer of `rdmaperf conform --wire` in one
# namespace, siw in the other, with wire.json as ledger of what is known to deviate.
# The peer under test is rdmaperf's target over kernel verbs, which can be asked
# everything, and then librdmacm's rping, which shows that it is not the target.
#
# Cases that crash some kernels (hazards) run in a guest of their own, one after the
# other: where the kernel dies the guest is booted again and goes on behind that case.
# wire.hazards says which kernels die of what; another outcome is a failure both ways.
#
#   ci/lab/run [--kernel 6.12] ci/lab/wire.sh [rows | hazards]
#
# lab timeout: 900
# lab then: hazards
# lab deaths: 20
# lab devices: siw0
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
part=${1:-rows} control=7300 pings=7400

target() { serve "$OUT/target.log" lab "$control" rdmaperf serve --target --bind "$here" -p "$control" --transport verbs:siw0; }

# conform NAME PORT OPTION…: judges, and leaves the forms for a pipeline.
conform() {
	local name=$1 port=$2
	shift 2
	peer timeout 600 rdmaperf conform --strict --wire "$here:$port" --case-timeout 20s --ledger /lab/wire.json \
		--jsonl "$OUT/$name.jsonl" --junit "$OUT/$name.xml" "$@" >"$OUT/$name.txt" 2>"$OUT/$name.err"
	local code=$?
	cat "$OUT/$name.txt" "$OUT/$name.err"
	return "$code"
}

rows() {
	say "every row but hazards, against a target over siw ($(uname -r))"
	check "target serves" target
	check "rows of a target" conform target "$control"
	check "target ends" stops "$server"
	say "what rping can be asked"
	check "rping serves" serve "$OUT/rping.log" lab "$pings" rping -s -P -a "$here" -p "$pings"
	check "rows of rping" conform rping "$pings"
	kill -0 "$server" 2>/dev/null && kill "$server"
	wait "$server"
	verdict wire
}

# known CASE: how this kernel takes the case, of wire.hazards: dies, complains, sometimes or lives.
known() {
	local kernels name how
	while IFS=$'\t' read -r kernels name how _; do
		[[ $kernels == \#* || -z $kernels ]] && continue
		# shellcheck disable=SC2053 # the ledger's kernels are a glob
		if [[ $(uname -r) == $kernels && $1 == "$name" ]]; then
			echo "$how"
			return
		fi
	done <wire.hazards
	echo lives
}

# expected CASE HOW: whether wire.hazards allows it. What complains sometimes may live, but not die.
expected() {
	local want
	want=$(known "$1")
	[[ $2 == "$want" || $want == sometimes && $2 =~ ^(complains|lives)$ ]]
}

findings='Oops|BUG:|WARNING:|KASAN|general protection fault|Kernel panic|kernel BUG at|soft lockup|refcount_t:|list_(add|del) corruption|blocked for more than'

# hazard CASE: one case; what the kernel says of it is the case's.
hazard() {
	local file=${1//\//_} before
	before=$(dmesg | wc -l)
	echo "$1" >"$OUT/now"
	sync
	if [[ -z $server ]] || ! kill -0 "$server" 2>/dev/null; then target || return; fi
	conform "$file" "$control" --hazard --only "$1" >/dev/null
	local code=$? how=lives
	sleep 1 # of kernel work behind it
	if dmesg | tail -n "+$((before + 1))" | grep -E "$findings" >"$OUT/$file.dmesg"; then
		how=complains
		dmesg -c >/dev/null
	fi
	grep '"id"' "$OUT/$file.jsonl" >>"$OUT/hazards.jsonl"
	echo "$1 $how $code" >>"$OUT/outcomes"
	rm "$OUT/now"
	sync
}

hazards() {
	local name how code
	if [[ -e $OUT/now ]]; then # the last guest died of it
		name=$(cat "$OUT/now")
		echo "$name dies 1" >>"$OUT/outcomes"
		rm "$OUT/now"
	fi
	say "hazards ($(uname -r))"
	for name in $(rdmaperf conform --list --wire "$here:$control" | sed -n 's/ .*(hazard)$//p'); do
		grep -q "^$name " "$OUT/outcomes" 2>/dev/null || hazard "$name"
	done
	while read -r name how code; do
		check "$name: $how, as wire.hazards says" expected "$name" "$how"
		if [[ $how != dies ]]; then check "$name: its verdict, with the ledger" [ "$code" = 0 ]; fi
	done <"$OUT/outcomes"
	[[ -z $server ]] || kill "$server" 2>/dev/null
	verdict wire-hazards
}

case $part in
rows | hazards) "$part" ;;
*) echo "wire.sh: part $part: want rows or hazards" >&2; exit 2 ;;
esac
