package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
)

// Servers whose clients measure, die and stall, beside connections that say nothing, noise or half of a greeting, go on
// serving whoever is let alone, and hold no more at the end than at the beginning.
func TestServersKeepNothingOfTheirClients(t *testing.T) {
	if !fulltest.Everything() {
		t.Skip("two minutes of clients that die: RDMAPERF_TEST=everything runs them")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	serve, port := serveHere(t, "--shared")
	rping := start(t, "rping", "-s", "-a", "127.0.0.1", "-p", "0")
	var pings string
	eventually(t, "rping listens", func() bool {
		m := listening.FindStringSubmatch(rping.errs.String())
		if m != nil {
			pings = m[1]
		}
		return m != nil
	})
	servers := map[string]*process{"serve": serve, "rping": rping}
	held := map[string][]map[string]float64{}
	const rounds, steps = 10, 15
	for range rounds {
		for range steps {
			attack := attackAt(t, r, []string{port, pings}[r.IntN(2)])
			line := strings.Fields("rping -c -a 127.0.0.1 -V -C 500 -S " + strconv.Itoa(26+r.IntN(60000)) + " -p " + pings)
			if r.IntN(4) > 0 {
				line = append(strings.Fields("run 127.0.0.1 --no-save --pin none --timeout 15s --verify all -p "+port+
					" --transport"), strings.Fields(soakRuns[r.IntN(len(soakRuns))])...)
			}
			client := start(t, line...)
			moment := time.Duration(20+r.IntN(900)) * time.Millisecond
			let := disturb(client, serve, r.IntN(6), moment)
			if code := client.wait(time.Minute); let && code != 0 {
				t.Errorf("%q: exit %d, %s", line, code, client.errs.String())
			}
			for _, c := range attack {
				c.Close()
			}
		}
		time.Sleep(6500 * time.Millisecond) // longer than a greeting may take
		for name, p := range servers {
			held[name] = append(held[name], holds(t, p))
		}
	}
	for name, all := range held {
		for what, may := range map[string]float64{"fds": 2, "threads": 24, "maps": 48, "MiB": 16} {
			fifth := rounds / 5
			from, to := middle(all[fifth:2*fifth], what), middle(all[rounds-fifth:], what)
			t.Logf("%s: %s %g at first, %g at the end", name, what, from, to)
			if to > from+may {
				t.Errorf("%s: %s grew from %g to %g", name, what, from, to)
			}
		}
	}
}

// soakRuns have a server of their own choice, and rates or events where the workload has them.
var soakRuns = []string{
	"tcp --workload latency --op send -s 64 --rate 2000 -D 200ms",
	"iwarp --workload latency --op read,fetch_add -s 8 --rate 1000 -D 100ms",
	"iwarp(nocrc) --workload throughput --op write -s 64K -t 16 --polling event -D 200ms",
	"iwarp --workload throughput --op send -s 1K -q 4 -t 8 --threads 2 --polling event -D 200ms",
	"sched(slice=16K)+iwarp --workload hol --op write --bulk-size 256K -D 100ms",
	"regcache+iwarp --workload latency --op send -s 64 --rate 1000 -D 200ms",
	"lite+iwarp --workload rpc -s 64 --rate 500 -D 200ms",
	"grpc(tcp) --workload rpc -s 64 --rate 500 -D 200ms",
	"grpc(dropin)+iwarp --workload tensor --tensor exchange -s 64K -D 200ms",
	"grpc(fused)+iwarp --workload rpc --rpc stream -s 4K --rate 500 -D 200ms",
	"grpc(service)+iwarp --workload rpc -s 64 --rate 500 -D 200ms",
	"iwarp --workload connect -D 100ms",
	"iwarp --workload incast --clients 4 --op send -s 4K -D 100ms",
	"iwarp --workload allreduce -s 64K -n 3 --buffers reused --algorithm ring",
}

// disturb does what chance chose, and tells whether the client has to end well.
func disturb(client, server *process, how int, after time.Duration) bool {
	ended := func(d time.Duration) bool {
		select {
		case <-client.done:
			return true
		case <-time.After(d):
			return false
		}
	}
	if how > 4 || ended(after) {
		return true
	}
	p := client.cmd.Process
	switch how {
	case 0:
		p.Signal(syscall.SIGKILL)
	case 1:
		p.Signal(syscall.SIGINT)
	case 2: // it stalls, and is killed
		p.Signal(syscall.SIGSTOP)
		ended(time.Second)
		p.Signal(syscall.SIGKILL)
	case 3: // it stalls, and goes on
		p.Signal(syscall.SIGSTOP)
		ended(after)
		p.Signal(syscall.SIGCONT)
		return true
	case 4:
		server.cmd.Process.Signal(syscall.SIGSTOP)
		ended(after)
		server.cmd.Process.Signal(syscall.SIGCONT)
		return true
	}
	return false
}

// attackAt opens connections that say nothing, noise, or how a genuine client begins.
func attackAt(t *testing.T, r *rand.Rand, port string) (all []net.Conn) {
	noise := make([]byte, 1+r.IntN(8192))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	say := [][]byte{nil, noise, []byte(`{"magic":"rdmaperf-control","type":"`),
		append([]byte("MPA ID Req Frame\x40\x01\x00\x00"), noise...)}[r.IntN(4)] // RFC 5044, section 7.1.1
	for range r.IntN(100) {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, 2*time.Second)
		if err != nil {
			continue // the server may refuse
		}
		c.SetDeadline(time.Now().Add(2 * time.Second))
		c.Write(say)
		if r.IntN(2) == 0 {
			c.(*net.TCPConn).SetLinger(0) // it ends with a reset
		}
		all = append(all, c)
	}
	return all
}

// holds is what a process holds, by /proc.
func holds(t *testing.T, p *process) map[string]float64 {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatalf("the server is gone: %v, %s", err, p.errs.String())
	}
	threads, _ := filepath.Glob(dir + "task/*")
	maps, _ := os.ReadFile(dir + "maps")
	status, _ := os.ReadFile(dir + "status")
	_, rss, _ := strings.Cut(string(status), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rss + " 0")[0])
	return map[string]float64{"fds": float64(len(fds)), "threads": float64(len(threads)),
		"maps": float64(strings.Count(string(maps), "\n")), "MiB": float64(kib) / 1024}
}

func middle(all []map[string]float64, what string) float64 {
	var v []float64
	for _, h := range all {
		v = append(v, h[what])
	}
	slices.Sort(v)
	return v[len(v)/2]
}
