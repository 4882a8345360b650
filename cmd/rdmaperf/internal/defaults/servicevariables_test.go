package defaults

import (
	"maps"
	"testing"
)

// ofService are the variables of a service with a named port, as Kubernetes documents them.
func ofService(prefix string) map[string]string {
	return map[string]string{
		prefix + "_SERVICE_HOST":         "10.0.0.11",
		prefix + "_SERVICE_PORT":         "7174",
		prefix + "_SERVICE_PORT_CONTROL": "7174",
		prefix + "_PORT":                 "tcp://10.0.0.11:7174",
		prefix + "_PORT_7174_TCP":        "tcp://10.0.0.11:7174",
		prefix + "_PORT_7174_TCP_PROTO":  "tcp",
		prefix + "_PORT_7174_TCP_PORT":   "7174",
		prefix + "_PORT_7174_TCP_ADDR":   "10.0.0.11",
	}
}

// A service in a cluster may have the name of a command: its variables are no defaults, and
// neither end the command nor are complained of. What a user says there still counts.
func TestVariablesOfAServiceAreNoDefaults(t *testing.T) {
	env := ofService("RDMAPERF_RUN")
	f, said, err := withDefaults(t, "", env, "--verbose")
	if err != nil || said != "" || !has(f, map[string]string{"port": "18515"}) {
		t.Errorf("said %q, %v, want nothing of the service", said, err)
	}
	env["RDMAPERF_RUN_PORT"], env["RDMAPERF_RUN_QP"] = "7300", "3" // the user's go before the cluster's
	if f, _, err = withDefaults(t, "", env); err != nil || !has(f, map[string]string{"port": "7300", "qp": "3"}) {
		t.Errorf("%v, want port 7300 and 3 queue pairs", err)
	}
	alone := map[string]string{"RDMAPERF_RUN_PORT": "tcp://10.0.0.11:7174"} // of no service: a mistake
	if _, _, err = withDefaults(t, "", alone); err == nil {
		t.Error("a port that is no number, of no service, is taken")
	}
}

func TestOnlyVariablesOfServicesAreLeftOut(t *testing.T) {
	kept := map[string]string{"RDMAPERF_RUN_PORT": "1", "RDMAPERF_RUN_SIZE": "64", "RDMAPERF_RUNS_PORT": "tcp://x",
		"A_SERVICE_HOST": "10.0.0.1", "A_SERVICE_PORT": "1", "RDMAPERF_RUN_PORT_X": "1"}
	env := ofService("RDMAPERF_RUN")
	maps.Copy(env, kept)
	if withoutServices(env); !maps.Equal(env, kept) {
		t.Errorf("%v, want %v", env, kept)
	}
}
