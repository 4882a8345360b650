// Package wakeup measures how long the machine takes to wake a thread, and keeps its CPUs from sleeping on request.
// A stack that sleeps for completions pays this time for each message, and one that polls does not: without this figure
// their ratio says as much about the machine. Wake-ups across NUMA nodes are not told apart.
package wakeup
