// Package latex writes the tables of a page for papers: a file for \input, in plain LaTeX
// with booktabs.
//
// # Limitations
//
// No charts. What is neither ASCII nor one of a few signs stands as a question mark, so
// that every engine and font encoding takes the file. A table is as wide as its figures: in
// a narrow column it wants the author's hand.
package latex
