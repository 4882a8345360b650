package conform

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// junitSchema is what the schema of Jenkins's xunit plugin (junit-10.xsd) says of the elements in use: attributes,
// which of them are required, and the children. Their order is that of older schemas, which require one.
var junitSchema = map[string]struct{ required, optional, children string }{
	"testsuites": {"", "name time tests failures errors", "testsuite"},
	"testsuite": {"name tests failures errors", "time skipped timestamp hostname id package",
		"properties testcase system-out system-err"},
	"properties": {"", "", "property"},
	"property":   {"name value", "", ""},
	"testcase":   {"name", "time classname", "skipped error failure system-out system-err"},
	"skipped":    {"", "message type", ""},
	"error":      {"", "message type", ""},
	"failure":    {"", "message type", ""},
	"system-out": {"", "", ""},
	"system-err": {"", "", ""},
}

var junitTime = regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`)

type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []*element `xml:",any"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e *element) all(name string) []*element {
	return slices.DeleteFunc(slices.Clone(e.Children), func(c *element) bool { return c.XMLName.Local != name })
}

func parseJUnit(t *testing.T, b []byte) *element {
	t.Helper()
	root := &element{}
	if err := xml.Unmarshal(b, root); err != nil {
		t.Fatalf("not well-formed: %v\n%s", err, b)
	}
	if root.XMLName.Local != "testsuites" {
		t.Fatalf("root %v, want testsuites", root.XMLName)
	}
	checkSchema(t, root)
	return root
}

func checkSchema(t *testing.T, e *element) {
	t.Helper()
	name := e.XMLName.Local
	s, ok := junitSchema[name]
	if !ok {
		t.Fatalf("element %s is not in the schema", name)
	}
	required, optional := strings.Fields(s.required), strings.Fields(s.optional)
	for _, a := range e.Attrs {
		if !slices.Contains(slices.Concat(required, optional), a.Name.Local) {
			t.Errorf("%s has attribute %s, which the schema does not know", name, a.Name.Local)
		}
		if a.Name.Local == "time" && !junitTime.MatchString(a.Value) {
			t.Errorf("%s: time %q", name, a.Value)
		}
		required = slices.DeleteFunc(required, func(r string) bool { return r == a.Name.Local })
	}
	if len(required) > 0 {
		t.Errorf("%s lacks attributes %v", name, required)
	}
	order, last := strings.Fields(s.children), 0
	for _, c := range e.Children {
		at := slices.Index(order, c.XMLName.Local)
		if at < last {
			t.Errorf("%s: child %s, want one of %v in this order", name, c.XMLName.Local, order)
		}
		last = max(last, at)
		checkSchema(t, c)
	}
	if len(order) > 0 && strings.TrimSpace(e.Text) != "" {
		t.Errorf("%s has text %q", name, e.Text)
	}
}

func writeJUnit(t *testing.T, reps ...Report) *element {
	t.Helper()
	var out bytes.Buffer
	if err := WriteJUnit(&out, reps...); err != nil {
		t.Fatal(err)
	}
	return parseJUnit(t, out.Bytes())
}

// junitOutcome is what a reader of the format makes of a case.
func junitOutcome(t *testing.T, c *element) string {
	t.Helper()
	found := "passed"
	for _, name := range []string{"skipped", "error", "failure"} {
		for range c.all(name) {
			if found != "passed" {
				t.Errorf("case %s is %s and %s", c.attr("name"), found, name)
			}
			found = name
		}
	}
	return found
}

func TestJUnitOutcomes(t *testing.T) {
	for _, test := range []struct {
		r      Result
		strict bool
		want   string
		text   string // in message, or in system-out of a pass
	}{
		{Result{Verdict: Pass, Level: "must", Evidence: "a note"}, false, "passed", "a note"},
		{Result{Verdict: Fail, Level: "must", Want: []string{"a", "b"}, Got: "c"}, false, "failure",
			"want a or b, got c"},
		{Result{Verdict: Fail, Level: "must", Got: "c\x00\x1b[1m]]>"}, false, "failure", "c\ufffd\ufffd[1m]]>"},
		{Result{Verdict: Fail, Level: "should", Got: "c"}, false, "skipped", "not met, and only a should: c"},
		{Result{Verdict: Fail, Level: "should", Got: "c"}, true, "failure", "c"},
		{Result{Verdict: Fail, Level: "may", Got: "c"}, true, "skipped", "not met, and only a may: c"},
		{Result{Verdict: Unsupported, Level: "must", Evidence: "device lacks operation fetch_add"}, true, "skipped",
			"unsupported: device lacks operation fetch_add"},
		{Result{Verdict: XFail, Level: "must", Ledger: "kernel bug (thread)"}, true, "skipped",
			"expected failure: kernel bug (thread)"},
		{Result{Verdict: XPass, Level: "must", Ledger: "kernel bug (thread)"}, false, "passed",
			"passes, but the ledger expects a failure: kernel bug (thread)"},
		{Result{Verdict: XPass, Level: "must", Ledger: "kernel bug (thread)"}, true, "failure",
			"passes, but the ledger expects a failure: kernel bug (thread)"},
		{Result{Verdict: NotRun, Level: "may", Evidence: "no device"}, false, "error", "not run: no device"},
		{Result{Verdict: Error, Level: "may", Got: "panic", Evidence: "stack"}, false, "error", "panic"},
	} {
		t.Run(fmt.Sprintf("%s/%s/strict=%v", test.r.Verdict, test.r.Level, test.strict), func(t *testing.T) {
			test.r.ID, test.r.Transport = "ord/sig-all", "mem"
			rep := Report{Transport: "mem", Strict: test.strict, Results: []Result{test.r}}
			c := writeJUnit(t, rep).all("testsuite")[0].all("testcase")[0]
			got := junitOutcome(t, c)
			if got != test.want {
				t.Fatalf("outcome %s, want %s", got, test.want)
			}
			text := ""
			if got == "passed" {
				text = c.all("system-out")[0].Text
			} else {
				text = c.all(got)[0].attr("message")
			}
			if text != test.text {
				t.Errorf("text %q, want %q", text, test.text)
			}
			if red := got == "failure" || got == "error"; red != rep.Red() {
				t.Errorf("the file is red: %v, the run: %v", red, rep.Red())
			}
		})
	}
}

func TestJUnitOfATransportWithoutADeviceIsOneSkippedCase(t *testing.T) {
	rep := NotRunReport("verbs", fmt.Errorf("open: %w: no /sys/class/infiniband", rdma.ErrNoDevice), Options{})
	s := writeJUnit(t, rep).all("testsuite")[0]
	cases := s.all("testcase")
	if len(cases) != 1 || junitOutcome(t, cases[0]) != "skipped" || s.attr("errors") != "0" || s.attr("skipped") != "1" {
		t.Fatalf("suite %v of %d cases, want one skipped", s.Attrs, len(cases))
	}
	if m := cases[0].all("skipped")[0].attr("message"); !strings.Contains(m, "no /sys/class/infiniband") {
		t.Errorf("message %q, want the reason", m)
	}
	if ExitCode(rep) != ExitNotRun {
		t.Errorf("exit code %d: nothing was run", ExitCode(rep))
	}
}

func TestJUnitCountsAndNames(t *testing.T) {
	reps := append(slices.Clone(sample), NotRunReport("verbs", errors.New("no RDMA device"),
		Options{Only: []string{"ord/*"}}), Report{Transport: "lite", Err: fmt.Errorf("no case selected: %w", ErrUsage)})
	root := writeJUnit(t, reps...)
	sum := map[string]int{}
	names := map[string]bool{}
	for i, s := range root.all("testsuite") {
		if s.attr("name") != reps[i].Transport {
			t.Errorf("suite %d is %q, want %q", i, s.attr("name"), reps[i].Transport)
		}
		counts := map[string]int{}
		for _, c := range s.all("testcase") {
			counts["tests"]++
			switch junitOutcome(t, c) {
			case "failure":
				counts["failures"]++
			case "error":
				counts["errors"]++
			case "skipped":
				counts["skipped"]++
			}
			if name := c.attr("classname") + " " + c.attr("name"); names[name] {
				t.Errorf("two cases are called %q", name)
			} else {
				names[name] = true
			}
		}
		for _, a := range []string{"tests", "failures", "errors", "skipped"} {
			if s.attr(a) != strconv.Itoa(counts[a]) {
				t.Errorf("suite %s: %s=%q, counted %d", s.attr("name"), a, s.attr(a), counts[a])
			}
			sum[a] += counts[a]
		}
		if len(s.all("testcase")) == 0 {
			t.Errorf("suite %s has no case", s.attr("name"))
		}
	}
	for _, a := range []string{"tests", "failures", "errors"} {
		if root.attr(a) != strconv.Itoa(sum[a]) {
			t.Errorf("testsuites %s=%q, counted %d", a, root.attr(a), sum[a])
		}
	}
	for _, name := range []string{"mem ord/sig-all", "iwarp(crc) ord/sig-all", "mem coverage", "verbs ord/sig-all",
		"lite start"} {
		if !names[name] {
			t.Errorf("no case %q among %v", name, slices.Sorted(maps.Keys(names)))
		}
	}
	if got := root.all("testsuite")[1].all("testcase")[0].attr("time"); got != "0.012" {
		t.Errorf("time %q, want 0.012", got)
	}
	if root := writeJUnit(t); len(root.Children) != 0 || root.attr("tests") != "0" {
		t.Errorf("without reports: %+v, want an empty run", root)
	}
}
