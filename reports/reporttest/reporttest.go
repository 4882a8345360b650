// Package reporttest lets tests hold the form of a result document against the schema. No command links it.
package reporttest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Validate fails t, and does not stop it, when document does not follow the project's result schema.
func Validate(t testing.TB, document []byte) {
	t.Helper()
	if err := check(document); err != nil {
		t.Errorf("result document breaks the schema: %v\n%s", err, document)
	}
}

// Described fails t when a field of a detail, or of a struct in it, is not in the schema of its member.
func Described(t testing.TB, w *reports.Workload) {
	t.Helper()
	type node struct {
		Properties map[string]json.RawMessage
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(w.Schema), &members); err != nil {
		t.Fatalf("schema of %s: %v", w.Name, err)
	}
	var walk func(path string, raw json.RawMessage, of reflect.Type)
	walk = func(path string, raw json.RawMessage, of reflect.Type) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		var n node
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[reports.Latency]() {
			return
		}
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Fatalf("schema of %s: %v", path, err)
		}
		for f := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(f).Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			in, ok := n.Properties[name]
			if !ok {
				t.Errorf("%s.%s is written but not in the schema", path, name)
				continue
			}
			walk(path+"."+name, in, of.Field(f).Type)
		}
	}
	detail := w.Detail()
	name := detail.Member(w.Name)
	walk(name, members[name], reflect.TypeOf(detail))
}

var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	const name = "results.schema.json"
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(reports.Schema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat() // date-time is an annotation only, unless asked for
	if err := c.AddResource(name, raw); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

func check(document []byte) error {
	s, err := schema()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return s.Validate(v)
}
