package cli

import (
	"strings"
	"testing"
)

func TestLinesAreCutToTheTerminal(t *testing.T) {
	long := "2/6 grpc(fused,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc) rpc unary 64 B, about 3s left"
	for _, columns := range []int{46, 66, 200} {
		got := Cut(long, columns)
		if n := len([]rune(got)); n > columns || !strings.HasPrefix(got, "2/6 ") || !strings.HasSuffix(got, "3s left") {
			t.Errorf("%d columns: %q has %d", columns, got, n)
		}
	}
	if Cut("ÄÖÜ µs", 10) != "ÄÖÜ µs" {
		t.Error("a short line is changed")
	}
}
