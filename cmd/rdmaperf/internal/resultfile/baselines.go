package resultfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

var baselineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Baseline is a checked name. Its results on this machine are baselines/NAME/MACHINE/STACK.json (XDG Base Directory
// 0.8).
type Baseline struct{ name, root string }

func NewBaseline(name string) (Baseline, error) {
	if !baselineName.MatchString(name) {
		return Baseline{}, fmt.Errorf(
			"%q: want letters, digits, dots, dashes and underscores, a letter or digit first", name)
	}
	root := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(root) { // "all paths must be absolute", others are ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return Baseline{}, err
		}
		root = filepath.Join(home, ".local", "share")
	}
	return Baseline{name, filepath.Join(root, "rdmaperf", "baselines", name)}, nil
}

// Dir holds what was saved on this machine.
func (b Baseline) Dir() string { return filepath.Join(b.root, thisMachineID()) }

// thisMachineID is a keyed hash, as machine-id(5) asks for; without that file, of the host's name.
func thisMachineID() string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil || len(strings.TrimSpace(string(id))) == 0 {
		host, _ := os.Hostname() // without one all such machines are the same
		id = []byte("host " + host)
	}
	sum := sha256.Sum256(append([]byte("rdmaperf baseline "), strings.TrimSpace(string(id))...))
	return hex.EncodeToString(sum[:6])
}

// Open makes the directory, before anything is measured.
func (b Baseline) Open() error {
	if err := os.MkdirAll(b.Dir(), 0o755); err != nil {
		return err
	}
	return TryFile(filepath.Join(b.Dir(), "try.json"))
}

// Save replaces the results of every stack of the document.
func (b Baseline) Save(doc *reports.Document) error {
	for _, s := range view.Unique(doc.Results, func(r reports.Result) string { return r.Stack }) {
		one := *doc
		one.Results = view.Only(doc.Results, func(r reports.Result) bool { return r.Stack == s })
		one.Repeats = reports.SummariseRepeats(one.Results)
		if err := one.WriteFile(filepath.Join(b.Dir(), stackFile(s))); err != nil {
			return err
		}
	}
	return nil
}

// stackFile is the same for no two stacks, by its hash.
func stackFile(stack string) string {
	plain := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(stack, "-"), "-")
	sum := sha256.Sum256([]byte(stack))
	return plain[:min(len(plain), 100)] + "-" + hex.EncodeToString(sum[:4]) + ".json"
}

func (b Baseline) read() (*reports.Document, error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(b.Dir()), "*.json"))
	if err != nil || len(names) > 0 {
		return joinFiles("read baseline "+b.name, names)
	}
	cause := fmt.Errorf("%s: no such file, and no baseline of that name was saved on this machine", b.name)
	if others, _ := os.ReadDir(b.root); len(others) > 0 {
		cause = fmt.Errorf("baseline %s was saved on another machine, whose figures say nothing of this one", b.name)
	}
	return nil, cli.Usage("read baseline", cause, "rdmaperf run --save "+b.name+", or a file of rdmaperf run --json")
}

// NewestRun is the document of the last run that was saved in the working directory.
func NewestRun() (string, error) {
	names, err := filepath.Glob(filepath.Join("rdmaperf-results", "[0-9]*", DocumentFile)) // without the link to one
	if err == nil && len(names) == 0 {
		err = errors.New("no run is saved in rdmaperf-results")
	}
	if err != nil {
		return "", cli.Usage("compare", err, "rdmaperf compare OLD NEW")
	}
	return slices.Max(names), nil // named by their time
}

// isBaseline tells whether an argument of compare names a baseline: no file has that name.
func isBaseline(arg string) bool {
	_, err := os.Stat(arg)
	return errors.Is(err, fs.ErrNotExist) && baselineName.MatchString(arg) && filepath.Ext(arg) != ".json"
}
