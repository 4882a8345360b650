package reports

import (
	"runtime/debug"
	"testing"
)

func TestBuildSaysWhatItIsMadeOf(t *testing.T) {
	made := []debug.BuildSetting{{Key: "-race", Value: "true"}, {Key: "CGO_ENABLED", Value: "1"},
		{Key: "GOAMD64", Value: "v3"},
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	if got := build(made); got != "cgo, GOAMD64=v3, race" {
		t.Errorf("build %q", got)
	}
	if got := build(nil); got != "no cgo" {
		t.Errorf("build of nothing %q", got)
	}
	if got := commit(made); got != "0123456789abcdef+dirty" {
		t.Errorf("commit %q", got)
	}
	if got := commit(nil); got != "" {
		t.Errorf("commit of nothing %q", got)
	}
	Commit = "feed"
	defer func() { Commit = "" }()
	if got := commit(made[:4]); got != "feed" {
		t.Errorf("the linker's commit is %q", got)
	}
	if e := Collect(); e.Build == "" || e.Commit != "feed" {
		t.Errorf("environment %q %q", e.Commit, e.Build)
	}
}
