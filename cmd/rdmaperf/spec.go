package main

import (
	"fmt"
	"slices"
	"strings"
)

// layer is one part of a stack as given to --transport: name(param,…):device.
type layer struct {
	name   string
	params []string
	device string
}

// String writes the layer as parseStack reads it.
func (l layer) String() string {
	s := l.name
	if len(l.params) > 0 {
		s += "(" + strings.Join(l.params, ",") + ")"
	}
	if l.device != "" {
		s += ":" + l.device
	}
	return s
}

// param is the value of "key=value", or "" with found for a bare "key". Of
// several, the last holds.
func (l layer) param(key string) (value string, found bool) {
	for _, p := range l.params {
		if k, v, _ := strings.Cut(p, "="); k == key {
			value, found = v, true
		}
	}
	return value, found
}

// with is the layer with one more parameter.
func (l layer) with(param string) layer {
	l.params = append(slices.Clip(l.params), param)
	return l
}

// without is the layer without the parameters of these keys.
func (l layer) without(keys ...string) layer {
	l.params = slices.DeleteFunc(slices.Clone(l.params), func(p string) bool {
		k, _, _ := strings.Cut(p, "=")
		return slices.Contains(keys, k)
	})
	return l
}

// stackSpec writes layers as parseStack reads them.
func stackSpec(layers []layer) string {
	parts := make([]string, len(layers))
	for i, l := range layers {
		parts[i] = l.String()
	}
	return strings.Join(parts, "+")
}

// splitTop splits s at sep outside parentheses.
func splitTop(s string, sep byte) []string {
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

// parseStack reads a stack, outermost layer first: "sched(strict)+iwarp(nocrc)".
func parseStack(spec string) ([]layer, error) {
	var layers []layer
	for _, part := range splitTop(spec, '+') {
		l, err := parseLayer(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", spec, err)
		}
		layers = append(layers, l)
	}
	return layers, nil
}

func parseLayer(s string) (layer, error) {
	var l layer
	rest := s
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
	if end < 0 {
		end = len(s)
	}
	l.name, rest = s[:end], s[end:]
	if l.name == "" {
		return l, fmt.Errorf("a layer needs a name of small letters")
	}
	if strings.HasPrefix(rest, "(") {
		inside, after, ok := strings.Cut(rest[1:], ")")
		if !ok || strings.Contains(inside, "(") {
			return l, fmt.Errorf("unbalanced parentheses")
		}
		for _, p := range splitTop(inside, ',') {
			if p = strings.TrimSpace(p); p == "" {
				return l, fmt.Errorf("an empty parameter")
			}
			l.params = append(l.params, p)
		}
		rest = after
	}
	if strings.HasPrefix(rest, ":") {
		if l.device, rest = rest[1:], ""; l.device == "" || strings.ContainsAny(l.device, "()+:, ") {
			return l, fmt.Errorf("a bad device name")
		}
	}
	if rest != "" {
		return l, fmt.Errorf("unexpected %q", rest)
	}
	return l, nil
}
