// Package csv writes results as CSV, a row for each figure.
package csv
