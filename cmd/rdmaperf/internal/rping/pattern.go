package rping

import "strconv"

// Sizes of a ping in bytes. The least one holds the longest text in front of the pattern, as rping demands of its -S.
const (
	MinSize     = 26
	MaxSize     = 64<<10 - 1
	DefaultSize = 64
)

const (
	firstChar = 'A'
	lastChar  = 'z'
	numChars  = lastChar - firstChar + 1
)

// Fill writes the content of ping number n into buf, MinSize bytes or more, and allocates nothing.
func Fill(buf []byte, n int) {
	text := append(buf[:0], "rdma-ping-"...)
	text = strconv.AppendInt(text, int64(n), 10)
	text = append(text, ": "...)
	c := byte(firstChar + n%numChars)
	for i := len(text); i < len(buf); i++ {
		buf[i] = c
		if c++; c > lastChar {
			c = firstChar
		}
	}
	buf[len(buf)-1] = 0
}
