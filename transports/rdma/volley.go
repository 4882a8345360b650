package rdma

// Until is what a Volley waits for.
type Until uint8

const (
	UntilSend Until = iota // a completion of the send queue
	UntilRecv              // a completion of the receive queue
	UntilByte              // the byte at Watch is not Was any more
)

// Volley is one side's step of a ping-pong: post a request, look until something
// happens, and answer it. Several are taken in one call. Whoever asks learns when it
// happened, and whoever answers does so before it knows itself, so that no figure
// carries the way into the provider and out of it, nor the caches that the way cost.
// It holds no pointer.
type Volley struct {
	Ask    SendWR // posted first, with HasAsk
	Answer SendWR // posted when the wait has ended, with HasAnswer
	// Expect is the ID of the receive that UntilRecv answers. Something else arrived
	// when it is another one, or when its length is not that of the answer, or its
	// immediate that of an answer with immediate: then nothing is answered.
	Expect uint64
	Watch  uint64 // UntilByte: an address in a registration
	// Took is the ns from before Ask was posted until the wait ended, and nothing on
	// the side that answers. Start is the provider's reading of its own clock, kept
	// from the call that posted Ask to the one that ends the wait.
	Start, Took int64
	Looks       uint32 // how often it looks at the CQ at most, and often at the byte in between
	Until       Until
	Was         byte
	HasAsk      bool // cleared when it is posted
	HasAnswer   bool // cleared when it is posted
	Met         bool // result: the wait ended
}
