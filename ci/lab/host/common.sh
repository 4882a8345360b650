# shellcheck shell=bash
# shellcheck disable=SC2154 # ci/lab/run sets what is not set here
# Words and waits that every part of the lab's host side uses.

say() { echo "lab: $*" >&2; }
die() {
	say "$1"
	exit "${2:-1}"
}

# not_run CAUSE REMEDY: the lab cannot run here. It is never a pass.
not_run() {
	say "NOT RUN: $1"
	say "NOT RUN: what to do: $2"
	exit 77
}

# locked FILE COMMAND…: one builder at a time; runs that share a cache wait for
# each other, but not for ever.
locked() {
	local lock=$1 fd
	shift
	exec {fd}>"$lock"
	flock -w 600 "$fd" || die "wait for $lock: another run holds it for ten minutes"
	"$@" # never after || or in a condition: errexit would be off in it
	exec {fd}>&-
}

# forget_old KIND LEFTOVERS: takes what nobody used for a week out of the cache, and
# what a build that was interrupted left. Other trees share the cache, so what is
# young may be in use.
forget_old() {
	find "$cache" -mindepth 1 -maxdepth 1 -name "$1-*" ! -name '*.lock' -mtime +7 -exec rm -rf {} +
	find "$cache" -mindepth 1 -maxdepth 1 -name "$2" -exec rm -rf {} +
}

# digest WORD…: a short key made of the words.
digest() { printf '%s\n' "$@" | sha256sum | cut -c1-16; }

# end_child: ends the background process that this run waits for, by its id.
end_child() {
	[[ -n ${child-} ]] || return 0
	kill -TERM "$child" 2>/dev/null || true
	wait "$child" 2>/dev/null || true
}

# follow_caller SCRIPT ARG…: makes this run die with whoever started it, also when that one
# is killed and says nothing: SIGTERM comes by itself then (prctl(2), PR_SET_PDEATHSIG), and
# the traps of the run end the guest. It starts the script once more to get there.
follow_caller() {
	local follows=${RDMAPERF_LAB_FOLLOWS-}
	unset RDMAPERF_LAB_FOLLOWS
	if [[ -n $follows ]] || ! command -v setpriv >/dev/null; then return 0; fi
	RDMAPERF_LAB_FOLLOWS=1 exec setpriv --pdeathsig TERM bash "$@"
}

# following SIGNAL COMMAND…: the command gets the signal when its parent ends.
following() {
	if command -v setpriv >/dev/null; then exec setpriv --pdeathsig "$@"; fi
	shift
	exec "$@"
}
