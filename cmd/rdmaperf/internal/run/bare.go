package run

import (
	"slices"

	"github.com/spf13/pflag"
)

// isBare tells whether nothing says what to measure, with or without a HOST.
func isBare(f *pflag.FlagSet) bool {
	bare := true
	f.Visit(func(f *pflag.Flag) {
		bare = bare && (slices.Contains(reaching, f.Name) || slices.Contains(printing, f.Name))
	})
	return bare
}

// reaching are flags that say how a server is reached, and not what is measured with it.
var reaching = []string{"port", "token-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "no-wait",
	"timeout"}

// printing are flags that say what is done with the results.
var printing = []string{"output", "export", "json", "force", "no-save", "save", "format", "details", "report_gbits",
	"counters", "cpu-profile", "metrics-listen", "metrics-push", "metrics-textfile", "quiet", "verbose"}
