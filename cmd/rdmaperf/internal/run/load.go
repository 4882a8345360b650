package run

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

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
		"open loop: so many operations per second\nof latency, timed from their intended starts (default closed loop)")
	values.ListVar(f, &l.sweep, "rate-sweep", "", "latency at several rates: a comma list or FROM:TO:STEP")
	f.StringVar(&l.arrivals, "arrivals", engine.ArrivalsConstant, "arrivals of --rate: constant or poisson")
	values.ListVar(f, &l.appWork, "app-work", "0",
		"time that the server computes per received send, send_imm or write_imm in latency and throughput: a comma "+
			"list such as 0,5us,50us")
	values.ListVar(f, &l.qpSweep, "qp-sweep", "",
		"latency and throughput for several numbers of QPs, instead of --qp: a comma list or FROM:TO:STEP; "+
			"--threads is the maximum")
	values.ListVar(f, &l.outstanding, "outstanding", "",
		"rpc, kv, tensor: outstanding calls per connection (--qp), a goroutine each: a comma list or FROM:TO:STEP "+
			"(default --tx-depth, else 1)")
	values.ListVar(f, &l.neighbours, "neighbours", "0",
		"competing processes that spin on this machine during each measurement, at the same priority: a comma list "+
			"such as 0,1,2,4")
	f.StringVar(&l.interval, "interval", "",
		"report each interval, such as 1s, during the measurement and in the result (default none)")
}

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
		return nil, values.Wrong("arrivals", "only for --rate and --rate-sweep")
	}
	return []float64{0}, nil
}
