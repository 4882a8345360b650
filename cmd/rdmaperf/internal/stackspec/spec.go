// Package stackspec is the grammar of stacks and the table of their layers, which it opens.
package stackspec

import (
	"fmt"
	"slices"
	"strings"
)

// Layer is one part of a stack as given to --transport: name(param,…):device.
type Layer struct {
	Name   string
	Params []string
	Device string
}

// String writes the layer as Parse reads it.
func (l Layer) String() string {
	s := l.Name
	if len(l.Params) > 0 {
		s += "(" + strings.Join(l.Params, ",") + ")"
	}
	if l.Device != "" {
		s += ":" + l.Device
	}
	return s
}

// Param is the value of "key=value", or "" with found for a bare "key". Of several, the last holds.
func (l Layer) Param(key string) (value string, found bool) {
	for _, p := range l.Params {
		if k, v, _ := strings.Cut(p, "="); k == key {
			value, found = v, true
		}
	}
	return value, found
}

// With is the layer with one more parameter.
func (l Layer) With(param string) Layer {
	l.Params = append(slices.Clip(l.Params), param)
	return l
}

func (l Layer) without(keys ...string) Layer {
	l.Params = slices.DeleteFunc(slices.Clone(l.Params), func(p string) bool {
		k, _, _ := strings.Cut(p, "=")
		return slices.Contains(keys, k)
	})
	return l
}

// Format writes layers as Parse reads them.
func Format(layers []Layer) string {
	parts := make([]string, len(layers))
	for i, l := range layers {
		parts[i] = l.String()
	}
	return strings.Join(parts, "+")
}

// Split splits s at sep outside parentheses.
func Split(s string, sep byte) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case sep:
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

// Parse reads a stack, outermost layer first: "sched(strict)+iwarp(nocrc)".
func Parse(spec string) ([]Layer, error) {
	var layers []Layer
	for _, part := range Split(spec, '+') {
		l, err := parseLayer(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", spec, err)
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// bottom is Parse with the layer at the bottom, an empty one where spec is no stack.
func bottom(spec string) ([]Layer, *Layer) {
	layers, err := Parse(spec)
	if err != nil {
		return nil, new(Layer)
	}
	return layers, &layers[len(layers)-1]
}

func parseLayer(s string) (Layer, error) {
	var l Layer
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
	if end < 0 {
		end = len(s)
	}
	l.Name = s[:end]
	rest := s[end:]
	if l.Name == "" {
		return l, fmt.Errorf("a layer needs a name of small letters")
	}
	if strings.HasPrefix(rest, "(") {
		inside, after, ok := strings.Cut(rest[1:], ")")
		if !ok || strings.Contains(inside, "(") {
			return l, fmt.Errorf("unbalanced parentheses")
		}
		for _, p := range Split(inside, ',') {
			if p = strings.TrimSpace(p); p == "" {
				return l, fmt.Errorf("an empty parameter")
			}
			l.Params = append(l.Params, p)
		}
		rest = after
	}
	if strings.HasPrefix(rest, ":") {
		if l.Device, rest = rest[1:], ""; l.Device == "" || strings.ContainsAny(l.Device, "()+:, ") {
			return l, fmt.Errorf("a bad device name")
		}
	}
	if rest != "" {
		return l, fmt.Errorf("unexpected %q", rest)
	}
	return l, nil
}
