package rdmap

import "testing"

// Headers are written into as many octets as they have; into one fewer nothing is.
func TestHeadersNeedTheirOctets(t *testing.T) {
	for name, c := range map[string]struct {
		n   int
		put func(b []byte)
	}{
		"atomic request": {AtomicRequestLen, func(b []byte) { PutAtomicRequest(b, &AtomicRequest{}) }},
		"atomic response": {AtomicResponseLen,
			func(b []byte) { PutAtomicResponse(b, &AtomicResponse{ID: 1 << 24, Original: 1 << 56}) }},
		"read request": {ReadRequestLen,
			func(b []byte) { PutReadRequest(b, &ReadRequest{SinkSTag: 1 << 24, SrcTO: 1}) }},
	} {
		c.put(make([]byte, c.n))
		short := make([]byte, c.n-1)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: %d octets were enough", name, c.n-1)
				}
			}()
			c.put(short)
		}()
		for i, b := range short {
			if b != 0 {
				t.Errorf("%s: octet %d was written before the panic", name, i)
			}
		}
	}
}
