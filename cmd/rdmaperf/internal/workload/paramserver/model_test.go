package paramserver

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Parameters and multiply-adds of a forward pass are the published ones.
func TestEmbeddedModels(t *testing.T) {
	published := map[string]struct {
		tensors    int
		parameters int64
		low, high  float64 // multiply-adds, G
	}{
		"resnet50":   {161, 25_557_032, 3.8, 4.1},
		"vgg16":      {32, 138_357_544, 15.3, 15.6},
		"inception3": {284, 23_834_568, 5.6, 5.8},
		"bert-base":  {199, 109_482_240, 10.5, 11.5},
	}
	names := Models()
	if len(names) != len(published) {
		t.Errorf("models %q, want %d", names, len(published))
	}
	for _, name := range names {
		want, known := published[name]
		m, err := LoadModel(name)
		if err != nil || !known {
			t.Fatalf("%s: %v, known %v", name, err, known)
		}
		var work int64
		for _, x := range m.Tensors {
			work += x.MultiplyAdds
		}
		if g := float64(work) / 1e9; len(m.Tensors) != want.tensors || m.Parameters() != want.parameters ||
			g < want.low || g > want.high {
			t.Errorf("%s: %d tensors, %d parameters, %.2f G multiply-adds, want %+v", name, len(m.Tensors),
				m.Parameters(), g, want)
		}
		if n, err := m.Bytes(4); err != nil || int64(n) != 4*want.parameters {
			t.Errorf("%s: %d bytes, %v, want 4 a parameter", name, n, err)
		}
	}
}

const goodModel = "# a comment\n" + modelHeader + "\nfirst.weight,10,100\n\nfirst.bias,1,0\r\n"

func TestModelFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.csv")
	workloadtest.Must(t, os.WriteFile(path, []byte(goodModel), 0o644))
	m, err := LoadModel(path)
	if err != nil || m.Name != "mine" || len(m.Tensors) != 2 || m.Tensors[1] != (Tensor{"first.bias", 1, 0}) {
		t.Errorf("%+v, %v, want two tensors of mine", m, err)
	}
	for text, want := range map[string]string{
		"":                                   "no tensors",
		modelHeader:                          "no tensors",
		"tensor,parameters\na,1":             "line 1: want the header",
		"# c\na,1,1":                         "line 2: want the header",
		modelHeader + "\na,1":                "line 2: 2 fields",
		modelHeader + "\na,1,1,1":            "line 2: 4 fields",
		modelHeader + "\na,1,1\na,1,1":       "line 3: tensor a is given twice",
		modelHeader + "\n,1,1":               "line 2: tensor \"\"",
		modelHeader + "\na b,1,1":            "line 2: tensor \"a b\"",
		modelHeader + "\na,0,1":              "line 2: parameters \"0\"",
		modelHeader + "\na,-1,1":             "line 2: parameters \"-1\"",
		modelHeader + "\na,+1,1":             "line 2: parameters",
		modelHeader + "\na,1,1.5":            "line 2: multiply-adds",
		modelHeader + "\na,1,":               "line 2: multiply-adds",
		modelHeader + "\na,1,0":              "nothing to compute",
		modelHeader + "\na,1,9" + nines:      "line 2: multiply-adds",
		modelHeader + "\na,9" + nines + ",1": "line 2: parameters",
		strings.Repeat("#", maxModelBytes+1): "more than",
	} {
		if _, err := ParseModel("m", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	for _, name := range []string{"resnet", "nowhere.csv", filepath.Join(t.TempDir(), "with space.csv")} {
		if _, err := LoadModel(name); err == nil {
			t.Errorf("model %q was taken", name)
		}
	}
	big := &Model{Name: "big", Tensors: []Tensor{{"a", 1 << 40, 1}}}
	for _, per := range []float64{4, 0, -1, 1e9} {
		if _, err := big.Bytes(per); err == nil {
			t.Errorf("%v bytes a parameter were taken", per)
		}
	}
	if n, err := big.Bytes(1e-6); err != nil || n != (1<<40)/1_000_000 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

const nines = "99999999999999999999"

func FuzzParseModel(f *testing.F) {
	f.Add([]byte(goodModel))
	f.Add([]byte(modelHeader + "\na,1,1\na,1,1"))
	f.Add([]byte("#\n" + modelHeader + "\nx,0,0\r\n"))
	for _, name := range Models() {
		b, err := modelFiles.ReadFile("models/" + name + ".csv")
		workloadtest.Must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseModel("m", data)
		if err != nil {
			return
		}
		var out strings.Builder
		out.WriteString(modelHeader + "\n")
		for _, x := range m.Tensors {
			if x.Parameters < 1 || x.Parameters > maxCount || x.MultiplyAdds < 0 {
				t.Fatalf("%+v", x)
			}
			out.WriteString(x.Name + "," + strconv.FormatInt(x.Parameters, 10) + "," + strconv.FormatInt(x.MultiplyAdds,
				10) + "\n")
		}
		again, err := ParseModel("m", []byte(out.String()))
		if err != nil || len(again.Tensors) != len(m.Tensors) || again.Parameters() != m.Parameters() {
			t.Fatalf("written again: %v", err)
		}
	})
}

// Overlap is all, nothing, and what lies between; nothing to hide has none.
func TestOverlap(t *testing.T) {
	for _, c := range []struct{ comm, comp, iteration, want float64 }{{100, 50, 100, 1}, {100, 50, 150, 0},
		{100, 200, 250, 0.5}, {100, 100, 250, -0.5}} {
		ps := &ParamServer{CommunicationNs: c.comm, ComputeNs: c.comp,
			Iteration: reports.Latency{Count: 9, P50: c.iteration}}
		ps.Complete([]float64{1, 2})
		if ps.Overlap == nil || math.Abs(*ps.Overlap-c.want) > 1e-9 || ps.IdealNs != max(c.comm, c.comp) ||
			ps.MeanLow != 0 || ps.MeanHigh != 0 {
			t.Errorf("%+v: %+v", c, ps)
		}
	}
	ps := &ParamServer{CommunicationNs: 100, Iteration: reports.Latency{Count: 9, P50: 100}}
	ps.Complete([]float64{10, 11, 12})
	// Student's factor of two degrees of freedom is 4.303.
	if half := (ps.MeanHigh - ps.MeanLow) / 2; ps.Overlap != nil || math.Abs(half-4.303/math.Sqrt(3)) > 1e-3 {
		t.Errorf("overlap %v, half width %v", ps.Overlap, half)
	}
}

func TestAnOverlapBeyondAllIsImpossible(t *testing.T) {
	for overlap, want := range map[float64]string{0.93: "", -7.862: "-786.2 %"} {
		if got := (&ParamServer{Overlap: &overlap}).Contradiction(); (got == "") != (want == "") ||
			!strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", overlap, got, want)
		}
	}
}
