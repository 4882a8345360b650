// Package rpc is the workload of calls with requests and responses of chosen lengths:
// single calls, exchanges on a stream that stays, and streams one way.
package rpc
