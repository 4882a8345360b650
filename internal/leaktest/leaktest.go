// Package leaktest looks for goroutines that the tests of a package leave behind.
package leaktest

import (
	"time"

	"go.uber.org/goleak"
)

// grace is how long goroutines may take to end: goleak looks for 0.4 s, too little on a busy machine.
var grace = 10 * time.Second

// Main runs the tests of a package, fails it if goroutines are left behind, and does not return.
func Main(m goleak.TestingM) { goleak.VerifyTestMain(patient{m}) }

type patient struct{ goleak.TestingM }

// Run ends when nothing is left, or at the end of the grace: goleak then says what is.
func (p patient) Run() int {
	code := p.TestingM.Run()
	for end := time.Now().Add(grace); code == 0 && goleak.Find() != nil && time.Now().Before(end); {
	}
	return code
}
