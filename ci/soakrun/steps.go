package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// kind is one kind of step. make draws all that chance decides before anything happens,
// so that the seed alone makes the steps; text is for whoever looks for a cause.
type kind struct {
	name   string
	weight int
	make   func(s *soak, r *rand.Rand) (text string, do func(context.Context) error)
}

func choose(r *rand.Rand, all []kind) kind {
	sum := 0
	for _, k := range all {
		sum += k.weight
	}
	for n := r.IntN(sum); ; all = all[1:] {
		if n -= all[0].weight; n < 0 {
			return all[0]
		}
	}
}

// runs are what clients measure: stacks and workloads with a server of their own choice.
// Rates and events instead of spinning where the workload has them.
var runs = []string{
	"tcp latency --op send -s 64 --rate 2000 -D 200ms",
	"iwarp latency --op write -s 4K --rate 2000 -D 200ms",
	"iwarp latency --op read,fetch_add -s 8 --rate 1000 -D 100ms",
	"iwarp(nocrc) throughput --op write -s 64K -t 16 --polling event -D 200ms",
	"iwarp throughput --op send -s 1K -q 4 -t 8 --threads 2 --polling event -D 200ms",
	"iwarp throughput --op read -s 64K -q 2 -t 8 --polling event -D 200ms",
	"sched(slice=16K)+iwarp hol --op write --bulk-size 256K -D 100ms",
	"sched+iwarp starvation --high-load 20 -D 100ms",
	"regcache+iwarp latency --op send -s 64 --rate 1000 -D 200ms",
	"lite+iwarp latency --op write -s 64 --rate 1000 -D 200ms",
	"lite+iwarp rpc -s 64 --rate 500 -D 200ms",
	"grpc(tcp) rpc -s 64 --rate 500 -D 200ms",
	"grpc(dropin)+iwarp rpc -s 4K --rate 500 -D 200ms",
	"grpc(dropin)+iwarp tensor --tensor exchange -s 64K -D 200ms",
	"grpc(fused)+iwarp rpc --rpc stream -s 4K --rate 500 -D 200ms",
	"grpc(fused)+iwarp kv --ycsb a --records 500 --rate 300 -D 200ms",
	"grpc(service)+iwarp rpc -s 64 --rate 500 -D 200ms",
	"tcp connect -D 100ms",
	"iwarp connect -D 100ms",
	"iwarp incast --clients 4 --op send -s 4K -D 100ms",
	"iwarp mixed -s 4K --span 1M -D 200ms",
	"iwarp paramserver --tensor-bytes 0.01 --compute-ratio 0 --ps-arm fifo -n 2",
	"iwarp allreduce -s 64K -n 3 --buffers reused --algorithm ring",
}

// disturbance is what happens to a client.
type disturbance struct {
	signal syscall.Signal // 0: nothing
	after  time.Duration
	resume time.Duration // behind a stop; 0: it is killed instead
}

// client runs a command to its end. A client that was killed or interrupted may end as it
// likes; any other has to end with 0.
func client(ctx context.Context, d disturbance, env string, line ...string) error {
	cmd := exec.Command(line[0], line[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = nil, &said
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	group := -cmd.Process.Pid
	var err error
	forgiven := false
	switch d.signal {
	case 0:
	case syscall.SIGSTOP:
		if done, e := wait(ctx, ended, d.after); done {
			return say(e, &said)
		}
		syscall.Kill(group, syscall.SIGSTOP)
		if d.resume > 0 {
			sleep(ctx, d.resume)
			syscall.Kill(group, syscall.SIGCONT)
		} else {
			sleep(ctx, time.Second)
			syscall.Kill(group, syscall.SIGKILL)
			forgiven = true
		}
	default:
		if done, e := wait(ctx, ended, d.after); done {
			return say(e, &said)
		}
		syscall.Kill(group, d.signal)
		forgiven = true
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
		syscall.Kill(group, syscall.SIGKILL)
		<-ended
		return fmt.Errorf("it did not end: %s", bytes.TrimSpace(said.Bytes()))
	}
	if forgiven {
		return nil
	}
	return say(err, &said)
}

// wait lets a client run for a while; done says that it ended by itself.
func wait(ctx context.Context, ended <-chan error, d time.Duration) (done bool, err error) {
	select {
	case err := <-ended:
		return true, err
	case <-time.After(d):
	case <-ctx.Done():
	}
	return false, nil
}

func say(err error, said *bytes.Buffer) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
}

// measure is one rdmaperf run against one of its servers: open to anybody, for who has the
// token, or for who has that and a certificate.
func (s *soak) measure(r *rand.Rand) (to *server, env string, line []string) {
	spec := strings.Fields(runs[r.IntN(len(runs))])
	var more []string
	switch to, env = s.serve, noToken; r.IntN(5) {
	case 0:
		to, env = s.guarded, tokenOf
	case 1:
		to, env = s.secured, tokenOf
		more = append([]string{"--tls-ca", s.certs.ca}, s.certs.of("client")...)
	}
	host, port, _ := net.SplitHostPort(to.addr) // it came from a listener
	line = []string{s.rdmaperf, "run", host, "-p", port, "--no-save", "--quiet", "--pin", "none", "--verify", "all",
		"--timeout", "15s", "--seed", fmt.Sprint(r.Uint32()),
		"--transport", spec[0], "--workload", spec[1]}
	if line = append(line, spec[2:]...); spec[len(spec)-2] == "-D" {
		line = append(line, "--warmup", "none")
	}
	return to, env, append(line, more...)
}

// ping is one rping client; calls one of gRPC.
func (s *soak) ping(r *rand.Rand) []string {
	host, port, _ := net.SplitHostPort(s.rping.addr)
	return []string{s.rdmaperf, "rping", "-c", "-a", host, "-p", port, "-V", "-C", fmt.Sprint(1 + r.IntN(2000)), "-S",
		fmt.Sprint(26 + r.IntN(60000))}
}

func (s *soak) calls(r *rand.Rand) []string {
	self, _ := os.Executable() // it worked for the server
	form, addr := "dropin", s.grpc.addr
	if r.IntN(2) == 0 {
		form, addr = "fused", s.fused
	}
	size := 1 << r.IntN(21)
	return []string{self, "-as", "grpc-client", "-form", form, "-addr", addr, "-size", fmt.Sprint(size), "-for",
		fmt.Sprintf("%dms", 100+r.IntN(700))}
}

// steps are all kinds. The weights are arbitrary: half of the clients are let alone.
func steps() []kind {
	disturbed := func(name string, weight int, d func(r *rand.Rand) disturbance) kind {
		return kind{name, weight, func(s *soak, r *rand.Rand) (string, func(context.Context) error) {
			var line []string
			env := noToken
			switch r.IntN(4) {
			case 0:
				line = s.ping(r)
			case 1:
				line = s.calls(r)
			default:
				_, env, line = s.measure(r)
			}
			how := d(r)
			return fmt.Sprintf("%v %s", how, strings.Join(line[1:], " ")), func(ctx context.Context) error {
				return client(ctx, how, env, line...)
			}
		}}
	}
	moment := func(r *rand.Rand) time.Duration { return time.Duration(20+r.IntN(900)) * time.Millisecond }
	return append([]kind{
		disturbed("runs let alone", 30, func(*rand.Rand) disturbance { return disturbance{} }),
		disturbed("kills", 14, func(r *rand.Rand) disturbance {
			return disturbance{signal: syscall.SIGKILL, after: moment(r)}
		}),
		disturbed("interrupts", 5, func(r *rand.Rand) disturbance {
			return disturbance{signal: syscall.SIGINT, after: moment(r)}
		}),
		disturbed("stalls", 7, func(r *rand.Rand) disturbance {
			return disturbance{signal: syscall.SIGSTOP, after: moment(r), resume: time.Duration(100+r.IntN(1400)) *
				time.Millisecond}
		}),
		disturbed("stalls and kills", 4, func(r *rand.Rand) disturbance {
			return disturbance{signal: syscall.SIGSTOP, after: moment(r)}
		}),
		{"stalls of the server", 3, func(s *soak, r *rand.Rand) (string, func(context.Context) error) {
			to, env, line := s.measure(r)
			after, length := moment(r), time.Duration(100+r.IntN(900))*time.Millisecond
			return fmt.Sprintf("%v for %v: %s", after, length, strings.Join(line[1:], " ")),
				func(ctx context.Context) error {
					ended := make(chan error, 1)
					go func() { ended <- client(ctx, disturbance{}, env, line...) }()
					sleep(ctx, after)
					to.cmd.Process.Signal(syscall.SIGSTOP)
					sleep(ctx, length)
					to.cmd.Process.Signal(syscall.SIGCONT)
					return <-ended
				}
		}},
	}, attacks()...)
}
