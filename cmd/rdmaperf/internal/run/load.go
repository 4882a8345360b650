package run

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// loadFlags choose how much is under way at once, as given.
type loadFlags struct {
	rate        float64
	sweep       string
	arrivals    string
	interval    string
	appWork     string
	qpSweep     string
	outstanding string
	neighbours  string
}

func (l *loadFlags) register(f *pflag.FlagSet) {
	f.Float64Var(&l.rate, "rate", 0,
		"latency as an open loop of so many operations a second, timed from their intended starts (default closed loop)")
	values.ListVar(f, &l.sweep, "rate-sweep", "", "latency under load: several rates, as a comma list or FROM:TO:STEP")
	f.StringVar(&l.arrivals, "arrivals", engine.ArrivalsConstant, "of --rate: constant or poisson")
	values.ListVar(f, &l.appWork, "app-work", "0",
		"latency and throughput of send, send_imm and write_imm: how long the server computes for each message that "+
			"it receives, a comma list such as 0,5us,50us")
	values.ListVar(f, &l.qpSweep, "qp-sweep", "",
		"latency and throughput against the number of QPs, instead of --qp: a comma list or FROM:TO:STEP, a point "+
			"each; --threads is the most")
	values.ListVar(f, &l.outstanding, "outstanding", "",
		"rpc, kv, tensor: calls outstanding on each of the --qp connections, a goroutine each; a comma list or "+
			"FROM:TO:STEP is a point each (default --tx-depth, else 1)")
	values.ListVar(f, &l.neighbours, "neighbours", "0",
		"processes that spin on this machine beside each point, at the priority of the run: a comma list such as "+
			"0,1,2,4 shows how each stack fares on a busy machine")
	f.StringVar(&l.interval, "interval", "",
		"show how each window goes, by intervals such as 1s, while it does and in the result (default not)")
}

// axes fills in what points are multiplied by.
func (l *loadFlags) axes(c *workload.Common) (err error) {
	if c.Rates, err = l.rates(c.Changed); err != nil {
		return err
	}
	c.QPs, c.Outstanding = []int{0}, []int{0}
	if c.AppWork, err = values.Works("app-work", l.appWork); err != nil {
		return err
	}
	if c.Changed("qp-sweep") {
		if c.QPs, err = values.Counts("qp-sweep", l.qpSweep); err != nil {
			return err
		}
	}
	if l.outstanding != "" {
		c.Outstanding, err = values.Counts("outstanding", l.outstanding)
	}
	return err
}

// series reads --interval; 0 is none.
func (l *loadFlags) series(changed func(string) bool) (time.Duration, error) {
	if !changed("interval") {
		return 0, nil
	}
	return values.Duration(l.interval)
}

// rates are the open loops asked for; one rate of 0 is the closed loop.
func (l *loadFlags) rates(changed func(string) bool) ([]float64, error) {
	switch {
	case changed("rate") && l.rate <= 0:
		return nil, values.Wrong("rate", "%v: want more than 0", l.rate)
	case changed("rate"):
		return []float64{l.rate}, nil
	case changed("rate-sweep"):
		return values.Sweep("rate-sweep", l.sweep)
	case changed("arrivals"):
		return nil, values.Wrong("arrivals", "for --rate and --rate-sweep")
	}
	return []float64{0}, nil
}
