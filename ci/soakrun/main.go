// Command soakrun is what ci/soak runs: servers that stay, one step at a time against
// them, and what they hold meanwhile. The script's head says what for.
//
// # Ownership
//
// Servers and clients are children in process groups of their own, which end with this
// process: servers hold a pipe's end or die with their parent, clients are waited for.
//
// # Limitations
//
// IPv4 loopback, stacks without a device. The seed gives the order, kinds and sizes of
// steps, and when a signal is due; what a machine does with that moment is its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// What surrounds steps. All arbitrary but that a round's rest is longer than the five
// seconds that a greeting may take, so that no connection of an attack is counted.
const (
	stepsARound = 20
	rest        = 6500 * time.Millisecond
	stepLimit   = 60 * time.Second
	rowsInTable = 10
)

func main() {
	var s soak
	role := flag.String("as", "", "for ci/soak itself: grpc-server or grpc-client")
	addr := flag.String("addr", "", "of a grpc-client: whom to call")
	form := flag.String("form", "dropin", "of a grpc-client: dropin or fused")
	length := flag.Duration("for", time.Second, "of a grpc-client: how long")
	size := flag.Int("size", 64, "of a grpc-client: bytes of a request")
	minutes := flag.Float64("minutes", 1, "how long")
	seed := flag.Uint64("seed", 0, "of the steps; 0: random")
	flag.StringVar(&s.rdmaperf, "rdmaperf", "", "the program under test")
	flag.DurationVar(&s.pause, "pause", 400*time.Millisecond, "between two steps")
	flag.StringVar(&s.logs, "logs", "", "directory for the servers' logs")
	commit := flag.String("commit", "unknown", "what is told of the program")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	switch *role {
	case "grpc-server":
		err = serveCalls(ctx)
	case "grpc-client":
		err = makeCalls(ctx, *form, *addr, *size, *length)
	default:
		for *seed == 0 {
			*seed = rand.Uint64N(1 << 32)
		}
		fmt.Printf("soak: seed %d, %g minutes, commit %s\n", *seed, *minutes, *commit)
		s.random = rand.New(rand.NewPCG(*seed, 1))
		err = s.run(ctx, time.Duration(*minutes*float64(time.Minute)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak is one run.
type soak struct {
	rdmaperf string
	logs     string
	pause    time.Duration
	random   *rand.Rand

	serve, guarded, secured, rping, grpc *server

	fused string // address of grpc's second listener
	certs certs  // of secured and its clients
	plan  []byte // a genuine client's first line

	taken  map[string]int // steps by name
	failed []string       // clients that were let alone and were not served
}

func (s *soak) run(ctx context.Context, length time.Duration) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.stop()
	s.taken = map[string]int{}
	servers := s.servers()
	// Every kind of step once, so that what is loaded once is there before it is counted.
	all := steps()
	for _, k := range all {
		if err := s.step(ctx, k); err != nil {
			return err
		}
	}
	begun := time.Now()
	for round := 1; ; round++ {
		for range stepsARound {
			if err := s.step(ctx, choose(s.random, all)); err != nil {
				return err
			}
		}
		if err := sleep(ctx, rest); err != nil {
			return err
		}
		for _, p := range servers {
			h, err := p.holds(ctx)
			if err != nil {
				return err
			}
			h.after = time.Since(begun)
			p.held = append(p.held, h)
		}
		if time.Since(begun) >= length && round >= fewestRounds {
			break
		}
	}
	s.say(all)
	grew := table(os.Stdout, servers)
	for _, f := range s.failed {
		fmt.Println("failed:", f)
	}
	if grew || len(s.failed) > 0 {
		return fmt.Errorf("%d clients that were let alone failed, growth beyond the bounds: %v", len(s.failed), grew)
	}
	fmt.Println("soak: nothing grew, and every client that was let alone was served")
	return nil
}

// step takes one step, counts it, and notes what a client without a disturbance suffered.
func (s *soak) step(ctx context.Context, k kind) error {
	text, do := k.make(s, s.random)
	limit, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	s.taken[k.name]++
	if err := do(limit); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.failed = append(s.failed, fmt.Sprintf("step %d, %s: %s: %v", s.steps(), k.name, text, err))
		fmt.Println(s.failed[len(s.failed)-1])
	}
	for _, p := range s.servers() {
		if err := p.gone(); err != nil {
			return fmt.Errorf("step %d, %s: %s: %w", s.steps(), k.name, text, err)
		}
	}
	return sleep(ctx, s.pause)
}

func (s *soak) steps() (n int) {
	for _, k := range s.taken {
		n += k
	}
	return n
}

func (s *soak) say(all []kind) {
	fmt.Printf("%d steps:", s.steps())
	for i, k := range all {
		if i > 0 {
			fmt.Print(",")
		}
		fmt.Printf(" %d %s", s.taken[k.name], k.name)
	}
	fmt.Println()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
