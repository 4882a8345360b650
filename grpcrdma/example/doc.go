// Package example holds gRPC programs, and beside each the same program over RDMA, which differs in two lines: the
// import of rdmaenv, and the listener or dial option that comes from it. README.md says how to run them.
package example

//go:generate protoc --go_out=helloworld/hello --go_opt=paths=source_relative --go-grpc_out=helloworld/hello --go-grpc_opt=paths=source_relative -I helloworld/hello hello.proto
