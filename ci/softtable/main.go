// Command softtable turns what ci/softrdma measured into tables: the four schemes of
// SoftRDMA (APNet'17) by size, copies and system calls, threading models against
// application work, loss, and a judged line for each of the project's bounds.
//
// It reads result documents, named SET.REPEAT.json after what was measured. Ratios are
// taken inside a repeat, where both arms ran point by point in turn, and then their
// median over the repeats.
//
// Last come F1 to F11, what the paper's evaluation says, each with what was measured of it.
//
// Exit codes are rdmaperf's: 1 when something was not measured, else 0; with -judge also 3
// when a bound is missed and 1 when one is undecided.
package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() { targets.Exit("softrdma", run) }

func run(args []string) error {
	flags := flag.NewFlagSet("softtable", flag.ContinueOnError)
	only := flags.String("only", "", "comma list of sets whose bounds are judged (all)")
	var l logs
	flags.StringVar(&l.wire, "wire", "", "log of the wire suite, of F1")
	flags.StringVar(&l.vanished, "vanished", "", "log of clients whose peer vanished, of F10")
	flags.StringVar(&l.commands, "commands", "", "what was run, by set")
	alone := flags.Bool("claims", false, "print F1 to F11 alone")
	names := flags.String("of", "", "comma list of claims (all)")
	markdown := flags.String("o", "", "write the claims as Markdown to this file")
	judge := flags.Bool("judge", false, "let the exit code say how the bounds were met, too")
	jsonFile := flags.String("json", "", "write the judged lines as JSON to this file")
	usage := "[-only SETS] [-wire LOG] [-vanished LOG] [-commands LOG] [-claims] [-of F1,…] [-o FILE] [-judge] " +
		"[-json FILE] SET.REPEAT.json…"
	if err := targets.Parse(flags, args, usage,
		func() bool { return flags.NArg() > 0 || l.wire != "" || l.vanished != "" }); err != nil {
		return err
	}
	m := measures{}
	for _, name := range flags.Args() {
		if err := m.document(name); err != nil {
			return err
		}
	}
	claims, err := m.claims(l)
	if err != nil {
		return err
	}
	claims = asked(claims, commas(*names))
	if *markdown != "" {
		var page bytes.Buffer
		markdownClaims(&page, claims)
		if err := os.WriteFile(*markdown, page.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if *alone {
		printClaims(os.Stdout, claims)
		if err := targets.WriteJSON(*jsonFile, map[string]any{"schema": schema, "claims": claims}); err != nil {
			return err
		}
		return claimsOutcome(claims, *judge)
	}
	m.schemes(os.Stdout)
	m.accounts(os.Stdout)
	m.references(os.Stdout)
	m.threads(os.Stdout)
	m.losses(os.Stdout)
	m.drops(os.Stdout)
	m.widths(os.Stdout)
	lines := m.lines(commas(*only))
	printLines(os.Stdout, lines)
	printClaims(os.Stdout, claims)
	if err := targets.WriteJSON(*jsonFile, map[string]any{"schema": schema, "lines": lines,
		"claims": claims}); err != nil {
		return err
	}
	return outcome(lines, *judge)
}

const schema = "rdmaperf-softrdma/v3"

func commas(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// outcome is the exit code with its reason. What was not measured is a failure always;
// whether a missed or undecided bound is one, the caller says.
func outcome(lines []line, judge bool) error {
	if len(lines) == 0 {
		return nil // what was asked for has no bound
	}
	return targets.OfLines(lines, func(l *line) (string, targets.Verdict) {
		if !judge && l.Verdict != targets.NotMeasured {
			return l.What, targets.None
		}
		return l.What, l.Verdict
	})
}

// key is one point, but for the repeat.
type key struct {
	set, stack, workload string
	size                 int64
	depth                int
	work                 int64
}

// measures are results by point, in the order of the repeats.
type measures map[key][]*reports.Result

func (m measures) document(name string) error {
	d, err := targets.ReadDocument(name)
	if err != nil {
		return err
	}
	set, _, _ := strings.Cut(filepath.Base(name), ".")
	for i := range d.Results {
		r := &d.Results[i]
		if r.Parameters == nil {
			r.Parameters = map[string]any{}
		}
		r.Parameters[machineCPUs] = d.Environment.CPUs
		k := key{set, scheme(r.Stack), r.Workload, r.SizeBytes, r.Depth, r.AppWorkNs}
		m[k] = append(m[k], r)
	}
	return nil
}

// machineCPUs is the parameter that document adds: the CPUs that the process could use. What
// the results have, GOMAXPROCS, is raised for threads that spin.
const machineCPUs = "machine_cpus"

// scheme is a stack without what all of them have.
func scheme(stack string) string {
	s := strings.ReplaceAll(strings.ReplaceAll(stack, "(crc,", "("), "(crc)", "")
	return ownRing.ReplaceAllString(s, "")
}

// ownRing is in the names of stacks whose rings are small on purpose; c2 is the default.
var ownRing = regexp.MustCompile(`,ring=[0-9]+|,threads=c2`)
