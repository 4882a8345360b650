package reports

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// SizeLabel is a number of bytes for people: 4 KiB, 100 B.
func SizeLabel(n int64) string {
	s := FormatSize(n)
	if s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		return s + " B"
	}
	return s[:len(s)-1] + " " + s[len(s)-1:] + "iB"
}

// In sizeUnits, K, M and G alone are powers of 1024, as perftest's users expect. Gb is missing: it is a gigabit in this
// field.
var sizeUnits = map[string]int64{
	"": 1, "B": 1,
	"K": 1 << 10, "k": 1 << 10, "KiB": 1 << 10, "KB": 1_000, "kB": 1_000,
	"M": 1 << 20, "m": 1 << 20, "MiB": 1 << 20, "MB": 1_000_000,
	"G": 1 << 30, "g": 1 << 30, "GiB": 1 << 30, "GB": 1_000_000_000,
}

const longestSize = 100

// ParseSize reads a number of bytes, with a fraction where it gives whole bytes. K, M, G and KiB, MiB, GiB are powers
// of 1024; KB, MB, GB are powers of 1000. Signs and sizes above 2^63−1 are errors.
func ParseSize(s string) (int64, error) {
	digits := 0
	for digits < len(s) && (s[digits] >= '0' && s[digits] <= '9' || digits > 0 && s[digits] == '.') {
		digits++
	}
	if digits == 0 {
		return 0, fmt.Errorf("size %q: want a whole number of bytes such as 64, 4K or 1MiB", s)
	}
	unit, known := sizeUnits[s[digits:]]
	if !known {
		return 0, fmt.Errorf("size %q: unknown unit %q: use K, M, G or KiB, MiB, GiB (1024) or KB, MB, GB (1000)", s,
			s[digits:])
	}
	if len(s) > longestSize {
		return 0, fmt.Errorf("size %q...: longer than %d characters", s[:longestSize], longestSize)
	}
	exact, ok := new(big.Rat).SetString(s[:digits])
	if !ok {
		return 0, fmt.Errorf("size %q: %q is no number", s, s[:digits])
	}
	if exact.Mul(exact, new(big.Rat).SetInt64(unit)); !exact.IsInt() {
		return 0, fmt.Errorf("size %q: want a whole number of bytes", s)
	}
	if !exact.Num().IsInt64() {
		return 0, fmt.Errorf("size %q: too large: the limit is %d bytes", s, int64(math.MaxInt64))
	}
	return exact.Num().Int64(), nil
}

// FormatSize writes a number of bytes with the largest of K, M and G (1024) that divides it.
func FormatSize(n int64) string {
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"G", 30}, {"M", 20}, {"K", 10}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
