package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
)

// The published curves: a NIC of the model loses most of its rate beyond its caches, the
// tier loses nothing, and two runs with one seed measure the same to the bit.
func TestRegionsOnTheModel(t *testing.T) {
	run := func(args ...string) map[string]float64 {
		d := measure(t, append([]string{"run", "--transport", "model(cx3)+mem,lite+model(cx3)+mem", "--workload",
			"regions", "-s", "64", "-n", "3000", "--seed", "7"}, args...)...)
		all := map[string]float64{}
		for _, res := range d.Results {
			if p := curves.Of(&res); p == nil || res.Label != "model" || !res.Verified {
				t.Fatalf("%+v", res)
			} else {
				for _, v := range []string{"rate", "latency_p50_ns", "latency_p99_ns"} {
					all[fmt.Sprint(strings.HasPrefix(res.Stack, "lite"), " ", res.Op, " ", p.X, " ", v)] = p.Values[v]
				}
			}
		}
		return all
	}
	args := []string{"--regions", "64,1024", "--total", "1,64"}
	first := run(args...)
	if again := run(args...); !maps.Equal(first, again) || len(first) != 2*4*3 {
		t.Errorf("two runs with one seed differ: %v and %v", first, again)
	}
	for _, c := range []struct {
		op        string
		few, many float64
	}{{"count", 64, 1024}, {"total", 1 << 20, 64 << 20}} {
		native := first[fmt.Sprint(false, " ", c.op, " ", c.many, " rate")] /
			first[fmt.Sprint(false, " ", c.op, " ", c.few, " rate")]
		tier := first[fmt.Sprint(true, " ", c.op, " ", c.many, " rate")] /
			first[fmt.Sprint(true, " ", c.op, " ", c.few, " rate")]
		if !(native < 0.5 && tier > 0.9) {
			t.Errorf("%s: the device keeps %.2f of its rate and the tier %.2f", c.op, native, tier)
		}
	}
}

func TestRegionsOnARealStack(t *testing.T) {
	d := measure(t, "run", "--transport", "iwarp,lite+iwarp", "--workload", "regions", "--regions", "1,20", "-n", "200")
	if n := len(d.Results); n != 2*2*2 {
		t.Errorf("%d results, want 8", n)
	}
}

// Contexts of queue pairs are what a NIC of the model has no room for; the tier's users share few.
func TestSharingOnTheModel(t *testing.T) {
	d := measure(t, "run", "--transport", "model(cx3)+mem,lite(k=2)+model(cx3)+mem", "--workload", "sharing",
		"--users", "16,600")
	rate, pairs := map[string]float64{}, map[string]float64{}
	for _, res := range d.Results {
		p := curves.Of(&res)
		key := fmt.Sprint(strings.HasPrefix(res.Stack, "lite"), " ", p.X)
		rate[key], pairs[key] = p.Values["rate"], p.Values["queue_pairs"]
	}
	if pairs["false 600"] != 600 || pairs["true 600"] != 2 || rate["false 600"] > rate["false 16"]/2 ||
		rate["true 600"] < 0.9*rate["true 16"] {
		t.Errorf("rates %v, queue pairs %v", rate, pairs)
	}
}

func TestLocksAndClassesOfLite(t *testing.T) {
	d := measure(t, "run", "--transport", "lite+iwarp", "--workload", "locks,qos,sharing", "--contenders", "1,3",
		"--users", "1,5", "-D", "900ms")
	n, high, low := map[string]int{}, 0.0, 0.0
	for _, res := range d.Results {
		n[res.Workload]++
		v := curves.Of(&res).Values
		high, low = high+v["high_rate"], low+v["low_bytes"]
		if res.Workload == "locks" && (!res.Verified || v["fewest_share"] < 0.9) {
			t.Errorf("a lock that is not fair, or was not checked: %v", v)
		}
	}
	if n["locks"] != 2 || n["sharing"] != 2 || n["qos"] != 30 || high == 0 || low == 0 {
		t.Errorf("%v results, high %g, low %g", n, high, low)
	}
}

// On a NIC of the model, whose link both classes share in order, SW-Pri keeps high as it is alone and low near what it
// has alone; queue pairs set apart separate nothing there. Two runs measure the same to the bit.
func TestClassesOnTheModel(t *testing.T) {
	arms := []string{"lite+model(cx3)+mem", "lite(qos=hwsep)+model(cx3)+mem", "lite(qos=swpri)+model(cx3)+mem"}
	run := func() map[string]map[string]float64 {
		d := measure(t, "run", "--transport", strings.Join(arms, ","), "--workload", "qos", "-D", "90ms")
		all := map[string]map[string]float64{}
		for _, res := range d.Results {
			if res.Label != "model" || !res.Verified || res.Parameters["clock"] != "the model's" || res.CPU != nil {
				t.Fatalf("%+v", res)
			}
			all[fmt.Sprint(res.Transport, " ", int(curves.Of(&res).X/0.003))] = curves.Of(&res).Values
		}
		return all
	}
	first := run()
	if again := run(); !maps.EqualFunc(first, again, maps.Equal) || len(first) != 3*30 {
		t.Errorf("two runs differ: %v and %v", first, again)
	}
	for i, c := range []struct{ least, most, low float64 }{{100, 1000, 0.95}, {100, 1000, 0.95}, {1, 1.1, 0.7}} {
		alone, beside, highAlone := first[arms[i]+" 5"], first[arms[i]+" 15"], first[arms[i]+" 25"]
		if x := beside["high_p50_ns"] / highAlone["high_p50_ns"]; x < c.least || x > c.most {
			t.Errorf("%s: high beside low is %.1fx of alone, want %v to %v", arms[i], x, c.least, c.most)
		}
		if x := beside["low_bytes"] / alone["low_bytes"]; x < c.low || x > 1.05 { // of some 57 writes one more or less
			t.Errorf("%s: low beside high moves %.2f of alone, want %v at least", arms[i], x, c.low)
		}
		if alone["high_rate"] != 0 || highAlone["low_bytes"] != 0 {
			t.Errorf("%s: who is alone is not: %v, %v", arms[i], alone, highAlone)
		}
	}
}

// What making a region costs is a curve of its own, of both kinds of stacks.
func TestMakingRegions(t *testing.T) {
	d := measure(t, "run", "--transport", "mem,lite+mem", "--workload", "regions", "--make", "4K,1M")
	n := 0
	for _, res := range d.Results {
		p := curves.Of(&res)
		tier := strings.HasPrefix(res.Stack, "lite")
		if n++; res.Op != "make" || !res.Verified || p.X != float64(res.SizeBytes) || p.Values["make_ns"] <= 0 ||
			p.Values["end_ns"] <= 0 || (p.Values["map_ns"] > 0) != tier || p.Values["rate"] != 0 {
			t.Errorf("%s %s: %+v", res.Stack, res.Op, p)
		}
	}
	if n != 4 {
		t.Errorf("%d points", n)
	}
}

// A server that thinks keeps its caller waiting for as long, and whoever polls pays with CPU.
func TestServersThatThink(t *testing.T) {
	d := measure(t, "run", "--transport", "lite+iwarp,grpc(tcp)", "--workload", "think", "--think-time", "0,3ms", "-n",
		"40")
	n := 0
	for _, res := range d.Results {
		p := curves.Of(&res)
		if n++; !res.Verified || res.Operations != 40 || p.Values["call_p50_ns"] < p.X ||
			p.Values["client_cpu_ns"] <= 0 || p.Values["server_cpu_ns"] <= 0 {
			t.Errorf("%s: %d calls, %+v", res.Stack, res.Operations, p)
		}
	}
	if n != 4 {
		t.Errorf("%d points", n)
	}
}

// A ring for each client of LITE, receives for each queue pair: memory grows in proportion,
// whatever the longest message of a tier that has a larger ring.
func TestMemoryByClients(t *testing.T) {
	d := measure(t, "run", "--transport", "mem,lite+mem,lite(rpc=send)+mem", "--workload", "clients", "--machines",
		"1,3", "-s", "4K,64K")
	got := map[string]float64{}
	for _, res := range d.Results {
		p := curves.Of(&res)
		got[fmt.Sprint(res.Transport, " ", res.SizeBytes, " ", p.X)] = p.Values["server_bytes"]
		if p.Values["server_queue_pairs"] != p.X*map[bool]float64{true: 4, false: 1}[res.Transport == "lite+mem"] {
			t.Errorf("%s: %+v", res.Transport, p)
		}
	}
	for _, s := range []string{"mem", "lite+mem", "lite(rpc=send)+mem"} {
		for _, size := range []string{" 4096", " 65536"} {
			if one, three := got[s+size+" 1"], got[s+size+" 3"]; one <= 0 || three < 2.9*one || three > 3.1*one {
				t.Errorf("%s%s: %v", s, size, got)
			}
		}
	}
	if got["mem 65536 1"] != 64*65536 || got["lite+mem 65536 1"] != got["lite+mem 4096 1"] ||
		got["lite+mem 65536 1"] >= got["mem 65536 1"] {
		t.Errorf("%v", got)
	}
}
