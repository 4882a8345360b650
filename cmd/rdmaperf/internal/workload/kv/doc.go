// Package kv is the key-value workload: the mixes of YCSB on a store behind calls.
package kv
