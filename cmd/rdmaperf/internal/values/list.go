package values

import "github.com/spf13/pflag"

// ListVar adds a flag whose value is a comma list, in which items may have commas inside parentheses. Given again, the
// flag adds to the list, as pflag's slices do.
func ListVar(f *pflag.FlagSet, p *string, name, value, usage string) {
	*p = value
	f.Var(&list{p, false}, name, usage)
}

type list struct {
	text  *string
	given bool
}

func (l *list) String() string { return *l.text }
func (l *list) Type() string   { return "string" }

func (l *list) Set(s string) error {
	if l.given {
		s = *l.text + "," + s
	}
	*l.text, l.given = s, true
	return nil
}
