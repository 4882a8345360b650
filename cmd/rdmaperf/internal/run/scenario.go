package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
)

const scenarioUsage = "runs of this YAML `file` in one document\n" +
	"it has version: 1, name, host, defaults, and runs: flags by their " +
	"long names; flags on the command line override it"

// Limits of a scenario file. Arbitrary: more than anybody writes by hand.
const (
	maxScenarioBytes = 1 << 20
	maxScenarioRuns  = 1000
)

// outsideScenario are the flags that concern the document as a whole; a run of a scenario cannot have them.
var outsideScenario = []string{"scenario", "impair", "run-infinitely", "json", "output", "no-save", "force", "save",
	"format", "report_gbits", "counters", "fail-if", "expect", "metrics-textfile", "metrics-listen", "metrics-push", "raw",
	"raw-limit", "cpu-profile", "awake", "quiet", "verbose"}

// scenarioFile is the top level. The host stands here because a document has the environment of one server.
type scenarioFile struct {
	Version  yaml.Node `yaml:"version"`
	Name     yaml.Node `yaml:"name"`
	Host     yaml.Node `yaml:"host"`
	Defaults yaml.Node `yaml:"defaults"`
	Runs     yaml.Node `yaml:"runs"`
}

type scenario struct {
	file, name, host string
	defaults         []setting
	runs             []scenarioRun
}

type scenarioRun struct {
	line     int
	name     string
	settings []setting
}

// setting is one flag with its value. A list has several values.
type setting struct {
	flag   string
	line   int
	values []string
	list   bool
}

// parseScenario decodes a file strictly. An error names the file and the line.
func parseScenario(file string, data []byte) (*scenario, error) {
	s := &scenario{file: file, name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
	if len(data) > maxScenarioBytes {
		return nil, fmt.Errorf("%s: more than %d bytes", file, maxScenarioBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var top scenarioFile
	if err := dec.Decode(&top); errors.Is(err, io.EOF) {
		return nil, s.errorf(1, "empty: want version: 1 and runs")
	} else if err != nil {
		return nil, s.yamlError(err)
	}
	var more yaml.Node
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, s.errorf(max(more.Line, 1), "a second YAML document: want one")
	case !errors.Is(err, io.EOF):
		return nil, s.yamlError(err)
	}
	switch v := &top.Version; {
	case v.IsZero():
		return nil, s.errorf(1, "no version: want version: 1")
	case v.Kind != yaml.ScalarNode || v.ShortTag() != "!!int" || v.Value != "1":
		return nil, s.errorf(v.Line, "version %q: want 1", v.Value)
	}
	var err error
	if !top.Name.IsZero() {
		if s.name, err = s.text("name", &top.Name); err != nil {
			return nil, err
		}
	}
	if !top.Host.IsZero() {
		if s.host, err = s.text("host", &top.Host); err != nil {
			return nil, err
		}
	}
	if !top.Defaults.IsZero() {
		if s.defaults, _, err = s.settings("defaults", &top.Defaults, false); err != nil {
			return nil, err
		}
	}
	return s, s.readRuns(&top.Runs)
}

func (s *scenario) readRuns(n *yaml.Node) error {
	switch {
	case n.IsZero():
		return s.errorf(1, "no runs: want a list of them")
	case n.Kind != yaml.SequenceNode:
		return s.errorf(n.Line, "runs: want a list")
	case len(n.Content) == 0:
		return s.errorf(n.Line, "runs: the list is empty")
	case len(n.Content) > maxScenarioRuns:
		return s.errorf(n.Line, "runs: %d of them, more than %d", len(n.Content), maxScenarioRuns)
	}
	for i, item := range n.Content {
		r := scenarioRun{line: item.Line}
		var err error
		if r.settings, r.name, err = s.settings("runs", item, true); err != nil {
			return err
		}
		if len(r.settings) == 0 && r.name == "" {
			return s.errorf(r.line, "runs: an empty run: give it a name at least")
		}
		if r.name == "" {
			r.name = strconv.Itoa(i + 1)
		}
		if j := slices.IndexFunc(s.runs, func(o scenarioRun) bool { return o.name == r.name }); j >= 0 {
			return s.errorf(r.line, "run %q has the name of the one in line %d", r.name, s.runs[j].line)
		}
		s.runs = append(s.runs, r)
	}
	return nil
}

// settings reads one map of flags. Values are tried, so that mistakes are found also where another level replaces them.
func (s *scenario) settings(what string, n *yaml.Node, named bool) (list []setting, name string, err error) {
	if n.Kind != yaml.MappingNode {
		return nil, "", s.errorf(n.Line, "%s: want a map of flags and their values", what)
	}
	_, flags := scratchRun()
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, "", s.errorf(key.Line, "%s: want the long name of a flag before the colon", what)
		}
		if first := lines[key.Value]; first > 0 {
			return nil, "", s.errorf(key.Line, "%q is given twice, first in line %d", key.Value, first)
		}
		lines[key.Value] = key.Line
		if named && key.Value == "name" {
			if name, err = s.text("name", value); err != nil {
				return nil, "", err
			}
			continue
		}
		f := flags.Lookup(key.Value)
		switch {
		case slices.Contains(outsideScenario, key.Value):
			return nil, "", s.errorf(key.Line, "%s: stands on the command line only, for all runs together", key.Value)
		case key.Value == "host":
			return nil, "", s.errorf(key.Line, "host: stands at the top level, because a document has one server")
		case f == nil:
			return nil, "", s.errorf(key.Line, "unknown flag %q", key.Value)
		}
		set := setting{flag: f.Name, line: value.Line}
		if set.values, set.list, err = s.values(f, value); err != nil {
			return nil, "", err
		}
		if err := set.apply(f); err != nil {
			return nil, "", s.errorf(value.Line, "%s: %w", f.Name, err)
		}
		list = append(list, set)
	}
	return list, name, nil
}

// values reads the value of one flag. What the command line takes as a comma list may be a list here.
func (s *scenario) values(f *pflag.Flag, n *yaml.Node) ([]string, bool, error) {
	kind := f.Value.Type()
	if n.Kind != yaml.SequenceNode {
		v, err := s.scalar(f.Name, kind, n)
		return []string{v}, false, err
	}
	if kind != "string" && kind != "stringSlice" {
		return nil, false, s.errorf(n.Line, "%s: want one value, not a list", f.Name)
	}
	var values []string
	for _, item := range n.Content {
		v, err := s.scalar(f.Name, "string", item)
		if err != nil {
			return nil, false, err
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, false, s.errorf(n.Line, "%s: the list is empty", f.Name)
	}
	return values, true, nil
}

type scalarKind struct {
	flag string // prefix of the type's name
	want string
	tags []string
}

// scalarKinds ends with all other types. Sizes and times are strings to the flags, and numbers are fine for them.
var scalarKinds = []scalarKind{
	{"bool", "true or false", []string{"!!bool"}},
	{"int", "a whole number", []string{"!!int"}},
	{"uint", "a whole number", []string{"!!int"}},
	{"float", "a number", []string{"!!int", "!!float"}},
	{"", "a text or a number", []string{"!!str", "!!int", "!!float"}},
}

func (s *scenario) scalar(flag, kind string, n *yaml.Node) (string, error) {
	i := slices.IndexFunc(scalarKinds, func(k scalarKind) bool { return strings.HasPrefix(kind, k.flag) })
	k := scalarKinds[i]
	switch {
	case n.Kind == yaml.AliasNode:
		return "", s.errorf(n.Line, "%s: want %s, not an alias", flag, k.want)
	case n.Kind != yaml.ScalarNode:
		return "", s.errorf(n.Line, "%s: want %s", flag, k.want)
	case !slices.Contains(k.tags, n.ShortTag()):
		return "", s.errorf(n.Line, "%s: want %s, not %q", flag, k.want, n.Value)
	}
	return n.Value, nil
}

func (s *scenario) text(what string, n *yaml.Node) (string, error) {
	v, err := s.scalar(what, "string", n)
	if err == nil && (strings.TrimSpace(v) == "" || strings.ContainsFunc(v, unicode.IsControl)) {
		err = s.errorf(n.Line, "%s %q: want one line of text", what, v)
	}
	return v, err
}

func (s *scenario) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{s.file, line}, args...)...)
}

var (
	yamlLine    = regexp.MustCompile(`^line (\d+): `)
	yamlUnknown = regexp.MustCompile(`^field (.+) not found in type \S+$`)
)

func (s *scenario) yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if te, ok := errors.AsType[*yaml.TypeError](err); ok && len(te.Errors) > 0 {
		text = te.Errors[0]
	}
	line := ""
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, text = m[1]+": ", text[len(m[0]):]
	}
	if m := yamlUnknown.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("unknown key %q: want version, name, host, defaults and runs", m[1])
	}
	if strings.HasSuffix(text, ".scenarioFile") {
		text = "want a map with version and runs"
	}
	return fmt.Errorf("%s:%s %s", s.file, strings.TrimSuffix(line, " "), text)
}

func (set *setting) apply(f *pflag.Flag) error {
	f.Changed = true
	if list, ok := f.Value.(pflag.SliceValue); ok && set.list {
		return list.Replace(set.values)
	}
	return f.Value.Set(strings.Join(set.values, ","))
}

func scratchRun() (*Options, *pflag.FlagSet) {
	o, f := new(Options), pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.Register(f)
	return o, f
}

// step is one run: the only one of a command line, or one of a scenario.
type step struct {
	o              *Options
	p              *runPlan
	scenario, name string         // empty without a scenario
	options        map[string]any // what was set, by the flags' names
}

// steps plans all runs before the first is measured, so that a mistake in the last does not show after an hour.
func (o *Options) steps(cmd *cobra.Command) ([]*step, error) {
	if o.scenario == "" {
		p, err := o.Plan(cmd)
		return []*step{{o: o, p: p}}, err
	}
	if err := o.checkOutputs(); err != nil {
		return nil, err
	}
	const operation, hint = "read scenario", "rdmaperf run --help"
	f, err := os.Open(o.scenario)
	if err != nil {
		return nil, cli.Usage(operation, err, "a YAML file")
	}
	defer f.Close()
	data, err := values.ReadText(f, maxScenarioBytes) // one byte more than is allowed, for parseScenario to see
	if err != nil {
		return nil, cli.Usage(operation, fmt.Errorf("%s: %w", o.scenario, err), "a YAML file")
	}
	s, err := parseScenario(o.scenario, data)
	if err != nil {
		return nil, cli.Usage(operation, err, hint)
	}
	var steps []*step
	for i := range s.runs {
		r := &s.runs[i]
		st, err := o.step(s, r, cmd.Flags())
		if err != nil {
			return nil, fmt.Errorf("%s: %s:%d: run %s: %w", operation, s.file, r.line, r.name, err)
		}
		steps = append(steps, st)
	}
	return steps, nil
}

// step puts one run together: defaults, then the run, then the command line.
func (o *Options) step(s *scenario, r *scenarioRun, given *pflag.FlagSet) (*step, error) {
	cmd := &cobra.Command{Use: "run"}
	st := &step{o: new(Options), scenario: s.name, name: r.name, options: map[string]any{}}
	st.o.Register(cmd.Flags())
	if st.o.host = o.host; o.host == "" {
		st.o.host = s.host
	}
	var fromCommand []setting
	given.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "scenario" && f.Name != "fail-if" && cmd.Flags().Lookup(f.Name) != nil {
			set := setting{flag: f.Name, values: []string{f.Value.String()}}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				set.values, set.list = list.GetSlice(), true
			}
			fromCommand = append(fromCommand, set)
		}
	})
	levels := [][]setting{s.defaults, r.settings, fromCommand}
	for i, level := range levels {
		for _, set := range level {
			if slices.ContainsFunc(slices.Concat(levels[i+1:]...), set.replacedBy) {
				continue
			}
			if err := set.apply(cmd.Flags().Lookup(set.flag)); err != nil {
				return nil, cli.Usage("read --"+set.flag, err, "rdmaperf run --help all")
			}
			if !slices.Contains(outsideScenario, set.flag) {
				st.options[set.flag] = strings.Join(set.values, ",")
			}
		}
	}
	var err error
	if st.p, err = st.o.Plan(cmd); err != nil {
		return nil, err
	}
	// Some mistakes show only beside the transports. What is merely not possible here is left to the run's turn.
	m := &runner{o: st.o, p: st.p}
	err = m.open()
	if e := m.close(); e != nil || reports.Code(err) == reports.ExitUsage {
		return nil, errors.Join(err, e)
	}
	return st, nil
}

// replacedBy tells whether a flag of a later level takes the place of this one: the same, or one that excludes it.
func (set *setting) replacedBy(later setting) bool {
	return set.flag == later.flag || slices.Contains(Exclusive, [2]string{set.flag, later.flag}) ||
		slices.Contains(Exclusive, [2]string{later.flag, set.flag})
}

// measure takes the steps in order. A run that is not possible here leaves the others possible; any other error ends
// the scenario. The worst exit code comes first.
func (o *Options) measure(ctx context.Context, steps []*step, doc *reports.Document, log *slog.Logger,
	stderr io.Writer) error {
	var errs []error
	for _, st := range steps {
		if st.name != "" {
			log.Debug("scenario", "run", st.name)
		}
		first := len(doc.Results)
		doc.AddPublished(st.p.published)
		m := &runner{o: st.o, p: st.p, doc: doc, log: log, stderr: stderr, to: &o.to, metrics: &o.metrics, raw: &o.raw,
			profile: &o.profile}
		err := m.measure(ctx)
		st.mark(doc.Results[first:])
		if err == nil {
			continue
		}
		if st.name != "" {
			err = fmt.Errorf("run %s: %w", st.name, err)
		}
		if reports.Code(err) != reports.ExitNotRun {
			errs = slices.Insert(errs, 0, err)
			break
		}
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return errs[0] // joined, it would lose its operation in the document
	}
	return errors.Join(errs...)
}

func (st *step) mark(results []reports.Result) {
	if st.scenario == "" {
		return
	}
	for i := range results {
		p := results[i].Parameters
		if p == nil {
			p = map[string]any{}
			results[i].Parameters = p
		}
		p["scenario"], p["run"], p["options"] = st.scenario, st.name, st.options
	}
}
