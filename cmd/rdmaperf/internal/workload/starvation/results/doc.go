// Package starvation describes results of two classes on one QP.
package results
