package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// explanation says why no test can notice a change that gremlins makes.
type explanation struct{ file, kind, line, why string }

// readExplanations reads lines of FILE | KIND | LINE OF CODE | WHY. KIND is gremlins' word for
// the change, one of them where it has two, or * for each one of that line.
func readExplanations(root, name string) (all []explanation, err error) {
	err = lines(name, func(_ int, line string) error {
		f := strings.Split(line, " | ")
		if len(f) != 4 || strings.TrimSpace(f[3]) == "" {
			return fmt.Errorf("%q: want FILE | KIND | LINE OF CODE | WHY", line)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		e := explanation{f[0], f[1], f[2], f[3]}
		text, err := os.ReadFile(filepath.Join(root, e.file))
		if err != nil {
			return err
		}
		for l := range strings.Lines(string(text)) {
			if strings.TrimSpace(l) == e.line {
				all = append(all, e)
				return nil
			}
		}
		return fmt.Errorf("%s has no line %q any more", e.file, e.line)
	})
	return all, err
}
