// Package etcd holds no code but tests: etcd beside RDMA, with a real server in the process.
//
// Servers whose addresses are in etcd as rdma:///host:port are found by the resolver of etcd's client (its package
// naming), by both forms of gRPC over RDMA, and come and go. And etcd's own API is served and used over both forms: by
// drop-in, the server and the client are etcd's, whole; by fused, etcd's services are registered with a fused server
// and etcd's clients made from their stubs. Every test runs over TCP, too.
//
// It is a module of its own, so that programs that use grpcrdma do not get etcd's dependencies. ci/etcd runs it.
// Interceptors that etcd's server has and does not export (the check for a leader, metrics) are not on the fused
// server.
package etcd
