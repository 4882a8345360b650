package transports

import "bytes"

// Parts are bytes that arrived, in one or more pieces, in order. They are read only.
type Parts [][]byte

// Len is the number of bytes.
func (p Parts) Len() int {
	n := 0
	for _, part := range p {
		n += len(part)
	}
	return n
}

// First is the first byte; ok is false where there is none.
func (p Parts) First() (b byte, ok bool) {
	for _, part := range p {
		if len(part) > 0 {
			return part[0], true
		}
	}
	return 0, false
}

// AppendTo appends a copy of all bytes to dst.
func (p Parts) AppendTo(dst []byte) []byte {
	for _, part := range p {
		dst = append(dst, part...)
	}
	return dst
}

// Differs compares with want: the place of the first byte that differs, or of the end of
// the shorter, and what is there; -1 for equal ones.
func (p Parts) Differs(want []byte) (at int, got byte) {
	at, got, over := p.compare(0, want)
	if at < 0 && len(over) > 0 {
		return len(want), over[0]
	}
	return at, got
}

// DiffersAt compares what lies from offset on with want: the place in want of the first
// byte that differs or is missing, and what is there; -1 for none.
func (p Parts) DiffersAt(offset int, want []byte) (at int, got byte) {
	at, got, _ = p.compare(offset, want)
	return at, got
}

// compare looks at len(want) bytes from offset on; over is what follows them in their
// part, or in the first part behind that holds any.
func (p Parts) compare(offset int, want []byte) (at int, got byte, over []byte) {
	for _, part := range p {
		if offset >= len(part) {
			offset -= len(part)
			continue
		}
		part = part[offset:]
		offset = 0
		n := min(len(part), len(want)-at)
		if !bytes.Equal(part[:n], want[at:at+n]) {
			for i := range n {
				if part[i] != want[at+i] {
					return at + i, part[i], nil
				}
			}
		}
		if at += n; n < len(part) {
			return -1, 0, part[n:]
		}
	}
	if at < len(want) {
		return at, 0, nil
	}
	return -1, 0, nil
}
