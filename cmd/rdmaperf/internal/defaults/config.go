package defaults

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// ConfigFile is where a user's defaults are (XDG Base Directory Specification); "" where nothing tells.
func ConfigFile(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "rdmaperf", "config.yaml")
}

// config is the file: a map of flags for each command, and hosts for completion.
type config struct {
	Hosts    []string
	commands map[string]map[string]yaml.Node
}

// maxConfig bounds the file. Arbitrary: a hundred times what anybody writes.
const maxConfig = 1 << 20

// ReadConfig reads the file; one that is not there is empty.
func ReadConfig(path string) (c config, err error) {
	if path == "" {
		return c, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	b, err := values.ReadText(f, maxConfig)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if len(b) > maxConfig {
		return c, fmt.Errorf("%s: longer than %d bytes", path, maxConfig)
	}
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(b, &top); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.commands = map[string]map[string]yaml.Node{}
	for name, node := range top {
		if name == "hosts" {
			err = node.Decode(&c.Hosts)
		} else {
			flags := map[string]yaml.Node{}
			err = node.Decode(&flags)
			c.commands[name] = flags
		}
		if err != nil {
			return c, fmt.Errorf("%s:%d: %s: %w", path, node.Line, name, err)
		}
	}
	return c, nil
}

func plainValue(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		return n.Value, nil
	}
	if n.Kind != yaml.SequenceNode ||
		slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return item.Kind != yaml.ScalarNode }) {
		return "", errors.New("want a value or a list of values")
	}
	return strings.Join(view.Each(n.Content, func(item *yaml.Node) string { return item.Value }), ","), nil
}

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
