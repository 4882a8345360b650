package stackspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const stacksIntro = `A stack is written as it is layered, outermost layer first: sched(slice=64K)+iwarp.
A layer is a name, parameters in parentheses with commas between them, and for
kernel verbs a device behind a colon: verbs(cm):rxe0. At the bottom stands a
provider; tiers stand over a device and are one again; what is always outermost
stands over a device (lite+X, grpc(fused)+X) or over nothing (tcp, grpc(tcp)).
Sizes take K, M and G for powers of 1024. Of two parameters that contradict each
other the later holds.`

type section struct {
	head, summary string
	docs          []paramDoc
}

func sections() []section {
	var all []section
	for i := range Table {
		e := &Table[i]
		head := e.Label()
		if e.Chooses {
			head += "[:DEVICE]"
		}
		all = append(all, section{head, e.Summary, e.params.docs()})
	}
	return all
}

// Help is the table of stacks for a terminal.
func Help() string {
	var b strings.Builder
	b.WriteString(stacksIntro)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n\n%s\n  %s", s.head, s.summary)
		for i := range s.docs {
			d := &s.docs[i]
			fmt.Fprintf(&b, "\n    %-22s %s", d.Shown(), d.Help)
			if d.Def != "" {
				fmt.Fprintf(&b, " (default %s)", d.Def)
			}
		}
	}
	return b.String()
}

// Complete completes a comma list of stacks. Behind a comma words go without descriptions, as Bash finds none by them.
func Complete(_ *cobra.Command, _ []string, given string) ([]string, cobra.ShellCompDirective) {
	all := stackCompletions(given)
	if strings.ContainsAny(given, ",(") {
		for i, w := range all {
			all[i], _, _ = strings.Cut(w, "\t")
		}
	}
	return all, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func stackCompletions(given string) []string {
	open := strings.LastIndexByte(given, '(')
	if open > strings.LastIndexByte(given, ')') {
		return paramCompletions(given, open)
	}
	at := strings.LastIndexAny(given, ",+") + 1
	before, start := given[:at], given[at:]
	first := !strings.HasSuffix(before, "+") // the outermost layer of a stack
	var all []string
	for i := range Table {
		e := &Table[i]
		if !strings.HasPrefix(e.Name, start) || e.mount != nil && !first {
			continue
		}
		all = append(all, before+e.Name+"\t"+e.Summary)
	}
	return all
}

func paramCompletions(given string, open int) []string {
	name := given[strings.LastIndexAny(given[:open], ",+")+1 : open]
	e := Find(name)
	if e == nil {
		return nil
	}
	at := strings.LastIndexAny(given, "(,") + 1
	before, start := given[:at], given[at:]
	var all []string
	for _, d := range e.params.docs() {
		key, _, valued := strings.Cut(start, "=")
		if valued && key == d.name {
			for _, w := range d.kind.words {
				all = append(all, before+d.name+"="+w)
			}
		}
		if !valued && strings.HasPrefix(d.name, start) {
			text := d.name
			if d.kind.parse != nil {
				text += "="
			}
			all = append(all, before+text+"\t"+d.Help)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { head, _, _ := strings.Cut(s, "\t"); return head == given })
}
