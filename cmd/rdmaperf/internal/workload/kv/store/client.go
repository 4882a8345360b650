package store

import (
	"encoding/binary"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

// Client makes calls, one at a time. It belongs to one goroutine.
type Client struct {
	k       transports.Caller
	c       transports.Call
	request []byte
	answer  []byte // of one that arrived in pieces
}

// NewClient makes one that calls with k, which it owns.
func NewClient(k transports.Caller) *Client { return &Client{k: k} }

// Reply is the answer to a call.
type Reply struct {
	Store time.Duration // that the server spent in the store
	Value []byte        // until Free or the next call
}

// Get reads a record. A missing one is transports.CallNotFound.
func (c *Client) Get(key []byte) (Reply, error) {
	return c.do(methodGet, request{key: key, count: 1})
}

// Put writes a record that may be new.
func (c *Client) Put(key, value []byte) (Reply, error) {
	return c.do(methodPut, request{key: key, value: value})
}

// Patch overwrites a part of a record.
func (c *Client) Patch(key []byte, offset int, part []byte) (Reply, error) {
	return c.do(methodPatch, request{key: key, offset: uint32(offset), value: part})
}

// Scan reads up to count records from key on, for Records.
func (c *Client) Scan(key []byte, count int) (Reply, error) {
	return c.do(methodScan, request{key: key, count: uint32(count)})
}

func (c *Client) do(method uint8, r request) (Reply, error) {
	c.request = r.append(c.request[:0])
	c.c.Method, c.c.Request = method, c.request
	if err := c.k.Call(&c.c); err != nil {
		return Reply{}, err
	}
	var data []byte
	if len(c.c.Response) == 1 {
		data = c.c.Response[0]
	} else {
		c.answer = c.c.Response.AppendTo(c.answer[:0])
		data = c.answer
	}
	if len(data) < responseHeader {
		c.Free()
		return Reply{}, &transports.CallError{Code: transports.CallInternal, Text: "decode response: cut off"}
	}
	return Reply{time.Duration(binary.LittleEndian.Uint64(data)), data[responseHeader:]}, nil
}

// Free gives the last answer back. Idempotent.
func (c *Client) Free() { c.k.Free() }

// Close closes the Caller.
func (c *Client) Close() error { return c.k.Close() }
