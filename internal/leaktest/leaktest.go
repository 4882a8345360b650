// Package leaktest looks for goroutines that the tests of a package leave behind.
package leaktest

import (
	"time"

	"go.uber.org/goleak"
)

// grace is how long goroutines that were told to end may take. goleak looks for
// some 0.4 s, in which a machine that is busy may not even have run all of them.
var grace = 10 * time.Second

// Main runs the tests of a package from its TestMain, and fails it if goroutines
// are left behind the last one. It does not return.
func Main(m goleak.TestingM) { goleak.VerifyTestMain(patient{m}) }

type patient struct{ goleak.TestingM }

// Run ends when nothing is left, or at the end of the grace: goleak then says what is.
func (p patient) Run() int {
	code := p.TestingM.Run()
	for end := time.Now().Add(grace); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
	}
	return code
}
