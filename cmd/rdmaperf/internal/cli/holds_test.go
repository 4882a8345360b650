package cli

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A server that is asked by SIGUSR1 says what it holds, and a descriptor and a goroutine
// more are seen; behind its end it says nothing more.
func TestServersSayWhatTheyHold(t *testing.T) {
	var mu sync.Mutex
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(b)
	}), nil))
	ctx, cancel := context.WithCancel(t.Context())
	TellHolds(ctx, log, func() []any { return []any{"clients", 3} })
	line := regexp.MustCompile(
		`msg=holds clients=3 descriptors=(\d+) goroutines=(\d+) threads=(\d+) mappings=(\d+) resident_kib=(\d+)\n`)
	ask := func() (n [5]int) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			m := line.FindStringSubmatch(said.String())
			if m != nil {
				said.Reset()
			}
			mu.Unlock()
			for i := range n {
				if m != nil {
					n[i], _ = strconv.Atoi(m[i+1]) // digits, by the expression
				}
			}
			if m != nil {
				return n
			}
		}
		t.Fatal("asked by SIGUSR1 it says nothing")
		return n
	}
	before := ask()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stay, left := make(chan struct{}), make(chan struct{})
	go func() { defer close(left); <-stay }()
	after := ask()
	if after[0] != before[0]+2 || after[1] != before[1]+1 || after[2] < 1 || after[3] < 5 || after[4] < 1000 {
		t.Errorf("before %v, with two descriptors and a goroutine more %v", before, after)
	}
	close(stay)
	<-left
	r.Close()
	w.Close()
	cancel()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
