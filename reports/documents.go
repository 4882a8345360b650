package reports

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// documentNames are the files' own names, with as many directories as tell them apart.
func documentNames(files []string, documents int) []string {
	names := make([]string, documents)
	for i := range names {
		if i < len(files) && files[i] != "" {
			names[i] = filepath.Base(files[i])
		} else if documents > 1 {
			names[i] = fmt.Sprintf("run %d", i+1)
		}
	}
	const depth = 8 // directories that are looked at
	for n := 2; n <= depth; n++ {
		count := map[string]int{}
		for _, name := range names {
			count[name]++
		}
		for i, name := range names {
			if i < len(files) && files[i] != "" && count[name] > 1 {
				names[i] = tail(filepath.ToSlash(filepath.Clean(files[i])), n)
			}
		}
	}
	for i, name := range names { // one file twice
		if slices.Index(names, name) != i {
			names[i] += fmt.Sprintf(" (%d)", i+1)
		}
	}
	return names
}

// tail is the last n elements of a path.
func tail(path string, n int) string {
	parts := strings.Split(strings.TrimLeft(path, "/"), "/")
	return strings.Join(parts[max(len(parts)-n, 0):], "/")
}
