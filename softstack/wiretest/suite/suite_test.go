package suite

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// careless accepts every Request, whatever it says, and then takes every octet
// without a word: it keeps no rule that a peer could see.
func careless(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.ReadFull(c, make([]byte, mpa.FrameHeaderLen)); err == nil {
					rep := mpa.Frame{Reply: true, Rev: 2, Enhanced: true, Enh: mpa.Enhanced{IRD: 4, ORD: 9}}
					c.Write(mpa.AppendFrame(nil, &rep))
				}
				io.Copy(io.Discard, c)
				<-t.Context().Done() // the end of the connection is not the peer's answer
			}()
		}
	}()
	return l.Addr().String()
}

// TestEveryCaseCanFail: against a peer that keeps no rule every case that runs is red.
func TestEveryCaseCanFail(t *testing.T) {
	rep := Run(t.Context(), careless(t), Options{Options: conform.Options{CaseTimeout: 150 * time.Millisecond},
		Hazard: true})
	if rep.Err != nil {
		t.Fatal(rep.Err)
	}
	for _, r := range rep.Results {
		switch {
		case r.Level == conform.May.String():
		case r.Verdict == conform.Unsupported && r.Evidence != "":
		case r.Verdict != conform.Fail || len(r.Want) == 0 || r.Got == "":
			t.Errorf("%s: %s %q want %q, got %q", r.ID, r.Verdict, r.Evidence, r.Want, r.Got)
		}
	}
}

func TestHazardsAreAskedFor(t *testing.T) {
	rep := Run(t.Context(), careless(t), Options{Options: conform.Options{CaseTimeout: 50 * time.Millisecond,
		Only: []string{"w-01", "w-70"}}})
	for _, r := range rep.Results {
		if r.Verdict != conform.Unsupported {
			t.Errorf("%s: %s", r.ID, r.Verdict)
		}
	}
}

func TestNobodyThereIsNotRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	rep := Run(t.Context(), addr, Options{})
	if !errors.Is(rep.Err, conform.ErrNotRun) || conform.ExitCode(rep) != conform.ExitNotRun ||
		rep.Counts()[conform.NotRun] != len(Catalogue()) {
		t.Errorf("%v, exit %d, %v", rep.Err, conform.ExitCode(rep), rep.Counts())
	}
}

func TestAnEndedRunLeavesNotRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rep := Run(ctx, careless(t), Options{Options: conform.Options{CaseTimeout: time.Second}})
	if n := rep.Counts()[conform.NotRun]; n != len(Catalogue()) {
		t.Errorf("%d of %d notrun", n, len(Catalogue()))
	}
}

func TestCatalogueHasEveryRow(t *testing.T) {
	name := regexp.MustCompile(`^[wx]-\d\d/[a-z0-9-]+$`)
	seen := map[string]bool{}
	for _, r := range table() {
		if !name.MatchString(r.ID) || seen[r.ID[:4]] || r.Clause == "" || r.Requirement == "" || r.run == nil {
			t.Errorf("row %q", r.ID)
		}
		seen[r.ID[:4]] = true
	}
	for i := 1; i <= 70; i++ {
		if id := "w-" + string(rune('0'+i/10)) + string(rune('0'+i%10)); !seen[id] {
			t.Errorf("no case %s", id)
		}
	}
}
