// Package answer makes of a result document what it shows: a matrix of figures with a row for each stack, sentences
// with factors and intervals that rest on it, and what limits them. All functions are pure.
package answer
