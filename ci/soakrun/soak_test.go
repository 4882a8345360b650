package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rounds makes what a server held in n rounds.
func rounds(n int, at func(i int) float64) *server {
	p := &server{name: "server"}
	for i := range n {
		v := at(i)
		p.held = append(p.held, holding{time.Duration(i) * time.Minute, v, v, v, v, v})
	}
	return p
}

func TestGrowthIsToldFromUnrest(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		at   func(i int) float64
		want bool
	}{
		{"nothing moves", 3, func(int) float64 { return 10 }, false},
		{"one late connection at the end", 20, func(i int) float64 { return 10 + 90*float64(i/19) }, false},
		{"what is loaded once", 20, func(i int) float64 { return 10 + 90*min(float64(i), 1) }, false},
		{"up and down", 30, func(i int) float64 { return 10 + float64(i%2) }, false},
		{"a descriptor in five rounds", 30, func(i int) float64 { return 10 + float64(i/5) }, true},
		{"something in each of few rounds", 3, func(i int) float64 { return 10 + 3*float64(i) }, true},
	} {
		var out bytes.Buffer
		if got := table(&out, []*server{rounds(c.n, c.at)}); got != c.want {
			t.Errorf("%s: grew %v, want %v\n%s", c.name, got, c.want, &out)
		}
		if said := strings.Contains(out.String(), "descriptors grew from"); said != c.want {
			t.Errorf("%s: the table says %s", c.name, &out)
		}
	}
}

// The same seed makes the same steps, another one others, and every kind has its turn.
func TestASeedMakesTheSteps(t *testing.T) {
	s := &soak{rdmaperf: "rdmaperf", plan: []byte("a plan"), serve: &server{addr: "127.0.0.1:1"},
		guarded: &server{addr: "127.0.0.1:2"}, rping: &server{addr: "127.0.0.1:3"}, grpc: &server{addr: "127.0.0.1:4"},
		fused:   "127.0.0.1:5",
		secured: &server{addr: "127.0.0.1:6"}, certs: certs{ca: "ca.pem", dir: "/", hello: []byte("a hello")}}
	plan := func(seed uint64) (all string, kinds map[string]bool) {
		r, kinds := rand.New(rand.NewPCG(seed, 1)), map[string]bool{}
		for range 1000 {
			k := choose(r, steps())
			text, _ := k.make(s, r)
			kinds[k.name] = true
			all += k.name + text + "\n"
		}
		return all, kinds
	}
	a, kinds := plan(1)
	if b, _ := plan(1); a != b {
		t.Error("the same seed makes other steps")
	}
	if b, _ := plan(2); a == b {
		t.Error("another seed makes the same steps")
	}
	if len(kinds) != len(steps()) {
		t.Errorf("of %d kinds %d came in 1000 steps", len(steps()), len(kinds))
	}
	for _, to := range []string{"-p 1 ", "-p 2 ", "-p 6 "} {
		if !strings.Contains(a, to) {
			t.Errorf("no run went to %s", to)
		}
	}
	if n, m := strings.Count(a, "-p 6 "), strings.Count(a, "--tls-ca ca.pem --tls-cert /client.pem"); n != m {
		t.Errorf("%d runs against the server with TLS, %d speak it", n, m)
	}
	for _, r := range runs {
		if !strings.Contains(a, strings.Fields(r)[0]) {
			t.Errorf("%s never came", r)
		}
	}
}

// A client that is let alone has to end well; one that was killed may end as it likes; one
// that was stopped and went on has to end well again; one that never ends is killed.
func TestClientsEndAsTheyMust(t *testing.T) {
	soon := 20 * time.Millisecond
	for _, c := range []struct {
		name, script, wrong string
		d                   disturbance
	}{
		{"well", "exit 0", "", disturbance{}},
		{"badly", "echo reason >&2; exit 5", "exit status 5: reason", disturbance{}},
		{"killed", "sleep 30", "", disturbance{signal: syscall.SIGKILL, after: soon}},
		{"badly before it was killed", "exit 4", "exit status 4", disturbance{signal: syscall.SIGKILL, after: 10 *
			time.Second}},
		{"stopped, then well", "sleep 0.2", "", disturbance{signal: syscall.SIGSTOP, after: soon, resume: soon}},
		{"stopped, then badly", "sleep 0.2; exit 3", "exit status 3", disturbance{signal: syscall.SIGSTOP, after: soon,
			resume: soon}},
		{"stopped, then killed", "sleep 30", "", disturbance{signal: syscall.SIGSTOP, after: soon}},
		{"never", "sleep 30", "it did not end", disturbance{}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := client(ctx, c.d, noToken, "/bin/sh", "-c", c.script)
		cancel()
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wrong)
		}
	}
}

// A server that ended is noticed with its last words, and one that stays is counted.
func TestServersAreWatched(t *testing.T) {
	p, _, err := begin(t.Context(), t.TempDir(), "stand-in", noToken, "/bin/sh", "-c",
		`trap 'echo "msg=holds goroutines=7"' USR1
echo "msg=listening addr=127.0.0.1:9"; while :; do sleep 0.05; done`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); <-p.done }()
	h, err := p.holds(t.Context())
	if err != nil || h.goroutines != 7 || h.descriptors < 3 || h.threads != 1 || h.mappings < 5 || h.residentMB <= 0 ||
		p.addr != "127.0.0.1:9" {
		t.Errorf("%+v, %v", h, err)
	}
	_, _, err = begin(t.Context(), t.TempDir(), "another", noToken, "/bin/sh", "-c", "echo last words; exit 1")
	if err == nil || !strings.Contains(err.Error(), "last words") {
		t.Errorf("it ended: %v", err)
	}
}
