// Package html draws a page as one HTML file that loads nothing: its template, its
// style, and charts in SVG.
//
// Limitations: a chart has eight looks of series; the ninth begins again.
package html
