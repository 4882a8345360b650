// Package connect describes results of connection set-up in stages.
package results
