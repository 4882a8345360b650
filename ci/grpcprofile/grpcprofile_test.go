package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

const listing = `File: rdmaperf
Type: cpu
Duration: 4.54s, Total samples = 180ms
-----------+-------------------------------------------------------
     100ms   internal/runtime/syscall/linux.Syscall6
             syscall.RawSyscall6
             github.com/rdmaperf/rdmaperf/transports/stream.(*socket).Sendv
             google.golang.org/grpc/internal/transport.(*loopyWriter).run
-----------+-------------------------------------------------------
      30ms   runtime.memmove
             golang.org/x/net/http2.(*Framer).WriteData
-----------+-------------------------------------------------------
      20ms   github.com/rdmaperf/rdmaperf/softstack/mpa.foldCRC (inline)
             github.com/rdmaperf/rdmaperf/softstack/iwarp.(*qp).receive
-----------+-------------------------------------------------------
      10ms   google.golang.org/grpc/internal/transport.(*writeQuota).get
-----------+-------------------------------------------------------
      10ms   main.nobodyKnows
-----------+-------------------------------------------------------
      10ms   internal/runtime/syscall/linux.Syscall6
             syscall.write
             internal/poll.(*FD).Write
`

func TestSamplesCountForTheInnermostKnownFunction(t *testing.T) {
	got := map[string]float64{}
	total, err := count(strings.NewReader(listing), got)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(total-0.18) > 1e-9 {
		t.Errorf("%v s in all, want 0.18", total)
	}
	for k, want := range map[string]float64{send: 0.11, copying: 0.03, checksum: 0.02, flow: 0.01, other: 0.01} {
		if math.Abs(got[k]-want) > 1e-9 {
			t.Errorf("%s: %v s, want %v", k, got[k], want)
		}
	}
}

func TestEveryKindHasALine(t *testing.T) {
	var out bytes.Buffer
	shares := map[string]float64{}
	for _, k := range []string{send, receive, sleep, copying, checksum, flow, framing, fusedWork, soft, memory,
		scheduler, compare, other} {
		shares[k] = 1
	}
	if err := write(&out, []column{{name: "stack", perCall: 1e3, calls: 1, shares: shares}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "100.0 %"); got != len(shares) || got != len(kinds) {
		t.Errorf("%d lines of %d kinds, %d in the table:\n%s", got, len(shares), len(kinds), out.String())
	}
}

func TestOtherListingsAreRefused(t *testing.T) {
	if _, err := count(strings.NewReader("-----------+---\n  fast   main.main\n"), map[string]float64{}); err == nil {
		t.Error("taken")
	}
}
