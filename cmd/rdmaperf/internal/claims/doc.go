// Package claims holds what papers say of their systems as data, runs it here, and says of each claim whether it is
// shown.
// A paper is one file with one Paper, and a line in All. A Run has the arguments of rdmaperf as a user types them; an
// At names a figure of it, as --fail-if does, by stack and dimensions; a rule compares figures and has bounds, this
// project's unless Published says otherwise. Against names the arm for which the rule must not hold: one that holds
// there decides nothing.
// The first look at a rule has the fewest rounds that give an interval, each other three times as many. The level is
// divided among rules and looks (Bonferroni), so that the verdicts of a paper hold together with 95 %.
package claims
