// Command softtable turns what ci/softrdma measured into tables: the four schemes of
// SoftRDMA (APNet'17) by size, copies and system calls, threading models against
// application work, loss, and a judged line for each of the project's bounds.
//
// It reads result documents, named SET.REPEAT.json after what was measured. Ratios are
// taken inside a repeat, where both arms ran point by point in turn, and then their
// median over the repeats.
//
// Exit codes are rdmaperf's: 0 when all bounds are met, 3 when one is missed, 1 when
// something was not measured or is undecided.
package main

import (
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
	jsonFile := flags.String("json", "", "write the judged lines as JSON to this file")
	if err := targets.Parse(flags, args, "[-only SETS] [-json FILE] SET.REPEAT.json…", func() bool { return flags.NArg() > 0 }); err != nil {
		return err
	}
	m := measures{}
	for _, name := range flags.Args() {
		if err := m.document(name); err != nil {
			return err
		}
	}
	m.schemes(os.Stdout)
	m.accounts(os.Stdout)
	m.threads(os.Stdout)
	m.losses(os.Stdout)
	m.drops(os.Stdout)
	m.mtus(os.Stdout)
	lines := m.lines(strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }))
	printLines(os.Stdout, lines)
	if err := targets.WriteJSON(*jsonFile, map[string]any{"schema": "rdmaperf-softrdma/v1", "lines": lines}); err != nil {
		return err
	}
	if len(lines) == 0 {
		return nil // what was asked for has no bound
	}
	return targets.OfLines(lines, func(l *line) (string, targets.Verdict) { return l.What, l.Verdict })
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
		k := key{set, scheme(r.Stack), r.Workload, r.SizeBytes, r.Depth, r.AppWorkNs}
		m[k] = append(m[k], r)
	}
	return nil
}

// scheme is a stack without what all of them have.
func scheme(stack string) string {
	s := strings.ReplaceAll(strings.ReplaceAll(stack, "(crc,", "("), "(crc)", "")
	return ownRing.ReplaceAllString(s, "")
}

// ownRing is in the names of stacks whose rings are small on purpose; c2 is the default.
var ownRing = regexp.MustCompile(`,ring=[0-9]+|,threads=c2`)
