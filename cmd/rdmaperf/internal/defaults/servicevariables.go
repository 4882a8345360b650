package defaults

import (
	"regexp"
	"strings"
)

var ofPort = regexp.MustCompile(`^_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// withoutServices takes out what Kubernetes sets for each service ("Environment variables" of its page Service), such
// as RDMAPERF_SERVE_PORT=tcp://10.0.0.1:7174, which is not the port to serve on.
func withoutServices(env map[string]string) {
	const host = "_SERVICE_HOST"
	for name := range env {
		service, ok := strings.CutSuffix(name, host)
		if !ok || !strings.HasPrefix(name, "RDMAPERF_") {
			continue
		}
		for other, value := range env {
			rest, ok := strings.CutPrefix(other, service)
			switch {
			case !ok:
			case rest == host, rest == "_PORT" && strings.Contains(value, "://"), ofPort.MatchString(rest),
				rest == "_SERVICE_PORT", strings.HasPrefix(rest, "_SERVICE_PORT_"):
				delete(env, other)
			}
		}
	}
}
