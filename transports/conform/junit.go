package conform

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The format has no standard. The elements and attributes are those of the schema that Jenkins's xunit plugin publishes
// (junit-10.xsd), which other readers accept a part of.
type (
	junitRun struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		SystemErr  string          `xml:"system-err,omitempty"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Class     string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Skipped   *junitMessage `xml:"skipped"`
		Error     *junitMessage `xml:"error"`
		Failure   *junitMessage `xml:"failure"`
		SystemOut string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes one suite a transport in JUnit's XML. The class of a case is the transport and its name the case
// ID, so that a history of runs stays one. Readers turn red by failures and errors exactly where the exit code does: a
// requirement that is broken but excused, by the ledger or by its level, is skipped with the reason, as is an
// unsupported one; notrun is an error. Of a transport without a device the suite is one skipped case: nothing was found
// wrong, and the exit code says that nothing was run.
func WriteJUnit(w io.Writer, reports ...Report) error {
	run := junitRun{Name: "rdmaperf conform", Suites: []junitSuite{}}
	var total int64
	for i := range reports {
		s, ns := newJUnitSuite(&reports[i])
		total += ns
		run.Tests += s.Tests
		run.Failures += s.Failures
		run.Errors += s.Errors
		run.Suites = append(run.Suites, s)
	}
	run.Time = junitSeconds(total)
	out, err := xml.MarshalIndent(&run, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}

// newJUnitSuite also returns the nanoseconds that the cases took.
func newJUnitSuite(rep *Report) (junitSuite, int64) {
	s := junitSuite{Name: rep.Transport, Properties: []junitProperty{
		{"seed", strconv.FormatUint(rep.Seed, 10)}, {"strict", strconv.FormatBool(rep.Strict)}}}
	if rep.Err != nil {
		s.SystemErr = rep.Err.Error()
	}
	results, absent := rep.Results, errors.Is(rep.Err, rdma.ErrNoDevice)
	if absent || rep.Err != nil && len(results) == 0 {
		// A suite without cases would read as nothing wrong, and one of hundreds that all say the same as much wrong.
		results = []Result{{ID: "start", Transport: rep.Transport, Verdict: NotRun, Evidence: rep.Err.Error()}}
	}
	var total int64
	for i := range results {
		r := &results[i]
		c := newJUnitCase(r, rep.Strict)
		if absent {
			c.Skipped, c.Error = c.Error, nil
		}
		switch {
		case c.Error != nil:
			s.Errors++
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
		total += r.DurationNS
		s.Cases = append(s.Cases, c)
	}
	s.Tests, s.Time = len(s.Cases), junitSeconds(total)
	return s, total
}

func newJUnitCase(r *Result, strict bool) junitCase {
	c := junitCase{Name: r.ID, Class: r.Transport, Time: junitSeconds(r.DurationNS)}
	deviation := (&Mismatch{Want: r.Want, Got: r.Got}).Error()
	if len(r.Want) == 0 {
		deviation = r.Got
	}
	message := func(text string) *junitMessage {
		return &junitMessage{Type: string(r.Verdict), Message: text, Text: detail(r)}
	}
	skipped := func(text string) { c.Skipped = &junitMessage{Message: text} }
	switch r.Verdict {
	case Pass:
		c.SystemOut = r.Evidence
	case XPass:
		unexpected := "passes, but the ledger expects a failure: " + r.Ledger
		if r.Red(strict) {
			c.Failure = message(unexpected)
		} else {
			c.SystemOut = unexpected
		}
	case Fail:
		if r.Red(strict) {
			c.Failure = message(deviation)
		} else {
			skipped(fmt.Sprintf("not met, and only a %s: %s", r.Level, deviation))
		}
	case XFail:
		skipped("expected failure: " + r.Ledger)
	case Unsupported:
		skipped("unsupported: " + r.Evidence)
	case NotRun:
		c.Error = message("not run: " + r.Evidence)
	default:
		c.Error = message(r.Got)
	}
	return c
}

func detail(r *Result) string {
	var b strings.Builder
	for _, f := range []struct{ name, text string }{
		{"clause", r.Clause}, {"not checked", r.Unchecked}, {"level", r.Level}, {"requires", r.Requirement},
		{"want", strings.Join(r.Want, " or ")}, {"got", r.Got},
		{"evidence", r.Evidence}, {"ledger", r.Ledger}, {"seed", strconv.FormatUint(r.Seed, 10)},
	} {
		if f.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", f.name, f.text)
		}
	}
	return b.String()
}

// junitSeconds has no exponent and three decimals: the schema takes no more.
func junitSeconds(ns int64) string {
	return strconv.FormatFloat(time.Duration(ns).Seconds(), 'f', 3, 64)
}
