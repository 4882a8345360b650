// Package paramserver describes results of a training with one parameter server.
package results
