package paramserver

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
)

// Tensor is one parameter tensor of a network.
type Tensor struct {
	Name       string
	Parameters int64
	// MultiplyAdds of a forward pass of one sample; 0 for what costs next to nothing.
	MultiplyAdds int64
}

// Model is a network as its tensors in the order of the forward pass.
type Model struct {
	Name    string
	Tensors []Tensor
}

//go:embed models/*.csv
var modelFiles embed.FS

// Models lists the embedded networks.
func Models() []string {
	entries, _ := modelFiles.ReadDir("models") // they are part of the program
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".csv"))
	}
	return names
}

// Limits of a model file, far above the largest network that is trained on one machine.
const (
	maxTensors    = 1 << 14
	maxModelBytes = 4 << 20
	maxModelName  = 64
	maxTensorName = 256
	maxCount      = 1 << 50 // parameters and multiply-adds: sums of all tensors fit
)

const modelHeader = "tensor,parameters,multiply_adds"

// LoadModel takes an embedded network by its name, or else reads a file, whose name ends with .csv.
func LoadModel(name string) (*Model, error) {
	if slices.Contains(Models(), name) {
		b, _ := modelFiles.ReadFile("models/" + name + ".csv") // it was listed
		return ParseModel(name, b)
	}
	if !strings.HasSuffix(name, ".csv") {
		return nil, fmt.Errorf("model %q: want one of %s, or a file that ends with .csv", name,
			strings.Join(Models(), ", "))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	defer f.Close()
	b, err := values.ReadText(f, maxModelBytes)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return ParseModel(strings.TrimSuffix(filepath.Base(name), ".csv"), b)
}

// ParseModel reads a table: comments (#), the header, and a line for each tensor in forward order. It is strict: no
// quotes, spaces or signs, every name once. An error names the line.
func ParseModel(name string, data []byte) (*Model, error) {
	m := &Model{Name: name}
	if len(name) == 0 || len(name) > maxModelName ||
		strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }) {
		return nil, fmt.Errorf("model %q: want a name of 1 to %d letters without spaces and commas", name, maxModelName)
	}
	if len(data) > maxModelBytes {
		return nil, fmt.Errorf("model %s: more than %d bytes", name, maxModelBytes)
	}
	seen := map[string]bool{}
	header, sum := false, int64(0)
	for i, line := range bytes.Split(data, []byte{'\n'}) {
		text := string(bytes.TrimSuffix(line, []byte{'\r'}))
		bad := func(why string) error { return fmt.Errorf("model %s, line %d: %s", name, i+1, why) }
		switch {
		case text == "" || text[0] == '#':
			continue
		case !header && text != modelHeader:
			return nil, bad("want the header " + modelHeader)
		case !header:
			header = true
			continue
		}
		fields := strings.Split(text, ",")
		if len(fields) != 3 {
			return nil, bad(fmt.Sprintf("%d fields, want 3", len(fields)))
		}
		t := Tensor{Name: fields[0]}
		if t.Name == "" || len(t.Name) > maxTensorName ||
			strings.ContainsFunc(t.Name, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			return nil, bad(fmt.Sprintf("tensor %q: want a name of 1 to %d letters without spaces and quotes", t.Name,
				maxTensorName))
		}
		if seen[t.Name] {
			return nil, bad("tensor " + t.Name + " is given twice")
		}
		seen[t.Name] = true
		var ok bool
		if t.Parameters, ok = parseCount(fields[1]); !ok || t.Parameters == 0 {
			return nil, bad(fmt.Sprintf("parameters %q: want a whole number above 0", fields[1]))
		}
		if t.MultiplyAdds, ok = parseCount(fields[2]); !ok {
			return nil, bad(fmt.Sprintf("multiply-adds %q: want a whole number", fields[2]))
		}
		if sum += t.MultiplyAdds; sum > maxCount {
			return nil, bad("the multiply-adds are too many")
		}
		if len(m.Tensors) == maxTensors {
			return nil, bad(fmt.Sprintf("more than %d tensors", maxTensors))
		}
		m.Tensors = append(m.Tensors, t)
	}
	switch {
	case len(m.Tensors) == 0:
		return nil, fmt.Errorf("model %s: no tensors", name)
	case sum == 0:
		return nil, fmt.Errorf("model %s: no multiply-adds: nothing to compute", name)
	}
	return m, nil
}

func parseCount(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= maxCount
}

// Parameters is the number of all tensors together.
func (m *Model) Parameters() int64 {
	var n int64
	for _, t := range m.Tensors {
		n += t.Parameters
	}
	return n
}

func (m *Model) sizes(perParameter float64) []int64 {
	sizes := make([]int64, len(m.Tensors))
	for i, t := range m.Tensors {
		sizes[i] = max(1, int64(float64(t.Parameters)*perParameter))
	}
	return sizes
}

// Bytes is the size of all tensors at so many bytes a parameter; an error above the longest window.
func (m *Model) Bytes(perParameter float64) (int, error) {
	if !(perParameter >= 1e-6 && perParameter <= 64) {
		return 0, fmt.Errorf("%v bytes a parameter: want 0.000001 to 64", perParameter)
	}
	var sum int64
	for _, n := range m.sizes(perParameter) {
		if sum += n; sum > engine.MaxSize {
			return 0, fmt.Errorf("the tensors of %s need %.0f MiB at %v bytes a parameter: want at most 2 GiB", m.Name,
				float64(m.Parameters())*perParameter/(1<<20), perParameter)
		}
	}
	return int(sum), nil
}
