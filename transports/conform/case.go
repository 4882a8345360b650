package conform

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Level is how binding the clause is (RFC 2119).
type Level uint8

const (
	// Must: a failure is red.
	Must Level = iota
	// Should: a failure is reported, and red only under Options.Strict.
	Should
	// May: informational. What happened is recorded, and a failure is never red.
	May
)

var levelNames = [...]string{"must", "should", "may"}

// String is must, should or may.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "level?"
}

// Profile is how much time a case, or a run, may take.
type Profile uint8

const (
	// Fast: the whole catalogue of one transport in seconds.
	Fast Profile = iota
	// Full: long loops, and the cases that are marked with it.
	Full
)

// String is fast or full.
func (p Profile) String() string {
	if p == Full {
		return "full"
	}
	return "fast"
}

// ParseProfile is the inverse of String.
func ParseProfile(s string) (Profile, error) {
	switch s {
	case "fast", "":
		return Fast, nil
	case "full":
		return Full, nil
	}
	return Fast, usagef("profile %q: want fast or full", s)
}

// Case is one requirement and the procedure that checks it.
type Case struct {
	ID          string        // "group/words", stable for ever
	Clause      string        // where the requirement is; in tables * follows what Unchecked names
	Unchecked   string        // sections of it that could not be held against the specification itself
	Requirement string        // quoted, or in our words
	Level       Level         // how binding
	Needs       rdma.Need     // unmet: unsupported, with the gaps as evidence
	Without     rdma.Features // unsupported on a device that declares any of these
	Lacks       string        // why no device of this contract can be asked; the case has no Run
	Raw         bool          // needs a device whose queue pairs are led by hand
	Kill        bool          // needs a Harness that is a Killer
	Path        time.Duration // 0, or how long octets may stay unacknowledged on a path that is harmed
	IPv6        bool          // needs a Harness that has an address of IPv6
	Memory      uint64        // bytes that the machine must have to spare, as a device may pin them
	Hazard      bool          // it crashes some kernels that are in use
	Profile     Profile       // Full: left out of the fast profile unless named exactly
	Run         func(e *Env)  // the case passes when it returns; it fails by the helpers of Env
}

// Group is the part of the ID before the slash.
func (c *Case) Group() string {
	g, _, _ := strings.Cut(c.ID, "/")
	return g
}

// Record is the result of the case on a transport, without its outcome.
func (c *Case) Record(transport string, seed uint64) Result {
	return Result{ID: c.ID, Clause: c.Clause, Unchecked: c.Unchecked, Level: c.Level.String(), Transport: transport,
		Seed: seed, Requirement: c.Requirement}
}

// unheld finds the sections with an asterisk: those that could not be held against the specification itself.
var unheld = regexp.MustCompile(`((?:IBTA (?:Table )?|RDMAC verbs 1\.0 )?[^ ,;*]+)\*`)

// Catalogue lists all cases in the order they run. The caller owns the slice.
func Catalogue() []Case {
	all := slices.Concat(devCases, qpsCases, rawCases, vlyCases, ordCases, sndCases, inlCases, immCases, wimCases,
		rdwCases, rdrCases, atmCases, fenCases, srqCases, rnrCases, accCases, keyCases, partCases, mapCases, pageCases,
		invCases, mwCases, fluCases, cqoCases, evtCases, lrgCases, priCases, cmCases, cmLifeCases, dthCases)
	for i := range all {
		c := &all[i]
		var sections []string
		for _, m := range unheld.FindAllStringSubmatch(c.Clause, -1) {
			sections = append(sections, m[1])
		}
		c.Clause, c.Unchecked = strings.ReplaceAll(c.Clause, "*", ""), strings.Join(sections, ", ")
	}
	return all
}

// Select filters cases by globs of path.Match over the ID. A pattern without a slash matches the group. An empty only
// means all. A bad pattern, a pattern of only that matches nothing, and an empty selection are ErrUsage.
func Select(cases []Case, only, skip []string, p Profile) ([]Case, error) {
	for _, pat := range slices.Concat(only, skip) {
		if _, err := path.Match(pat, ""); err != nil {
			return nil, usagef("case pattern %q: %v", pat, err)
		}
	}
	used := make([]bool, len(only))
	var out []Case
	for _, c := range cases {
		picked := len(only) == 0 && c.Profile <= p
		for i, pat := range only {
			if matches(pat, &c) {
				used[i] = true
				picked = picked || c.Profile <= p || pat == c.ID
			}
		}
		for _, pat := range skip {
			picked = picked && !matches(pat, &c)
		}
		if picked {
			out = append(out, c)
		}
	}
	for i, pat := range only {
		if !used[i] {
			return nil, usagef("case pattern %q matches no case", pat)
		}
	}
	if len(out) == 0 {
		return nil, usagef("no case selected")
	}
	return out, nil
}

func matches(pat string, c *Case) bool {
	name := c.ID
	if !strings.Contains(pat, "/") {
		name = c.Group()
	}
	ok, _ := path.Match(pat, name)
	return ok
}

const uncheckedMeans = "known from open sources only, not held against the licensed specification"

func clauseText(clause, unchecked string) string {
	if unchecked == "" {
		return clause
	}
	return clause + " (not checked: " + unchecked + ")"
}

// List writes one line a case: ID, level, profile, clause; and at the end what "not checked" means.
func List(w io.Writer, cases []Case) error {
	unchecked := 0
	for _, c := range cases {
		if c.Unchecked != "" {
			unchecked++
		}
		hazard := ""
		if c.Hazard {
			hazard = " (hazard)"
		}
		if _, err := fmt.Fprintf(w, "%-28s %-6s %-4s  %s%s\n", c.ID, c.Level, c.Profile,
			clauseText(c.Clause, c.Unchecked), hazard); err != nil {
			return err
		}
	}
	if unchecked == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%d of %d cases name sections that are %s.\n", unchecked, len(cases), uncheckedMeans)
	return err
}

// Explain describes one of the cases; ErrUsage for an unknown ID.
func Explain(cases []Case, id string) (string, error) {
	for _, c := range cases {
		if c.ID != id {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n  level        %s\n  clause       %s\n  requirement  %s\n  profile      %s\n",
			c.ID, c.Level, c.Clause, c.Requirement, c.Profile)
		if c.Unchecked != "" {
			fmt.Fprintf(&b, "  not checked  %s: %s\n", c.Unchecked, uncheckedMeans)
		}
		if c.Hazard {
			fmt.Fprintf(&b, "  hazard       it crashes some kernels that are in use: a test machine, or a guest of "+
				"its own\n")
		}
		if c.Lacks != "" {
			fmt.Fprintf(&b, "  unsupported  %s\n", c.Lacks)
		}
		if n := needText(&c); n != "" {
			fmt.Fprintf(&b, "  needs        %s\n", n)
		}
		return b.String(), nil
	}
	return "", usagef("case %q does not exist", id)
}

func needText(c *Case) string {
	parts := abilities(c.Needs.Ops, c.Needs.Features)
	for _, n := range []struct {
		needed bool
		text   string
	}{
		{c.Needs.SGE > 1, fmt.Sprintf("%d scatter/gather elements", c.Needs.SGE)},
		{c.Needs.Msg > 0, fmt.Sprintf("messages of %d bytes", c.Needs.Msg)},
		{c.Needs.Priorities > 0, fmt.Sprintf("%d priorities", c.Needs.Priorities)},
		{c.Raw, "queue pairs that are led by hand"},
		{c.Needs.OnDemand, "on-demand paging"},
		{c.Without != 0, "no feature " + c.Without.String()},
		{c.Path > 0, "a harness with a path that it can harm"},
		{c.Kill, "a harness that can kill a device"},
	} {
		if n.needed {
			parts = append(parts, n.text)
		}
	}
	return strings.Join(parts, ", ")
}

func abilities(ops rdma.OpSet, f rdma.Features) (names []string) {
	for o := rdma.Opcode(0); int(o) < rdma.NumOpcodes; o++ {
		if ops.Has(o) {
			names = append(names, "operation "+o.String())
		}
	}
	if f != 0 {
		names = append(names, "feature "+f.String())
	}
	return names
}
