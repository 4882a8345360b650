package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var quickRun = []string{"run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "300",
	"--format", "json"}

func TestMetricsTextfile(t *testing.T) {
	dir := t.TempDir()
	runs(t, append(quickRun, "--metrics-textfile", filepath.Join(dir, "rdmaperf.prom"))...)
	if text := contents(t, dir, "rdmaperf.prom"); !regexp.MustCompile(
		`(?m)^rdmaperf_op_duration_seconds_count\{[^}]*transport="mem"[^}]*\} 300$`).MatchString(text) {
		t.Errorf("file:\n%s", text)
	}
}

func TestMetricsPush(t *testing.T) {
	type request struct{ method, path, user, password, body string }
	var mu sync.Mutex
	var got []request
	status := http.StatusOK
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		b, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		got = append(got, request{r.Method, r.URL.Path, user, password, string(b)})
		w.WriteHeader(status)
	}))
	defer gateway.Close()
	target := strings.Replace(gateway.URL, "http://", "http://me:secret@", 1)
	if runs(t, append(quickRun, "--metrics-push", target)...); len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	if g := got[0]; g.method != http.MethodPut || !strings.HasPrefix(g.path, "/metrics/job/rdmaperf") ||
		g.user != "me" || g.password != "secret" || !strings.Contains(g.body, "rdmaperf_ops_total") {
		t.Errorf("%s %s as %s:%s with %d bytes", g.method, g.path, g.user, g.password, len(g.body))
	}
	status = http.StatusTeapot
	r := rdmaperf(t, append(quickRun, "--metrics-push", target)...)
	if r.code != 1 || !strings.Contains(r.stderr, "push metrics") || strings.Contains(r.stderr, "secret") ||
		len(document(t, []byte(r.stdout)).Results) != 1 {
		t.Errorf("refused: exit %d, stderr %q", r.code, r.stderr)
	}
	for _, bad := range []string{"gateway:9091", "ftp://x", "http://", "http://a:secret@b:port"} {
		if r := failsInALine(t, 2, "", append(quickRun, "--metrics-push", bad)...); strings.Contains(r.stderr, "secret") {
			t.Errorf("%s: stderr %q", bad, r.stderr)
		}
	}
}

// A scrape during the run sees the points that are finished.
func TestMetricsListen(t *testing.T) {
	address := "127.0.0.1:" + freePort(t)
	p := start(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "1,2,3,4,5,6,7,8", "-D",
		"200ms", "--warmup", "none", "--metrics-listen", address, "--json", filepath.Join(t.TempDir(), "r.json"))
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	var body string
	eventually(t, "a scrape with a finished point", func() bool {
		resp, err := client.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		body = string(b)
		return err == nil && resp.StatusCode == 200 && strings.Contains(body, `rdmaperf_op_duration_seconds_bucket{`)
	})
	if !regexp.MustCompile(`(?m)^rdmaperf_results [1-7]$`).MatchString(body) || !strings.Contains(body, `size="1"`) {
		t.Errorf("scrape during the run:\n%s", body)
	}
	if code := p.wait(30 * time.Second); code != 0 {
		t.Errorf("exit %d: %s", code, p.errs.String())
	}
}

func TestMetricsListenMistakes(t *testing.T) {
	if r := runs(t, append(quickRun, "--metrics-listen", "127.0.0.1:0", "--quiet")...); r.stderr != "" {
		t.Errorf("stderr %q", r.stderr)
	}
	_, port := serveHere(t)
	failsInALine(t, 1, "address already in use", append(quickRun, "--metrics-listen", "127.0.0.1:"+port)...)
}

// rawRows reads a file of raw samples as any CSV reader does and counts the rows of each set of each result.
func rawRows(t *testing.T, path string) map[string]int64 {
	t.Helper()
	f := need(os.Open(path))(t)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		in = need(gzip.NewReader(f))(t)
	}
	rows := need(csv.NewReader(in).ReadAll())(t)
	if want := "result set thread offset_ns latency_ns service_ns"; strings.Join(rows[0], " ") != want {
		t.Fatalf("header %q, want %q", rows[0], want)
	}
	n := map[string]int64{}
	for _, r := range rows[1:] {
		n[r[0]+" "+r[1]]++
	}
	return n
}

// Every sample of a document is in one file, which the results name.
func TestRunWritesRawSamples(t *testing.T) {
	dir := t.TempDir()
	points := []string{"run", "--transport", "tcp,mem", "--op", "write", "-s", "64", "-n", "200"}
	for _, c := range []struct {
		args []string
		file string
		sets int // of samples
	}{
		// 2 of latency and 4 of probes
		{[]string{"--raw=" + filepath.Join(dir, "r.csv"), "--workload", "latency,throughput,hol", "--bulk-size", "64K",
			"--hol-arm", "same-qp", "--probe-interval", "50us"}, filepath.Join(dir, "r.csv"), 6},
		{[]string{"--raw=" + filepath.Join(dir, "r.csv.gz"), "--workload", "latency"},
			filepath.Join(dir, "r.csv.gz"), 2},
		{[]string{"--raw", "-o", filepath.Join(dir, "out"), "--workload", "latency"},
			filepath.Join(dir, "out", "samples.csv"), 2},
	} {
		d := measure(t, append(slices.Clone(points), c.args...)...)
		rows := rawRows(t, c.file)
		named := 0
		for i, res := range d.Results {
			for _, s := range res.RawSamples {
				named++
				if n := rows[fmt.Sprintf("%d %s", i, s.Set)]; n != s.Count || n != 200 || s.File != c.file ||
					s.Dropped != 0 {
					t.Errorf("%q: result %d says %+v, the file has %d rows", c.args, i, s, n)
				}
			}
		}
		if named != c.sets || len(rows) != c.sets {
			t.Errorf("%q: %d sets named and %d in the file, want %d", c.args, named, len(rows), c.sets)
		}
	}
}

// Samples of calls are there as all others, by the goroutine that called.
func TestRunWritesRawSamplesOfCalls(t *testing.T) {
	for _, args := range [][]string{
		{"--workload", "rpc", "-s", "64"},
		{"--workload", "kv", "--ycsb", "c", "--records", "200"},
		{"--workload", "tensor", "--tensor", "push", "-s", "4K"},
	} {
		file := filepath.Join(t.TempDir(), "r.csv")
		results := measure(t, append([]string{"run"}, append(args, "--transport", "grpc(tcp)", "--outstanding", "3", "-n",
			"90", "--raw="+file)...)...).Results
		rows := rawRows(t, file)
		if len(results) != 1 || len(results[0].RawSamples) != 1 || len(rows) != 1 {
			t.Fatalf("%q: results %+v, the file has %v", args, results, rows)
		}
		if s := results[0].RawSamples[0]; s.Count != 90 || s.File != file || rows["0 latency"] != 90 {
			t.Errorf("%q: says %+v, the file has %v", args, s, rows)
		}
	}
}

// A scenario has one file for all its runs; what does not fit is said.
func TestScenarioWritesRawSamples(t *testing.T) {
	file := scenarioIn(t, "version: 1\ndefaults: {transport: tcp, workload: latency, op: send, iters: 100}\n"+
		"runs: [{name: a, size: 64}, {name: b, size: 128}]\n")
	csv := filepath.Join(t.TempDir(), "r.csv")
	r := runs(t, "run", "--scenario", file, "--raw="+csv, "--raw-limit", "60")
	contains(t, r.stdout, "120 raw samples in", "80 samples above the limit of 60")
	if rows := rawRows(t, csv); rows["0 latency"] != 60 || rows["1 latency"] != 60 {
		t.Errorf("rows %v, want 60 of each result", rows)
	}
}
