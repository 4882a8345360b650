package bench

import "time"

// patience is how long one side waits for the other to set up or to verify a
// point: the timeout, and time for the windows' pages at 100 MB/s, which is what
// page faults, clearing and comparing take on a slow machine.
func patience(sh *Shape) time.Duration {
	return sh.Timeout + time.Duration(sh.totalWindow())*10
}
