package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

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
		r := rdmaperf(t, strings.Fields(c.args)...)
		if r.code != reports.ExitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %q, %q, want 2 and one line with %q", c.args, r.code, r.stdout, r.stderr, c.want)
		}
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
