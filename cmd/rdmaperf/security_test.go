package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// besieged are calls whose server is called on by unknown peers before any client comes.
type besieged struct {
	transports.CallTransport
	come func(addr string, cfg transports.CallConfig)
}

func (b besieged) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	s, err := b.CallTransport.ListenCalls(ctx, addr, cfg, h)
	if err == nil {
		b.come(s.Addr(), cfg)
	}
	return s, err
}

// intrude calls as a genuine client does, with a secret of its own; it tells whether anybody answered.
func intrude(t *testing.T, tr transports.CallTransport, addr string, cfg transports.CallConfig) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := tr.DialCalls(ctx, addr, cfg)
	if err != nil {
		return false
	}
	defer conn.Close()
	k, err := conn.Caller(ctx, transports.CallerConfig{Timeout: 5 * time.Second})
	if err != nil {
		return false
	}
	defer k.Close()
	err = k.Call(&transports.Call{Request: make([]byte, 64)})
	e := transports.AsCallError(err)
	return err == nil || e.Code != transports.CallUnavailable && e.Code != transports.CallDeadlineExceeded &&
		e.Code != transports.CallCanceled
}

// With a token, whoever finds the port of a stack's calls without knowing it is answered
// nothing: neither one that speaks the stack's own language, nor noise; and who knows it is served behind them.
func TestDataConnectionsOfCallsNeedTheToken(t *testing.T) {
	noise := strings.Repeat("\x7f", 64) + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04" + strings.Repeat("\x00", 69)
	for _, spec := range []string{"grpc(tcp)", "grpc(unix)", "grpc(bufconn)", "grpc(dropin)+iwarp", "grpc(fused)+iwarp",
		"grpc(service)+iwarp", "lite+iwarp", "lite(rpc=send)+iwarp", "lite(rpc=write)+iwarp", "lite(daemon)+iwarp"} {
		t.Run(spec, func(t *testing.T) {
			if spec != "grpc(tcp)" && spec != "grpc(fused)+iwarp" && spec != "lite+iwarp" {
				fulltest.Only(t, "a stack more")
			}
			strange, near, far := new(stackspec.Set), new(stackspec.Set), new(stackspec.Set)
			open := func(s *stackspec.Set) transports.CallTransport {
				t.Helper()
				st := need(s.Open(spec))(t)
				t.Cleanup(func() { st.Close() })
				return need(transports.Calls(st))(t)
			}
			client, stranger := open(near), open(strange)
			came := 0
			s := &engine.Server{Workloads: catalogue.Table(), Token: []byte("open sesame"),
				Open: func(spec string) (transports.Stack, error) {
					st, err := far.Open(spec)
					if err != nil {
						return nil, err
					}
					c, err := transports.Calls(st)
					return besieged{c, func(addr string, cfg transports.CallConfig) {
						came++
						if len(cfg.Secret) == 0 {
							t.Error("the server's calls have no secret")
						}
						for _, cfg.Secret = range [][]byte{nil, []byte("another.")} {
							if intrude(t, stranger, addr, cfg) {
								t.Errorf("an unknown peer with the secret %q is answered", cfg.Secret)
							}
						}
						if strings.HasPrefix(addr, "@") {
							return
						}
						conn, err := net.Dial("tcp", addr)
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						conn.SetDeadline(time.Now().Add(15 * time.Second))
						io.WriteString(conn, noise)
						said, err := io.ReadAll(conn)
						if len(said) > 0 || err != nil && strings.Contains(err.Error(), "timeout") {
							t.Errorf("an unknown peer with noise hears %q, %v, want an end", said, err)
						}
					}}, err
				}}
			l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(ctx, l) }()
			defer func() { cancel(); <-ended }()
			plan := engine.Plan{Workloads: catalogue.Table(), Transport: spec,
				Points: []engine.Point{{Workload: "rpc", Op: "call", Call: engine.CallUnary, Size: 64,
					Response: 64}},
				Iterations: 20, QPs: 2, Timeout: 20 * time.Second, Token: []byte("open sesame"), ClientCPU: -1,
				ServerCPU: -1}
			c := need(engine.Connect(t.Context(), l.Addr().String(), client, plan))(t)
			defer c.Close()
			res, err := c.Run(t.Context(), 0)
			if err != nil || len(res) != 1 || res[0].Operations < 20 {
				t.Errorf("who has the token: %v, %d results", err, len(res))
			}
			if came != 1 {
				t.Errorf("unknown peers came %d times", came)
			}
		})
	}
}

// certificates makes an authority and a server's and a client's certificate by openssl, as
// docs/how-to/serve.md has it, and returns their directory.
func certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not here")
	}
	cmd := exec.Command("sh", "-ec", `
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout ca.key -out ca.pem -subj /CN=authority -days 2
for name in server client; do
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -CA ca.pem -CAkey ca.key -keyout $name.key -out $name.pem -subj /CN=$name -days 2 -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE
done`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestTLSFlagsThatDoNotFitAreToldBeforeAnythingIsDone(t *testing.T) {
	dir := certificates(t)
	t.Chdir(dir)
	must(t, os.WriteFile("text", []byte("no certificate\n"), 0o600))
	for _, c := range []struct{ args, want string }{
		{"serve --tls-cert server.pem", "--tls-key FILE"},
		{"serve --tls-key server.key", "--tls-cert FILE"},
		{"serve --tls-client-ca ca.pem", "--tls-cert and --tls-key"},
		{"serve --tls-cert server.pem --tls-key client.key", "server.pem, client.key: tls: private key does not match"},
		{"serve --tls-cert none.pem --tls-key server.key", "none.pem: no such file"},
		{"serve --tls-cert server.pem --tls-key none.key", "none.key: no such file"},
		{"serve --tls-cert text --tls-key server.key", "text, server.key: tls: failed to find any PEM data"},
		{"serve --tls-cert server.pem --tls-key server.key --tls-client-ca text", "text has no certificate"},
		{"serve --target --tls-cert server.pem --tls-key server.key", "the suite speaks no TLS"},
		{"run --tls", "without a HOST"},
		{"run 127.0.0.1 --tls-cert client.pem --tls-key client.key", "--tls, or --tls-ca FILE, too"},
		{"run 127.0.0.1 --tls-server-name x", "--tls, or --tls-ca FILE, too"},
		{"run 127.0.0.1 --tls-ca text", "text has no certificate"},
		{"run 127.0.0.1 --tls-ca none.pem", "none.pem: no such file"},
		{"run 127.0.0.1 --tls --tls-cert client.pem", "--tls-key FILE"},
	} {
		failsInALine(t, reports.ExitUsage, c.want, strings.Fields(c.args)...)
	}
}

// Both programs by their options: it runs with what fits and says why with what does not,
// and a workload with several links to its server runs, too.
func TestRunsOverTLS(t *testing.T) {
	dir := certificates(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	server, port := serveHere(t, "--tls-cert", file("server.pem"), "--tls-key", file("server.key"), "--tls-client-ca",
		file("ca.pem"))
	few := []string{"run", "127.0.0.1", "-p", port, "--no-save", "--quiet", "--pin", "none"}
	latency := []string{"--transport", "tcp", "--workload", "latency", "--op", "send", "-s", "64", "-n", "20"}
	shown := []string{"--tls-ca", file("ca.pem"), "--tls-cert", file("client.pem"), "--tls-key", file("client.key")}
	for _, c := range []struct {
		name string
		args [][]string
		code int
		want string
	}{
		{"with everything", [][]string{latency, shown}, 0, ""},
		{"an all-reduce", [][]string{{"--transport", "iwarp", "--workload", "allreduce", "-s", "4K", "-n", "2",
			"--algorithm", "ring", "--buffers", "reused"}, shown}, 0, ""},
		{"without TLS", [][]string{latency}, reports.ExitPeer, "this server speaks TLS"},
		{"the system's authorities", [][]string{latency, {"--tls"}}, reports.ExitPeer, "not trusted here"},
		{"without a certificate", [][]string{latency, shown[:2]}, reports.ExitPeer, "wants a certificate"},
	} {
		args := few
		for _, a := range c.args {
			args = append(args[:len(args):len(args)], a...)
		}
		fails(t, c.code, c.want, args...)
	}
	server.cmd.Process.Kill()
	<-server.done // its log is written until then
	if said := server.errs.String(); strings.Contains(said, "anybody") {
		t.Errorf("the server says %s", said)
	}
}
