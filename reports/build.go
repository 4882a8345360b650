package reports

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Commit is the full hash of the source and is set by the linker (-X). When it is empty
// it comes from the build information, which has it when go build saw a repository.
var Commit string

// commit is the hash of the source, "+dirty" behind it where the tree had changes; ""
// where neither linker nor go build said it.
func commit(settings []debug.BuildSetting) string {
	dirty := ""
	if setting(settings, "vcs.modified") == "true" {
		dirty = "+dirty"
	}
	if of := cmp.Or(Commit, setting(settings, "vcs.revision")); of != "" {
		return of + dirty
	}
	return ""
}

// build says how the binary was made, as far as it changes what it can do or how fast it
// is: "cgo, GOAMD64=v1, trimpath". Without cgo there are no kernel verbs.
func build(settings []debug.BuildSetting) string {
	parts := []string{"no cgo"}
	if setting(settings, "CGO_ENABLED") == "1" {
		parts[0] = "cgo"
	}
	for _, key := range []string{"GOAMD64", "GOARM64", "-tags", "-gcflags", "GOEXPERIMENT"} {
		if v := setting(settings, key); v != "" {
			parts = append(parts, strings.TrimPrefix(key, "-")+"="+v)
		}
	}
	for _, key := range []string{"-race", "-trimpath"} {
		if setting(settings, key) == "true" {
			parts = append(parts, key[1:])
		}
	}
	return strings.Join(parts, ", ")
}

func setting(settings []debug.BuildSetting, key string) string {
	for _, s := range settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func buildSettings() []debug.BuildSetting {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Settings
	}
	return nil
}
