//go:build !race

package sched_test

const racing = false
