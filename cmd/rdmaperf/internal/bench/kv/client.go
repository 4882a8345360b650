package kv

import (
	"context"
	"encoding/binary"
	"time"

	"google.golang.org/grpc"
)

// Client makes calls. It is safe for concurrent use.
type Client struct {
	cc   grpc.ClientConnInterface
	opts []grpc.CallOption
}

// NewClient makes a client.
func NewClient(cc grpc.ClientConnInterface) *Client {
	return &Client{cc, []grpc.CallOption{grpc.CallContentSubtype(codecName)}}
}

// Call is room for a call and its answer. It belongs to one goroutine.
type Call struct {
	c   *Client
	in  request
	out response
}

// NewCall makes one.
func (c *Client) NewCall() *Call { return &Call{c: c} }

// Reply is the answer to a call.
type Reply struct {
	Store time.Duration // that the server spent in the store
	Value []byte        // until Free or the next call
}

// Get reads a record. A missing one is codes.NotFound.
func (c *Call) Get(ctx context.Context, key []byte) (Reply, error) {
	c.in = request{key: key, count: 1}
	return c.do(ctx, "/"+serviceName+"/Get")
}

// Put writes a record that may be new. Its value is the caller's again on return.
func (c *Call) Put(ctx context.Context, key, value []byte) (Reply, error) {
	c.in = request{key: key, value: value}
	return c.do(ctx, "/"+serviceName+"/Put")
}

// Patch overwrites a part of a record. It is the caller's again on return.
func (c *Call) Patch(ctx context.Context, key []byte, offset int, part []byte) (Reply, error) {
	c.in = request{key: key, offset: uint32(offset), value: part}
	return c.do(ctx, "/"+serviceName+"/Patch")
}

// Scan reads up to count records from key on, for Records.
func (c *Call) Scan(ctx context.Context, key []byte, count int) (Reply, error) {
	c.in = request{key: key, count: uint32(count)}
	return c.do(ctx, "/"+serviceName+"/Scan")
}

func (c *Call) do(ctx context.Context, method string) (Reply, error) {
	c.Free()
	if err := c.c.cc.Invoke(ctx, method, &c.in, &c.out, c.c.opts...); err != nil {
		return Reply{}, err
	}
	return Reply{time.Duration(binary.LittleEndian.Uint64(c.out.data)), c.out.data[responseHeader:]}, nil
}

// Free gives the last answer back. Idempotent.
func (c *Call) Free() { c.out.free() }
