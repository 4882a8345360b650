package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
)

// loadFlags choose the open loop, as given.
type loadFlags struct {
	rate     float64
	sweep    string
	arrivals string
	interval string
	qpSweep  string
	bothWays bool
	clients  string
	atOnce   string
}

func (l *loadFlags) register(f *pflag.FlagSet) {
	f.Float64Var(&l.rate, "rate", 0, "latency as an open loop of so many operations a second, timed from their intended starts (default closed loop)")
	f.StringVar(&l.sweep, "rate-sweep", "", "latency under load: several rates, as a comma list or FROM:TO:STEP")
	f.StringVar(&l.arrivals, "arrivals", bench.ArrivalsConstant, "of --rate: constant or poisson")
	f.StringVar(&l.qpSweep, "qp-sweep", "", "latency and throughput against the number of QPs, instead of --qp: a comma list or FROM:TO:STEP, a point each; --threads is the most")
	f.StringVar(&l.clients, "clients", strconv.Itoa(bench.DefaultClients), "incast: how many clients, a thread and a connection each, send to one server thread; a comma list or FROM:TO:STEP is a point each")
	f.StringVar(&l.atOnce, "concurrency", "1", "connect: how many connections are set up at once, a thread each; a comma list or FROM:TO:STEP is a point each")
	f.BoolVarP(&l.bothWays, "bidirectional", "b", false, "throughput with both sides sending at once: each direction and the sum")
	f.StringVar(&l.interval, "interval", "", "also show how each window went, by intervals such as 1s (default not)")
}

// qps are the numbers of QPs of a sweep; 0 stands for what --qp says.
func (l *loadFlags) qps(changed func(string) bool) ([]int, error) {
	if !changed("qp-sweep") {
		return []int{0}, nil
	}
	return parseCounts("qp-sweep", l.qpSweep)
}

// parseCounts reads a sweep of whole numbers in the form of a rate sweep.
func parseCounts(flag, s string) ([]int, error) {
	values, err := parseSweep(flag, s)
	if err != nil {
		return nil, err
	}
	var counts []int
	for _, v := range values {
		if v != math.Trunc(v) || v > math.MaxInt32 {
			return nil, wrong(flag, "%q: %v is no whole number", s, v)
		}
		counts = append(counts, int(v))
	}
	return counts, nil
}

// series reads --interval; 0 is none.
func (l *loadFlags) series(changed func(string) bool) (time.Duration, error) {
	if !changed("interval") {
		return 0, nil
	}
	return parseDuration(l.interval)
}

// maxRepeat bounds --repeat; every repeat stays in memory with its histograms.
const maxRepeat = 1000

// maxSweep bounds a sweep: more points than anybody waits for are a typing error.
const maxSweep = 1000

// rates are the open loops asked for; one rate of 0 is the closed loop.
func (l *loadFlags) rates(changed func(string) bool) ([]float64, error) {
	switch {
	case changed("rate") && l.rate <= 0:
		return nil, wrong("rate", "%v: want more than 0", l.rate)
	case changed("rate"):
		return []float64{l.rate}, nil
	case changed("rate-sweep"):
		return parseSweep("rate-sweep", l.sweep)
	case changed("arrivals"):
		return nil, wrong("arrivals", "for --rate and --rate-sweep")
	}
	return []float64{0}, nil
}

// parseSweep reads "1000,5000" or "1000:5000:500", whose end is included.
func parseSweep(flag, s string) ([]float64, error) {
	number := func(field string) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return 0, wrong(flag, "%q: %q is no number above 0", s, field)
		}
		return v, nil
	}
	read := func(fields []string) (values []float64, err error) {
		for _, f := range fields {
			v, err := number(f)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return values, nil
	}
	if !strings.Contains(s, ":") {
		rates, err := read(strings.Split(s, ","))
		for i, r := range rates {
			if slices.Contains(rates[:i], r) {
				return nil, wrong(flag, "%q: %v stands there twice", s, r)
			}
		}
		return rates, err
	}
	v, err := read(strings.Split(s, ":"))
	switch {
	case err != nil:
		return nil, err
	case len(v) != 3 || v[0] > v[1]:
		return nil, wrong(flag, "%q: want FROM:TO:STEP", s)
	case (v[1]-v[0])/v[2] > maxSweep:
		return nil, wrong(flag, "%q: more than %d values", s, maxSweep)
	}
	var rates []float64
	// A small part of a step makes up for rounding, so that the end is not lost.
	for i := 0; v[0]+float64(i)*v[2] <= v[1]+v[2]/1e6; i++ {
		rates = append(rates, v[0]+float64(i)*v[2])
	}
	return rates, nil
}
