#!/usr/bin/env bash
# What ci/lab/check asks of one guest, one script after the other: each runs to its end,
# whatever became of the one before, and has its own directory in /out.
# lab tests: ./transports/verbs
# lab needs: rcopy rstream ucmatose
# lab timeout: 1500
set -uo pipefail
cd "$(dirname "$0")" || exit
# shellcheck source=ci/lab/guest/lib.sh
. guest/lib.sh
out=$OUT
for script in smoke rping-interop rdmacm verbs-tests; do
	if [[ $LAB_DEVICES != *siw0* ]] && grep -q '^# lab devices:.*siw0' "$script.sh"; then
		say "skipped: $script.sh, which is about siw0"
		continue
	fi
	say "$script.sh"
	OUT=$out/$script
	mkdir -p "$OUT"
	check "$script.sh" bash "$script.sh"
done
verdict "lab checks"
