package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// childEnv makes the test binary a child whose cases end as it says.
const childEnv = "RDMAPERF_INTEROP_TEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(childEnv); how != "" {
		os.Exit(childMain(how, os.Args[1:]))
	}
	leaktest.Main(m)
}

func childMain(how string, args []string) int {
	out := json.NewEncoder(os.NewFile(3, "answer"))
	if args[0] == "serve" {
		if how == "no server" {
			fmt.Fprintln(os.Stderr, "no device here")
			return exitNotRun
		}
		out.Encode(Peer{Addrs: map[string]string{toInterop: "somewhere"}})
		io.Copy(io.Discard, os.Stdin)
		return 0
	}
	var p Peer
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil || p.Addrs[toInterop] != "somewhere" {
		fmt.Fprintln(os.Stderr, "no address of a server", p, err)
		return 1
	}
	switch how {
	case "pass":
		out.Encode(outcome{Notes: []string{"noted"}})
	case "wrong":
		out.Encode(outcome{Wrong: []string{"this", "that"}})
		return 1
	case "fatal":
		fmt.Fprintln(os.Stderr, "some line\n2026/01/31 FATAL: [interop] got it wrong")
		return 1
	case "panic":
		panic("out of order")
	case "bad end":
		out.Encode(outcome{})
		fmt.Fprintln(os.Stderr, "close: something is left")
		return 1
	case "no device":
		fmt.Fprintln(os.Stderr, "no device here")
		return exitNotRun
	case "hang":
		select {}
	}
	return 0
}

func childrenThat(how string) Children {
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), childEnv+"="+how)
		return cmd
	}
}

func TestVerdictsOfProcesses(t *testing.T) {
	for how, want := range map[string]struct {
		verdict       conform.Verdict
		got, evidence string
	}{
		"pass":      {conform.Pass, "", "noted"},
		"wrong":     {conform.Fail, "this; that", ""},
		"fatal":     {conform.Fail, "FATAL: [interop] got it wrong", "some line"},
		"panic":     {conform.Fail, "panic: out of order", "goroutine"},
		"bad end":   {conform.Fail, "something is left", ""},
		"no device": {conform.NotRun, "", "no device here"},
		"no server": {conform.NotRun, "", "no device here"},
		"silent":    {conform.Fail, "it said nothing", ""},
	} {
		t.Run(how, func(t *testing.T) {
			var o Options
			o.Only, o.CaseTimeout = []string{"interop/empty-unary", "interop/jwt-token-creds"}, time.Second
			rep := Run(t.Context(), "grpc(dropin)+x", carrier.DropIn, childrenThat(how), o)
			r := &rep.Results[0]
			if r.Verdict != want.verdict || !strings.Contains(r.Got, want.got) || !strings.Contains(r.Evidence, want.evidence) {
				t.Errorf("%+v, want %+v", r, want)
			}
			if last := rep.Results[1].Verdict; len(rep.Results) != 2 || want.verdict != conform.NotRun &&
				last != conform.Unsupported || (rep.Err != nil) != (want.verdict == conform.NotRun) {
				t.Errorf("%+v", rep)
			}
		})
	}
}

func TestHangingProcessIsEnded(t *testing.T) {
	p, err := launch(childrenThat("hang")("case", "x"))
	rpctest.Must(t, err)
	defer p.kill()
	rpctest.Must(t, p.write(Peer{Addrs: map[string]string{toInterop: "somewhere"}}))
	if err := p.read(50*time.Millisecond, new(outcome)); err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Error(err)
	}
	if err := p.stop(50 * time.Millisecond); err == nil {
		t.Error("it ended by itself")
	}
}

// The end of the run ends the process of the case, and nothing more is started.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var o Options
	o.Only, o.CaseTimeout = []string{"call/unary", "call/metadata"}, time.Minute
	rep := Run(ctx, "x", carrier.DropIn, childrenThat("hang"), o)
	if len(rep.Results) != 2 || rep.Results[0].Verdict != conform.NotRun || rep.Results[1].Verdict != conform.NotRun {
		t.Errorf("%+v", rep)
	}
}

func TestLedgerExcusesCases(t *testing.T) {
	var o Options
	o.Only = []string{"interop/empty-unary"}
	o.Ledger = &conform.Ledger{Entries: []conform.Entry{{Case: "interop/*", Transport: "x", Reason: "r", Source: "s",
		Confirmed: "2026-01-31"}}}
	rep := Run(t.Context(), "x", carrier.DropIn, childrenThat("wrong"), o)
	if r := rep.Results[0]; r.Verdict != conform.XFail || rep.Red() {
		t.Errorf("%+v", r)
	}
}

func TestCatalogue(t *testing.T) {
	word := regexp.MustCompile(`^(interop|call|svc|tls|chan|peer)/[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, s := range suites() {
		if !word.MatchString(s.ID) || seen[s.ID] || s.Clause == "" || !strings.HasSuffix(s.Requirement, ".") {
			t.Errorf("%+v", s.Case)
		}
		seen[s.ID] = true
		for _, f := range []carrier.Form{carrier.TCP, carrier.Unix, carrier.DropIn, carrier.Fused} {
			if s.run == nil && s.lack(f, false) == "" {
				t.Errorf("%s does nothing on %v and does not say why", s.ID, f)
			}
		}
		if s.run != nil && s.lack(carrier.TCP, false) != "" && s.lack(carrier.DropIn, false) != "" {
			t.Errorf("%s never runs", s.ID)
		}
		if find(s.ID) == nil {
			t.Errorf("%s is not found", s.ID)
		}
	}
}

// Every function of grpc-go's package has a case, run or not.
func TestNoFunctionOfGRPCIsForgotten(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "google.golang.org/grpc/interop").Output()
	rpctest.Must(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	have := map[string]string{ // where the name of the case is not the function's
		"EmptyUnaryCall": "empty-unary", "LargeUnaryCall": "large-unary", "SoakTest": "rpc-soak",
		"ORCAPerRPCTest": "orca-per-rpc",
		"ORCAOOBTest":    "orca-oob", "JWTTokenCreds": "jwt-token-creds", "Oauth2TokenCreds": "oauth2-auth-token",
		"PerRPCCreds": "per-rpc-creds",
	}
	upper := regexp.MustCompile(`[A-Z]`)
	n := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		rpctest.Must(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func Do(\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			id := have[m[1]]
			if id == "" {
				id = strings.TrimPrefix(strings.ToLower(upper.ReplaceAllString(m[1], "-$0")), "-")
			}
			n++
			if find("interop/"+id) == nil {
				t.Errorf("Do%s has no case interop/%s", m[1], id)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d functions found", n)
	}
}

// runTCP runs a case in this process against a server whose variants are mixed up.
func runTCP(t *testing.T, id string, bend map[string]string, limit time.Duration) outcome {
	t.Helper()
	s, err := NewServer(t.Context(), carrier.TCP, nil, "127.0.0.1:0", "")
	rpctest.Must(t, err)
	defer s.Close()
	p := s.Peer
	for from, to := range bend {
		if to == "nobody" {
			p.Addrs[from] = "127.0.0.1:1"
		} else {
			p.Addrs[from] = p.Addrs[to]
		}
	}
	var in, out bytes.Buffer
	rpctest.Must(t, json.NewEncoder(&in).Encode(p))
	RunCase(t.Context(), Ends{Form: carrier.TCP, Limit: limit, In: &in, Out: &out}, nil, id)
	var o outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return o
}

// Cases that pass where they should must fail where the server lacks what they look for.
func TestCasesTurnRed(t *testing.T) {
	for id, bend := range map[string]map[string]string{
		"call/unary":            {toCalls: "nobody"},
		"call/cancel":           {toCalls: "nobody"},
		"svc/health":            {toInterop: toCalls},
		"svc/reflection":        {toInterop: toCalls},
		"tls/server":            {toTLS: toCalls},
		"tls/mutual":            {toMutual: toCalls},
		"tls/untrusted":         {toMutual: toTLS},
		"chan/interceptors":     {toCalls: toInterop},
		"chan/keepalive-idle":   {toIdle: toCalls},
		"chan/keepalive-silent": {toPings: toCalls},
		"chan/large-messages":   {toCalls: toInterop},
	} {
		t.Run(id, func(t *testing.T) {
			// The others fill the processors, and this one is about a server's clock.
			if id != "chan/keepalive-silent" {
				t.Parallel()
			}
			// A minute ends what hangs, and judges nothing: under the race detector 64 MiB take 10 s on a busy machine.
			if o := runTCP(t, id, nil, time.Minute); len(o.Wrong) > 0 {
				t.Errorf("as it should be: %+v", o)
			}
			if o := runTCP(t, id, bend, time.Second); len(o.Wrong) == 0 {
				t.Errorf("with %v: passes", bend)
			}
		})
	}
}
