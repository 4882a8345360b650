package reporttest

import (
	"strings"
	"testing"
)

// A validator that accepts everything would make every other test pass.
func TestCheckTellsGoodFromBad(t *testing.T) {
	const good = `{"schema": "rdmaperf/v1", "started": "2026-01-02T03:04:05Z", "command": [],
		"environment": {"go": "go1", "kernel": "6", "cpu": "x", "cpus": 1, "version": "v1"}, "results": []}`
	if err := check([]byte(good)); err != nil {
		t.Errorf("a minimal document: %v", err)
	}
	for name, edit := range map[string][2]string{
		"another schema":          {"rdmaperf/v1", "rdmaperf/v2"},
		"a time that is none":     {"2026-01-02T03:04:05Z", "yesterday"},
		"null results":            {`"results": []`, `"results": null`},
		"no environment":          {`"environment"`, `"env"`},
		"no kernel":               {`"kernel": "6", `, ``},
		"a result without fields": {`"results": []`, `"results": [{}]`},
		"text after the document": {`"results": []}`, `"results": []} x`},
		"an error without cause":  {`"results"`, `"error": {}, "results"`},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: the edit changes nothing", name)
		}
		if check([]byte(bad)) == nil {
			t.Errorf("%s: accepted, want an error", name)
		}
	}
}
