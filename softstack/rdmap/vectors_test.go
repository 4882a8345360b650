package rdmap

import (
	"encoding/hex"
	"strings"
)

// unhex reads hex with blanks.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// Segments of two FPDUs, V10 and V11 of package wiretest, which encodes and decodes all of that list.
var (
	writeHello = unhex("c140 11223344 00000000 00001000 68656c6c 6f")
	read16     = unhex("4141 00000000 00000001 00000001 00000000 aabbccdd 00000000 00002000 00000010 11223344 " +
		"00000000 00001000")
)
