package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the documents")

const top = "../.."

// documents are the pages at the top and below docs, by their path from the top.
func documents(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	must(t, filepath.WalkDir(filepath.Join(top, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	}))
	texts := map[string]string{}
	for _, f := range append(files, filepath.Join(top, "README.md"), filepath.Join(top, "CHANGELOG.md"),
		filepath.Join(top, "SECURITY.md"), filepath.Join(top, "CONTRIBUTING.md")) {
		texts[need(filepath.Rel(top, f))(t)] = string(need(os.ReadFile(f))(t))
	}
	return texts
}

var (
	generated = regexp.MustCompile(`(?s)(<!-- generated ([a-z-]+): [^\n]*-->\n)(.*?)(<!-- end ([a-z-]+) -->)`)
	cases     = regexp.MustCompile(`runs \d+ cases`)
)

// fresh wants of a file that it is as it is generated, or writes it so with -update.
func fresh(t *testing.T, path, is, want string) {
	t.Helper()
	if is == want {
		return
	}
	if !*update {
		t.Errorf("%s is stale: run go test ./cmd/rdmaperf -run '%s' -update, and read the change", path, t.Name())
		return
	}
	must(t, os.WriteFile(path, []byte(want), 0o644))
}

// TestDocumentsTellWhatIsTrue keeps the tables and counts of the documents as the program's own tables have them.
func TestDocumentsTellWhatIsTrue(t *testing.T) {
	seen := map[string]bool{}
	counted := false
	for name, text := range documents(t) {
		want := generated.ReplaceAllStringFunc(text, func(block string) string {
			m := generated.FindStringSubmatch(block)
			table := documentTables[m[2]]
			if table == nil || m[2] != m[5] {
				t.Errorf("%s: no table %s that ends as %s", name, m[2], m[5])
				return block
			}
			seen[m[2]] = true
			return m[1] + table(t) + m[4]
		})
		counted = counted || cases.MatchString(want)
		want = cases.ReplaceAllString(want, fmt.Sprintf("runs %d cases", len(conform.Catalogue())))
		fresh(t, filepath.Join(top, name), text, want)
	}
	for table := range documentTables {
		if !seen[table] {
			t.Errorf("no document has the table %s", table)
		}
	}
	if !counted {
		t.Error("no document has the number of cases")
	}
}

// Members of a result that a workload describes by itself are in the schema as it says.
func TestDocumentsHaveTheSchemaOfEveryMember(t *testing.T) {
	const begin, end = "      \"type\": \"object\", \"properties\": {\n", "      }\n    },\n"
	path := filepath.Join(top, "reports", "results.schema.json")
	text := need(os.ReadFile(path))(t)
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatal("no place for generated members")
	}
	var members []string
	for _, w := range catalogue.Results() {
		if w.Schema == "" {
			continue
		}
		var of reports.Members
		must(t, json.Unmarshal([]byte(w.Schema), &of))
		if name := w.Detail().Member(w.Name); len(of) != 1 || of[0].Name != name {
			t.Fatalf("%s: the schema is not of the member %s", w.Name, name)
		}
		body := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(w.Schema), "{"), "}")
		members = append(members, strings.TrimRight(body, " \n"))
	}
	want := head + begin + strings.ReplaceAll(strings.Join(members, ","), "\n  ", "\n        ")
	want = strings.Replace(want, begin+"\n", begin, 1)
	if len(members) > 0 {
		want += "\n"
	}
	want += end + tail
	fresh(t, path, string(text), want)
}

// README.md has at most 100 lines of 120 columns, and 8 KB.
func TestReadmeIsShort(t *testing.T) {
	text := documents(t)["README.md"]
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 100 || len(text) > 8000 {
		t.Errorf("%d lines and %d bytes, want at most 100 and 8000", len(lines), len(text))
	}
	for i, l := range lines {
		if n := len([]rune(l)); n > 120 && !strings.HasPrefix(l, "| ") { // a table's row cannot be wrapped
			t.Errorf("line %d has %d columns", i+1, n)
		}
	}
}

// A page has at most three screens, unless the program writes it or another program's figures are in it.
func TestPagesAreShort(t *testing.T) {
	for name, text := range documents(t) {
		dir := filepath.Dir(name)
		if dir == "docs/reference" || dir == "docs/papers" || name == "docs/perftest.md" {
			continue
		}
		if n := strings.Count(text, "\n"); n > 150 {
			t.Errorf("%s has %d lines, want at most 150", name, n)
		}
		for i, l := range strings.Split(text, "\n") {
			if n := len([]rune(l)); n > 130 && !strings.HasPrefix(l, "| ") && !strings.HasPrefix(l, "    ") {
				t.Errorf("%s:%d has %d columns", name, i+1, n)
			}
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	asCode   = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor = regexp.MustCompile("[^\\p{L}\\p{N} _-]")
)

// anchors are what GitHub makes of the headings of a page.
func anchors(text string) map[string]bool {
	made := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		made[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return made
}

// Links inside the repository lead somewhere; others are at least addresses.
func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	texts := documents(t)
	links := 0
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(asCode.ReplaceAllString(text, ""), -1) {
			links++
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
				continue
			}
			if u.Scheme != "" {
				if u.Scheme != "https" || u.Host == "" {
					t.Errorf("%s: %s is no address", name, m[1])
				}
				continue
			}
			path := name
			if u.Path != "" {
				path = filepath.Join(filepath.Dir(name), u.Path)
			}
			if _, err := os.Stat(filepath.Join(top, path)); err != nil {
				t.Errorf("%s: %s leads nowhere", name, m[1])
			} else if u.Fragment != "" && !anchors(texts[path])[u.Fragment] {
				t.Errorf("%s: %s: no such heading", name, m[1])
			}
		}
	}
	if links < 20 {
		t.Errorf("%d links found, want more", links)
	}
}

// shellWords splits a line of a document as a shell would: quotes, and an end at a
// comment, a redirection or the next command.
func shellWords(line string) []string {
	var words []string
	for _, w := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		if strings.HasPrefix(w, "#") || strings.HasPrefix(w, ">") || w == "|" || w == "&&" {
			break
		}
		if before, found := strings.CutSuffix(w, ";"); found {
			return append(words, before)
		}
		words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(w))
	}
	return words
}

// understood parses a command line, and of run and serve also finds what they refuse
// before they begin.
func understood(words []string) error {
	root := newRootCommand()
	cmd, args, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root {
		return errors.New("no such command")
	}
	var o run.Options
	if cmd.Name() == "run" {
		cmd = runCommand(&o)
	}
	if cmd.DisableFlagParsing { // its options are another tool's
		return cmd.ValidateArgs(args)
	}
	if err := cmd.ParseFlags(args); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	if cmd.Name() == "run" && !cmd.Flags().Changed("scenario") {
		for _, name := range []string{"tls-ca", "tls-cert", "tls-key"} { // certificates are the reader's
			cmd.Flags().Set(name, "")
		}
		_, err = o.Plan(cmd)
	}
	return err
}

// codeLines are the lines of a document that stand as code.
func codeLines(text string) []string {
	var lines []string
	fenced := false
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		switch code, indented := strings.CutPrefix(l, "    "); {
		case strings.HasPrefix(l, "```"):
			fenced = !fenced
		case fenced:
			lines = append(lines, l)
		case indented:
			lines = append(lines, code)
		}
	}
	return lines
}

// Every command line that a document shows is one that rdmaperf understands, every script one that is there.
func TestDocumentedCommandsAreUnderstood(t *testing.T) {
	commands, scripts := 0, 0
	for name, text := range documents(t) {
		if strings.HasSuffix(name, "reference/commands.md") || strings.HasPrefix(name, "docs/papers") {
			continue // written by the program; a test of help reads its examples
		}
		for _, l := range codeLines(text) {
			l = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(l), "- run: "), "run: ")
			words := shellWords(strings.TrimPrefix(strings.TrimPrefix(l, "$ "), "go run ./cmd/"))
			switch {
			case len(words) > 1 && words[0] == "rdmaperf":
				commands++
				if err := understood(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", name, l, err)
				}
			case len(words) > 0 && strings.HasPrefix(words[0], "ci/"):
				scripts++
				if info, err := os.Stat(filepath.Join(top, words[0])); err != nil || info.Mode()&0o111 == 0 {
					t.Errorf("%s: %s is no script", name, words[0])
				}
			}
		}
	}
	if commands < 40 || scripts < 2 {
		t.Errorf("%d command lines and %d scripts found, want more", commands, scripts)
	}
}

// The ledger that the documents show is one that conform accepts.
func TestDocumentedLedgerIsAccepted(t *testing.T) {
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(documents(t)["docs/how-to/conformance.md"])
	if block == nil {
		t.Fatal("no ledger in docs/how-to/conformance.md")
	}
	l := need(conform.ReadLedger(strings.NewReader(block[1])))(t)
	if stale := l.Stale(conform.Catalogue()); len(l.Entries) == 0 || len(stale) > 0 {
		t.Errorf("%d entries, stale %+v", len(l.Entries), stale)
	}
}
