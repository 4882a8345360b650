package conform

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sample = []Report{
	{Transport: "mem", Results: []Result{
		{ID: "ord/sig-all", Clause: "man ibv_create_qp (sq_sig_all)", Level: "must", Transport: "mem", Verdict: Pass,
			Seed: 1, DurationNS: 1000},
		{ID: "imm/value", Clause: "IBTA 9.4.1?", Level: "must", Transport: "mem", Verdict: Pass, Seed: 1},
		{ID: "coverage", Clause: "declared means proven", Level: "must", Transport: "mem", Verdict: Pass, Seed: 1},
	}},
	{Transport: "iwarp(crc)", Results: []Result{
		{ID: "ord/sig-all", Clause: "man ibv_create_qp (sq_sig_all)", Level: "must", Transport: "iwarp(crc)",
			Verdict: Fail, Seed: 1, DurationNS: 12345678,
			Want: []string{"send#0 success", "a < b"}, Got: "send#1 success", Evidence: "first\nsecond",
			Requirement: "With sq_sig_all every request makes a completion, whatever its flags."},
		{ID: "imm/value", Clause: "IBTA 9.4.1?", Level: "must", Transport: "iwarp(crc)", Verdict: Unsupported, Seed: 1,
			Evidence: "device lacks operation send_imm"},
		{ID: "cm/reject", Clause: "man rdma_reject", Level: "must", Transport: "iwarp(crc)", Verdict: XFail, Seed: 1,
			Got: "nothing", Ledger: "known (thread, confirmed 2026-01-31)",
			Requirement: "A refused connect ends as rejected, with the private data of the refusal."},
	}},
}

func TestMatrix(t *testing.T) {
	want := `case         level   mem          iwarp(crc)
ord/sig-all  must    pass         fail
imm/value    must    pass         unsupported
cm/reject    must    -            xfail
coverage     must    pass         -

pass                 3            0
fail                 0            1
unsupported          0            1
xfail                0            1

` + ScopeText() + ` (docs/reference/conformance.md)

iwarp(crc)  1 unsupported: device lacks operation send_imm
  imm/value

iwarp(crc)  ord/sig-all  fail (must, man ibv_create_qp (sq_sig_all), seed 1, 12ms)
  requires  With sq_sig_all every request makes a completion, whatever its flags.
  want      send#0 success or a < b
  got       send#1 success
  evidence  first
            second

iwarp(crc)  cm/reject  xfail (must, man rdma_reject, seed 1, 0s)
  requires  A refused connect ends as rejected, with the private data of the refusal.
  got       nothing
  ledger    known (thread, confirmed 2026-01-31)
`
	var out bytes.Buffer
	if err := WriteMatrix(&out, 0, sample...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("matrix (-want +got):\n%s", d)
	}
}

// Where names of stacks have no room they are numbered, and no line is wider than the terminal.
func TestMatrixFitsTheTerminal(t *testing.T) {
	long := strings.Repeat("x", 70)
	reps := append([]Report{{Transport: long + "+iwarp(crc)", Results: sample[0].Results}}, sample[1])
	var out bytes.Buffer
	if err := WriteMatrix(&out, 80, reps...); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[1]  " + long, "case         level   [1]          [2]\n",
		"ord/sig-all  must    pass         fail\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 && !strings.Contains(line, long) {
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
	}
	out.Reset()
	if err := WriteMatrix(&out, 60, sample...); err != nil || !strings.Contains(out.String(), "\n    ") {
		t.Errorf("%v, nothing is folded at 60 columns:\n%s", err, &out)
	}
}

func TestJSONL(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSONL(&out, sample...); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	const want = `{"id":"ord/sig-all","clause":"man ibv_create_qp (sq_sig_all)","level":"must",` +
		`"transport":"iwarp(crc)","verdict":"fail","seed":1,"duration_ns":12345678,` +
		`"want":["send#0 success","a < b"],"got":"send#1 success","evidence":"first\nsecond"}`
	if len(lines) != 6 || lines[3] != want {
		t.Errorf("%d lines, line 4 is\n%s\nwant\n%s", len(lines), lines[3], want)
	}
	for i, l := range lines {
		var r Result
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
}
