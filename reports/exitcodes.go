package reports

import (
	"fmt"
	"strings"
)

// ExitMeaning is what an exit code says, and what a pipeline does with it.
type ExitMeaning struct {
	Code      int
	Means, Do string
}

// ExitMeanings are all exit codes, in ascending order.
var ExitMeanings = []ExitMeaning{
	{ExitOK, "done", "go on"},
	{ExitFailed, "a run or a case failed", "read the last line of stderr, the JUnit file or the report"},
	{ExitUsage, "wrong command line, or runs that are not comparable",
		"correct the command; `compare` names the conditions that differ"},
	{ExitThreshold, "a threshold or a baseline was missed", "the result is written all the same"},
	{ExitCorruption, "data corruption", "stop: the path is broken"},
	{ExitPeer, "the peer is unreachable, busy or incompatible", "check the address, the port and the version"},
	{ExitNotRun, "not run: a device or a capability is missing",
		"never count it as a pass; allow it only where the device may be absent"},
	{ExitInterrupted, "ended by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP", "results up to then are written"},
}

// ExitCodes is one sentence of all exit codes, for help.
func ExitCodes() string {
	var parts []string
	for _, m := range ExitMeanings {
		parts = append(parts, fmt.Sprintf("%d %s", m.Code, m.Means))
	}
	return "Exit codes: " + strings.Join(parts, "; ") + "."
}
