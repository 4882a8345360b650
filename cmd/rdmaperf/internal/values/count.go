package values

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Count is a number of operations on the command line: 1000, 10k, 2M or 1e6. Unlike in
// sizes, k, M and G are 1000 and its powers. It is a flag (pflag.Value).
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
