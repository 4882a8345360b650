// Package example holds gRPC programs as anybody writes them, and beside each the
// same program over RDMA. They differ in two lines: the import of rdmaenv, and the
// listener or the dial option that comes from it.
//
//	helloworld   one unary call
//	tours        a call of every kind: unary, streams in either direction and in both
//
// In each, server and client are the programs over TCP, and rdma/server and
// rdma/client those over RDMA. A client over RDMA reaches the server over TCP, too,
// and says so. See README.md for how to run them.
//
// # Ownership
//
// The programs own what they open until they end.
//
// # Limitations
//
// Connections are not encrypted, as in any first example; credentials go where they
// always go.
package example

//go:generate protoc --go_out=helloworld/hello --go_opt=paths=source_relative --go-grpc_out=helloworld/hello --go-grpc_opt=paths=source_relative -I helloworld/hello hello.proto
//go:generate protoc --go_out=tours/tour --go_opt=paths=source_relative --go-grpc_out=tours/tour --go-grpc_opt=paths=source_relative -I tours/tour tour.proto
