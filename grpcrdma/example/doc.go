// Package example holds gRPC programs as anybody writes them, and beside each the same program over RDMA. They differ
// in two lines: the import of rdmaenv, and the listener or the dial option that comes from it.
//
// In helloworld, server and client are the programs over TCP, and rdma/server and rdma/client those over RDMA. A client
// over RDMA reaches the server over TCP, too, and logs it. README.md says how to run them.
package example

//go:generate protoc --go_out=helloworld/hello --go_opt=paths=source_relative --go-grpc_out=helloworld/hello --go-grpc_opt=paths=source_relative -I helloworld/hello hello.proto
