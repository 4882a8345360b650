package engine

import "time"

// SetupTimeout is how long one side waits for the other to set up or to verify a
// point: the timeout, and time for the windows' pages at 100 MB/s, which is what
// page faults, clearing and comparing take on a slow machine.
func SetupTimeout(sh *Shape) time.Duration {
	return sh.Timeout + time.Duration(sh.TotalWindow())*10
}
