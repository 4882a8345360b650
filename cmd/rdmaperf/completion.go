package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/conformance"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/defaults"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/transports"
)

// vocabulary has by flag the words that the shell offers; of a list the last word is completed.
var vocabulary = map[string]func(c *cobra.Command) []string{
	"workload":   func(*cobra.Command) []string { return workload.Names(catalogue.All()) },
	"op":         opWords,
	"polling":    words(engine.PollingBusy, engine.PollingEvent, "adaptive"),
	"loop":       words(run.LoopAuto, engine.LoopPlain, engine.LoopProvider),
	"verify":     words(reports.VerifyAll, reports.VerifySample, reports.VerifyNone),
	"mtu":        words(stackspec.PathMTUs...),
	"connection": words(stackspec.Reliable),
	"arrivals":   words(engine.ArrivalsConstant, engine.ArrivalsPoisson),
	"nice":       words("auto", "0", "19"),
	"pin":        words("auto", "none"),
	"warmup":     words("auto", "none", "200ms", "1000"),
	"ib-dev":     func(*cobra.Command) []string { return deviceWords() },
	"only":       caseWords,
	"skip":       caseWords,
	"explain":    caseWords,
	"profile":    words("fast", "full"),
	"format":     formatWords,
}

var fileFlags = []string{"json", "output", "scenario", "raw", "cpu-profile", "metrics-textfile", "junit", "jsonl",
	"ledger", "conform", "token-file", "tls-cert", "tls-key", "tls-ca"}

func words(list ...string) func(*cobra.Command) []string {
	return func(*cobra.Command) []string { return list }
}

func opWords(*cobra.Command) []string {
	var names []string
	for k := transports.KindSend; k < transports.KindCall; k++ {
		names = append(names, k.String())
	}
	return names
}

func deviceWords() []string {
	devices, err := stackspec.Devices()
	if err != nil {
		return nil
	}
	var names []string
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names
}

func caseWords(*cobra.Command) []string {
	var ids []string
	for _, c := range conformance.EveryCase() {
		ids = append(ids, c.ID)
	}
	return ids
}

func formatWords(c *cobra.Command) []string {
	switch c.Name() {
	case "run":
		return run.Formats
	case "conform":
		return []string{"text", "jsonl"}
	case "compare":
		return render.Names(render.OfComparison)
	case "report":
		return render.Names(render.OfReport)
	}
	return nil
}

// wordsOf is nil for a flag without words.
func wordsOf(flag string) func(*cobra.Command) []string {
	if of := vocabulary[flag]; of != nil {
		return of
	}
	for _, w := range catalogue.All() {
		if list := w.Meta().Words[flag]; list != nil {
			return words(list...)
		}
	}
	return nil
}

// completeValues gives every flag its words. Cobra keeps them, and the command, for the life of the process.
func completeValues(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(fileFlags, f.Name) {
				return
			}
			if f.Name == "transport" {
				c.RegisterFlagCompletionFunc(f.Name, stackspec.Complete)
				return
			}
			of := wordsOf(f.Name)
			list := strings.HasSuffix(f.Value.Type(), "Slice")
			c.RegisterFlagCompletionFunc(f.Name, func(c *cobra.Command, _ []string, typed string) ([]string,
				cobra.ShellCompDirective) {
				if of == nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return completeWord(of(c), typed, list)
			}) // an error would be of a flag that is not there
		})
	}
}

func completeWord(words []string, typed string, list bool) ([]string, cobra.ShellCompDirective) {
	before, last, directive := "", typed, cobra.ShellCompDirectiveNoFileComp
	var have []string
	if list {
		parts := stackspec.Split(typed, ',')
		last, have = parts[len(parts)-1], parts[:len(parts)-1]
		before = strings.TrimSuffix(typed, last)
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	var offered []string
	for _, w := range words {
		if strings.HasPrefix(w, last) && !slices.Contains(have, w) {
			offered = append(offered, before+w)
		}
	}
	return offered, directive
}

func completeHosts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	file, err := defaults.ReadConfig(defaults.ConfigFile(os.Getenv))
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Hosts, cobra.ShellCompDirectiveNoFileComp
}
