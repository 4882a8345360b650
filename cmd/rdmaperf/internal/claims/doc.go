// Package claims holds what papers say of their systems as data, runs it here, and says of each claim whether it is
// shown.
//
// A paper is one file with one Paper, and a line in All. A claim is written in four steps:
//
//  1. A Run has the arguments of rdmaperf exactly as a user types them. Claims that use the same variable share it.
//  2. An At names a figure of it: as --fail-if has it (loaded.p50), by the stack as typed, and by the dimensions that
//     tell the point from others ("arm=same-qp bulk_size=1M"; also op, size, depth, qps, threads).
//  3. A rule compares figures and has bounds: Ratio, Growth, Order, Flat, Value, Count, Pass; Exact is for figures
//     without scatter. Bounds are this project's
//     unless Published says that they are the paper's. Against names the arm for which the rule must not hold.
//  4. A claim has an ID, a sentence, its source, and what the paper published, as text.
//
// Rounds are added in looks, until a rule is decided: the first look has the fewest that give an interval, each other
// three times those of the one before. The level is divided among the rules with bounds and the looks (Bonferroni), so
// that the verdicts of a paper hold together with 95 %; rules without bounds are figures and have no interval.
//
// Every rule is judged for its Against arm, too, on the same results. One that holds there separates nothing, and its
// claim is undecided. A test refuses a rule that names no such arm, or that two equal arms would keep.
package claims
