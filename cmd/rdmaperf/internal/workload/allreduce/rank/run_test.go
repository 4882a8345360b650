package rank

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// Every element counts, and every iteration has other numbers.
func TestSumsAreCompared(t *testing.T) {
	for _, n := range []int{1, 7, period, period + 1, 3*period + 5} {
		v, sum := make([]float32, n), make([]float32, n)
		const ranks = 3
		for r := range ranks {
			fill(v, 5, 1, r)
			for k := range v {
				sum[k] += v[k]
			}
		}
		if err := compare(sum, 5, ranks, ranks*(ranks-1)/2); err != nil {
			t.Errorf("%d elements: %v", n, err)
		}
		if err := compare(sum, 6, ranks, ranks*(ranks-1)/2); !errors.Is(err, errSum) {
			t.Errorf("%d elements of another iteration: %v", n, err)
		}
		for _, k := range []int{0, n / 2, n - 1} {
			sum[k]++
			if err := compare(sum, 5, ranks, ranks*(ranks-1)/2); !errors.Is(err, errSum) {
				t.Errorf("element %d of %d is wrong: %v", k, n, err)
			}
			sum[k]--
		}
	}
}

// lines are a link of text.
type lines struct {
	in  *json.Decoder
	out *json.Encoder
}

func (l *lines) Send(v any) error                       { return l.out.Encode(v) }
func (l *lines) Receive(_ context.Context, v any) error { return l.in.Decode(v) }

// A rank says what is wrong with an order, and ends.
func TestOrdersThatMakeNoSense(t *testing.T) {
	open := func(string) (rdma.Device, error) { return memdev.NewFabric(memdev.Config{}).Open("a") }
	hello := `{"hello":{"stack":"mem","listen":"a:0","rank":0,"size":1,"eager_bytes":8,"segment_bytes":8,"timeout_ns":1000000000}}` + "\n"
	for in, want := range map[string]string{
		`{"run":{"bytes":4}}`: "out of turn",
		hello + hello:         "out of turn",
		hello + `{"run":{"algorithm":"ring","arm":"none","bytes":6,"offload":"none","iterations":1}}`: "1 iterations of 6 bytes",
		hello + `{"run":{"algorithm":"tree","arm":"none","bytes":8,"offload":"none","iterations":1}}`: "no algorithm",
		hello + `{"run":{"algorithm":"ring","arm":"some","bytes":8,"offload":"none","iterations":1}}`: "arm \\\"some\\\"",
		hello + `{"run":{"algorithm":"ring","arm":"none","bytes":8,"offload":"leap","iterations":1}}`: "offload",
	} {
		var out strings.Builder
		l := &lines{json.NewDecoder(strings.NewReader(in)), json.NewEncoder(&out)}
		if err := Serve(t.Context(), l, open); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", in, err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: answered %s, want %s", in, out.String(), want)
		}
	}
}
