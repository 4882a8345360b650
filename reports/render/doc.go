// Package render lists the formats in which documents of results are written: one
// package below it a format. A new one is a package and a row here.
package render
