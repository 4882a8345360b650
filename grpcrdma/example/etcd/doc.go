// Package etcd holds no code but tests: etcd beside RDMA, with a real server in the process. The resolver of etcd's
// client finds servers at rdma:///host:port, and etcd's own API is served and used over both forms of gRPC.
//
// It is a module of its own, so that programs that use grpcrdma do not get etcd's dependencies. ci/etcd runs it.
package etcd
