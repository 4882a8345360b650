// Package values reads the values of flags: sizes, times, lists and sweeps.
package values

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Error is a mistake in the value of a flag.
type Error struct {
	Flag string // without dashes
	Err  error  // need not name the flag again
}

// Wrong returns a mistake in a flag.
func Wrong(flag, format string, args ...any) error {
	return &Error{flag, fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return "--" + e.Flag + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Unique is the list without spaces around its words and without repetitions.
func Unique(list []string) []string { return view.Unique(list, strings.TrimSpace) }

// Bytes reads a size that must fit an int32, as message lengths do.
func Bytes(s string) (int, error) {
	n, err := reports.ParseSize(strings.TrimSpace(s))
	if err != nil {
		return 0, err
	}
	if n > 1<<31 {
		return 0, fmt.Errorf("size %s is above the limit of 2G", s)
	}
	return int(n), nil
}

// Sizes reads message sizes, each once and at least 1 byte.
func Sizes(list []string) ([]int, error) {
	var sizes []int
	for _, s := range list {
		n, err := Bytes(s)
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return nil, fmt.Errorf("sizes start at 1 byte")
		case slices.Contains(sizes, n):
			return nil, fmt.Errorf("size %s is given twice", s)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// Works reads a comma list of times that may be 0.
func Works(flag, s string) ([]time.Duration, error) {
	var all []time.Duration
	for _, part := range strings.Split(s, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 {
			return nil, Wrong(flag, "%q: want 0 or a time such as 5us", part)
		}
		all = append(all, d)
	}
	return all, nil
}

// Duration reads "3" and "0.5" (seconds, as perftest), "3s" or "500ms".
func Duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if strings.Trim(s, "0123456789.") == "" {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a time above 0 such as 3, 0.5, 3s or 500ms", s)
	}
	return d, nil
}

// Count is a number of operations: 1000, 10k, 2M or 1e6. Unlike in sizes, k, M and G are powers of 1000.
type Count int64

// String is the plain number.
func (c *Count) String() string { return strconv.FormatInt(int64(*c), 10) }

// Set reads a count.
func (c *Count) Set(s string) error {
	digits, unit := s, int64(1)
	if n := len(s); n > 1 {
		if i := strings.IndexByte("kmg", s[n-1]|0x20); i >= 0 {
			digits = s[:n-1]
			for range i + 1 {
				unit *= 1000
			}
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		f, e := strconv.ParseFloat(digits, 64)
		if e != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<62 || !strings.ContainsAny(digits, "eE") {
			return fmt.Errorf("want a whole number such as 1000, 10k or 1e6")
		}
		n = int64(f)
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return fmt.Errorf("above the limit of %d", int64(math.MaxInt64))
	}
	*c = Count(n * unit)
	return nil
}

// Type is shown in help.
func (c *Count) Type() string { return "count" }

// ListVar adds a flag that is a comma list, whose items may have commas inside parentheses. Given again, it adds to the
// list.
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

// maxSweep bounds a sweep: more points than anybody waits for are a typing error.
const maxSweep = 1000

// Counts reads a sweep of whole numbers, given by the flag.
func Counts(flag, s string) ([]int, error) {
	values, err := Sweep(flag, s)
	if err != nil {
		return nil, err
	}
	var counts []int
	for _, v := range values {
		if v != math.Trunc(v) || v > math.MaxInt32 {
			return nil, Wrong(flag, "%q: %v is no whole number", s, v)
		}
		counts = append(counts, int(v))
	}
	return counts, nil
}

// Sweep reads "1000,5000" or "1000:5000:500", whose end is included. All values are above 0.
func Sweep(flag, s string) ([]float64, error) {
	if strings.Contains(s, ":") {
		return sweepRange(flag, s)
	}
	values, err := numbers(flag, s, ",")
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return nil, Wrong(flag, "%q: %v is given twice", s, v)
		}
	}
	return values, err
}

func sweepRange(flag, s string) ([]float64, error) {
	v, err := numbers(flag, s, ":")
	switch {
	case err != nil:
		return nil, err
	case len(v) != 3 || v[0] > v[1]:
		return nil, Wrong(flag, "%q: want FROM:TO:STEP", s)
	case (v[1]-v[0])/v[2] > maxSweep:
		return nil, Wrong(flag, "%q: more than %d values", s, maxSweep)
	}
	var values []float64
	// A small part of a step makes up for rounding, so that the end is not lost.
	for i := 0; v[0]+float64(i)*v[2] <= v[1]+v[2]/1e6; i++ {
		values = append(values, v[0]+float64(i)*v[2])
	}
	return values, nil
}

func numbers(flag, s, separator string) (values []float64, err error) {
	for field := range strings.SplitSeq(s, separator) {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return nil, Wrong(flag, "%q: want numbers above 0, got %q", s, field)
		}
		values = append(values, v)
	}
	return values, nil
}

// errUTF16 is what PowerShell's > writes.
var errUTF16 = errors.New("it is UTF-16, want UTF-8 (in PowerShell: ... | Out-File -Encoding utf8 FILE)")

// Text reads UTF-8 from r without a byte order mark; UTF-16 is an error.
func Text(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(3) // a shorter file has no mark
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}),
		len(head) > 1 && (head[0] == 0) != (head[1] == 0):
		return nil, errUTF16
	case bytes.Equal(head, []byte("\ufeff")):
		_, err = b.Discard(len(head))
		return b, err
	}
	return b, nil
}

// ReadText reads what Text gives, of which max bytes and one more, by which a caller sees that there are more.
func ReadText(r io.Reader, max int64) ([]byte, error) {
	t, err := Text(r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(t, max+1))
}
