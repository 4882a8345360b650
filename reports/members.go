package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Members are members of a JSON object in their order.
type Members []Member

// Member is one of them. Value is JSON.
type Member struct {
	Name  string
	Value json.RawMessage
}

// With adds a member; a value without a JSON form stays out, as does nil.
func (m Members) With(name string, value any) Members {
	b, err := json.Marshal(value)
	if err != nil || string(b) == "null" {
		return m
	}
	return append(m, Member{name, b})
}

// Get returns the value of a member, nil for none.
func (m Members) Get(name string) json.RawMessage {
	o, _ := view.First(m, func(o Member) bool { return o.Name == name })
	return o.Value
}

// has tells whether all of the names are there, and there is one.
func (m Members) has(names []string) bool {
	for _, n := range names {
		if m.Get(n) == nil {
			return false
		}
	}
	return len(names) > 0
}

func (m Members) except(out func(o Member) bool) Members {
	var kept Members
	for _, o := range m {
		if !out(o) {
			kept = append(kept, o)
		}
	}
	return kept
}

// members are the names of a workload's detail in a document.
func (w *Workload) members(workload string) []string {
	if w.Detail == nil {
		return nil
	}
	d := w.Detail()
	if name := d.Member(workload); name != "" {
		return []string{name}
	}
	return fieldNames(reflect.TypeOf(d).Elem())
}

func membersOf(d Detail, workload string) (Members, error) {
	if d == nil {
		return nil, nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if name := d.Member(workload); name != "" {
		return Members{{name, b}}, nil
	}
	var m Members
	return m, m.UnmarshalJSON(b)
}

func (m Members) into(d Detail, workload string) error {
	if name := d.Member(workload); name != "" {
		return json.Unmarshal(m.Get(name), d)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, d)
}

// DetailOf is the detail of a result when it is of that type, else nil.
func DetailOf[T any](r *Result) *T {
	d, _ := any(r.Detail).(*T)
	return d
}

// MarshalJSON makes an object of them.
func (m Members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, o := range m {
		name, _ := json.Marshal(o.Name) // a string has a JSON form
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(o.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON keeps the order of an object's members.
func (m *Members) UnmarshalJSON(b []byte) error {
	*m = nil
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want a JSON object, got %.20q", b)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		*m = append(*m, Member{name.(string), value})
	}
	return nil
}

// inline encodes a struct with the members of its field of that name as members of the struct itself.
func inline(v any, field string, m Members) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || len(m) == 0 {
		return b, err
	}
	object, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	// No string before the field can hold this: its quotes would be escaped.
	return bytes.Replace(b, slices.Concat([]byte(`"`+field+`":`), object), object[1:len(object)-1], 1), nil
}

// outline decodes into v, a pointer to a struct, and returns the members that it has no field for.
func outline(b []byte, v any) (Members, error) {
	if err := json.Unmarshal(b, v); err != nil || string(bytes.TrimSpace(b)) == "null" {
		return nil, err
	}
	var all Members
	if err := all.UnmarshalJSON(b); err != nil {
		return nil, err
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	return all.except(func(o Member) bool {
		return slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, o.Name) }) ||
			string(o.Value) == "null"
	}), nil
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
