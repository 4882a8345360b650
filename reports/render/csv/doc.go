// Package csv writes results as CSV, a row a result, below a header that only grows
// at its end.
package csv
