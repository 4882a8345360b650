package main

import (
	"runtime"
	"strings"
)

// classes are the thirds of a run of two classes.
type classes struct {
	d    results
	time float64 // of a third, seconds
}

// third is the median of the parts of a third but those at its ends.
func (c classes) third(arm string, n float64, of func(*result) float64) float64 {
	return c.d.of(arm, func(x *result) bool { return x.X > (n+0.1)*c.time && x.X < (n+0.9)*c.time }).median(of)
}

func (c classes) at(arm string, n float64, value string) float64 {
	return c.third(arm, n, func(x *result) float64 { return x.Values[value] })
}

// near is high beside low over high alone, moved what low moves beside it.
func (c classes) near(arm string) float64 {
	return ratio(c.at(arm, 1, "high_p50_ns"), c.at(arm, 2, "high_p50_ns"))
}

func (c classes) moved(arm string) float64 { return c.at(arm, 1, "low_bytes") }

// both is what both have beside each other of what each has alone, together.
func (c classes) both(arm string) float64 {
	return ratio(c.moved(arm), c.at(arm, 0, "low_bytes")) + ratio(c.at(arm, 1, "high_rate"), c.at(arm, 2, "high_rate"))
}

func showClasses(r *runner) {
	const none, apart, paced = "lite+iwarp", "lite(qos=hwsep)+iwarp", "lite(qos=swpri)+iwarp"
	arms := []string{none, apart, paced}
	c := classes{r.run("--transport", strings.Join(arms, ","), "--workload", "qos", "-D", "6s"), 2}
	for _, a := range arms {
		// The rate, since a median says nothing of the time in which high had no CPU.
		r.figure("%s: high %.0f us beside low and %.0f alone, p99 %.0f and %.0f, %.0f reads a second and %.0f, low "+
			"%.0f MiB/s beside high and %.0f alone", a, c.at(a, 1, "high_p50_ns")/1e3, c.at(a, 2, "high_p50_ns")/1e3,
			c.at(a, 1, "high_p99_ns")/1e3, c.at(a, 2, "high_p99_ns")/1e3, c.at(a, 1, "high_rate"),
			c.at(a, 2, "high_rate"), c.moved(a)/(1<<20), c.at(a, 0, "low_bytes")/(1<<20))
	}
	r.figure("what both have of what each has alone, together: none %.2f, HW-Sep %.2f, SW-Pri %.2f", c.both(none),
		c.both(apart), c.both(paced))
	r.left(runtime.NumCPU(), func(n float64, value string) float64 { return c.at(apart, n, value) },
		func(n float64) float64 { return c.third(apart, n, (*result).cpus) })
	r.holds(c.near(paced) > 0 && c.near(paced) <= 2,
		"SW-Pri: high beside low is %.1fx of alone (at most 2, arbitrary), none %.1fx, HW-Sep %.1fx", c.near(paced),
		c.near(none), c.near(apart))
	r.holds(c.moved(paced) >= c.moved(apart), "SW-Pri moves %.2f of what HW-Sep moves beside high (at least 1)",
		ratio(c.moved(paced), c.moved(apart)))
	r.showClassesOnModel()
}

// showClassesOnModel is the same by the model's clock, where a class takes nothing of the other
// but the NIC and the link.
func (r *runner) showClassesOnModel() {
	const none, apart, paced = "lite+model(cx3)+mem", "lite(qos=hwsep)+model(cx3)+mem", "lite(qos=swpri)+model(cx3)+mem"
	c := classes{r.run("--transport", strings.Join([]string{none, apart, paced}, ","), "--workload", "qos", "-D",
		"300ms"), 0.1}
	r.holds(c.near(paced) > 0 && c.near(paced) <= 2,
		"model(cx3), SW-Pri: high beside low %.1fx of alone (at most 2, arbitrary), none %.0fx, HW-Sep %.0fx; reads "+
			"a second %.0f, %.0f, %.0f",
		c.near(paced), c.near(none), c.near(apart), c.at(paced, 1, "high_rate"), c.at(none, 1, "high_rate"),
		c.at(apart, 1, "high_rate"))
	r.figure("model(cx3), SW-Pri moves %.2f of what HW-Sep moves beside high; queue pairs set apart share one link "+
		"there, and strand nothing", ratio(c.moved(paced), c.moved(apart)))
}

// left says what the CPUs of this machine leave low while high has what it has alone, if each
// class costs what it costs alone: no arm moves more without taking it from high.
func (r *runner) left(n int, at func(third float64, value string) float64, cpus func(third float64) float64) {
	low, high, alone := cpus(0), cpus(2), at(0, "low_bytes")
	if low <= 0 || high <= 0 {
		return // the system told nothing
	}
	r.figure("%d CPUs, of which low alone takes %.2f and high alone %.2f, leave low %.0f MiB/s beside high as it is "+
		"alone; HW-Sep gives it %.0f", n, low, high,
		max(float64(n)-high, 0)/low*alone/(1<<20), at(1, "low_bytes")/(1<<20))
}
