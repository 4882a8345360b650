package values

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errUTF16 is what PowerShell's > writes.
var errUTF16 = errors.New("it is UTF-16, want UTF-8 (in PowerShell: ... | Out-File -Encoding utf8 FILE)")

// Text reads UTF-8 from r without a byte order mark; UTF-16 is an error.
func Text(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(3) // a shorter file has no mark
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}),
		len(head) > 1 && (head[0] == 0) != (head[1] == 0):
		return nil, errUTF16
	case bytes.Equal(head, []byte("\ufeff")):
		_, err = b.Discard(len(head))
		return b, err
	}
	return b, nil
}

// ReadText reads what Text gives, of which max bytes and one more, by which a caller sees that there are more.
func ReadText(r io.Reader, max int64) ([]byte, error) {
	t, err := Text(r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(t, max+1))
}
