// Package results describes results of many clients at one server.
package results
