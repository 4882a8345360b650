// Package results describes results of two classes on one QP.
package results
