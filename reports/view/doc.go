// Package view is what reports are drawn from: tables, charts and their axes as
// data, and how figures are written in words. It draws nothing and knows no result.
//
// Ownership: values are plain data of whoever made them.
//
// Limitations: numbers of tables are text already, in the units that the table is
// for; a chart's values are numbers.
package view
