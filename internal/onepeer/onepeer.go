// Package onepeer keeps a fault in the service of one peer from ending the service of the others.
package onepeer

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// A Fault is a panic that ended a peer, and where it was.
type Fault struct{ Value, Place string }

func (f *Fault) Error() string {
	return fmt.Sprintf("internal error: %s, at %s; report it at https://github.com/rdmaperf/rdmaperf/issues", f.Value,
		f.Place)
}

// Recover is deferred by what serves one peer, itself: a panic ends that peer, by end, with a *Fault. end runs while
// the panicking function's locks are as they were.
func Recover(end func(error)) {
	if e := recover(); e != nil {
		end(&Fault{fmt.Sprint(e), Place()})
	}
}

// Place is where the panic was that the caller's caller recovered from: a file and a line.
func Place() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for panicking := false; ; {
		f, more := frames.Next()
		if panicking && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}
