// Package results describes results of a training with one parameter server.
package results
