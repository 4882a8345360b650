package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type ranged struct {
	to         *int
	from, most int
}

// Ranged declares a flag for an int from least to most. Any other is refused where the command line is read.
func Ranged(f *pflag.FlagSet, to *int, name string, value, least, most int, usage string) {
	RangedP(f, to, name, "", value, least, most, usage)
}

// RangedP is Ranged with a letter.
func RangedP(f *pflag.FlagSet, to *int, name, letter string, value, least, most int, usage string) {
	*to = value
	f.VarP(&ranged{to, least, most}, name, letter, usage)
}

func (r *ranged) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < r.from || n > r.most {
		return fmt.Errorf("want %d to %d", r.from, r.most)
	}
	*r.to = n
	return nil
}

func (r *ranged) String() string {
	if r.to == nil { // pflag asks a zero value for its default
		return "0"
	}
	return strconv.Itoa(*r.to)
}

func (r *ranged) Type() string { return "int" }

// NoEmptyLists refuses a list that was given and is empty: it would mean the default.
func NoEmptyLists(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(pflag.SliceValue); ok && len(v.GetSlice()) == 0 && err == nil {
			err = Usage("read --"+f.Name, errors.New("it is empty"), "the command without it")
		}
	})
	return err
}
