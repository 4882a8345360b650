package run

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestADeviceAloneMeansVerbs(t *testing.T) {
	for args, want := range map[string]string{
		"-d rxe0":                              "verbs:rxe0",
		"-x 3":                                 "verbs(gid=3)",
		"-i 2 --gid-index 0":                   "verbs(port=2,gid=0)",
		"--transport tcp,verbs -d rxe0":        "tcp,verbs:rxe0",
		"--transport tcp --transport iwarp":    "tcp,iwarp",
		"--transport iwarp,iwarp":              "twice",
		"--transport verbs,verbs:rxe0 -d rxe0": "twice",
	} {
		o, f := new(Options), pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.Register(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got, err := o.Stacks()
		if text := strings.Join(got, ","); text != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v, want %s", args, text, err, want)
		}
	}
}
