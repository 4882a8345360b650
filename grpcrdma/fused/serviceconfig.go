package fused

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/serviceconfig"
)

// serviceConfig is a parsed service config (grpc doc/service_config.md). That of grpc-go is internal.
type serviceConfig struct {
	serviceconfig.Config // what makes it one for resolvers
	policy               balancer.Builder
	policyConfig         serviceconfig.LoadBalancingConfig
	methods              map[string]*methodConfig // by "/service/method", "/service/" and ""
	throttle             *throttle
	health               *string // of the service whose health counts; nil for none
}

type methodConfig struct {
	waitForReady     *bool
	timeout          *time.Duration
	maxSend, maxRecv *int
	retry            *retryPolicy
}

// retryPolicy is gRFC A6's.
type retryPolicy struct {
	attempts       int
	first, longest time.Duration // back-off
	factor         float64
	codes          map[codes.Code]bool
}

// mostAttempts is grpc-go's bound.
const mostAttempts = 5

type protoDuration time.Duration

func (d *protoDuration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	digits, ok := strings.CutSuffix(s, "s")
	digits, negative := strings.CutPrefix(digits, "-")
	whole, part, _ := strings.Cut(digits, ".")
	if !ok || whole == "" && part == "" || len(part) > 9 {
		return fmt.Errorf("malformed duration %q, want seconds as in \"1.5s\"", s)
	}
	var sec, ns int64
	var err error
	if whole != "" {
		if sec, err = strconv.ParseInt(whole, 10, 64); err != nil || sec > maxProtoSeconds {
			return fmt.Errorf("malformed duration %q: seconds out of range", s)
		}
	}
	if part != "" {
		if ns, err = strconv.ParseInt((part + "000000000")[:9], 10, 64); err != nil {
			return fmt.Errorf("malformed duration %q: %w", s, err)
		}
	}
	v := time.Duration(math.MaxInt64)
	if sec < math.MaxInt64/int64(time.Second) {
		v = time.Duration(sec)*time.Second + time.Duration(ns)
	}
	if negative {
		v = -v
	}
	*d = protoDuration(v)
	return nil
}

const maxProtoSeconds = 315_576_000_000

type jsonConfig struct {
	LoadBalancingPolicy *string
	LoadBalancingConfig *json.RawMessage
	MethodConfig        []struct {
		Name []struct {
			Service, Method string
		}
		WaitForReady                                    *bool
		Timeout                                         *protoDuration
		MaxRequestMessageBytes, MaxResponseMessageBytes *int64
		RetryPolicy                                     *struct {
			MaxAttempts                int
			InitialBackoff, MaxBackoff protoDuration
			BackoffMultiplier          float64
			RetryableStatusCodes       []codes.Code
		}
	}
	RetryThrottling   *struct{ MaxTokens, TokenRatio float64 }
	HealthCheckConfig *struct{ ServiceName string }
}

// parseServiceConfig reads a service config as grpc-go does. Its author is not trusted: all of it is checked.
func parseServiceConfig(text string) (*serviceConfig, error) {
	fail := func(format string, args ...any) (*serviceConfig, error) {
		return nil, fmt.Errorf("service config: "+format, args...)
	}
	if text == "" {
		return fail("no JSON")
	}
	var j jsonConfig
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return fail("%w", err)
	}
	sc := &serviceConfig{methods: map[string]*methodConfig{}}
	var err error
	if sc.policy, sc.policyConfig, err = j.choose(); err != nil {
		return fail("%w", err)
	}
	for i := range j.MethodConfig {
		m := &j.MethodConfig[i]
		if m.Name == nil {
			continue
		}
		mc := &methodConfig{waitForReady: m.WaitForReady, timeout: (*time.Duration)(m.Timeout),
			maxSend: clampInt(m.MaxRequestMessageBytes), maxRecv: clampInt(m.MaxResponseMessageBytes)}
		if r := m.RetryPolicy; r != nil {
			if r.MaxAttempts <= 1 || r.InitialBackoff <= 0 || r.MaxBackoff <= 0 || !(r.BackoffMultiplier > 0) ||
				len(r.RetryableStatusCodes) == 0 {
				return fail("method config %d: retry policy %+v: want more than one attempt, positive back-offs and "+
					"multiplier, and codes", i, *r)
			}
			mc.retry = &retryPolicy{attempts: min(r.MaxAttempts, mostAttempts), first: time.Duration(r.InitialBackoff),
				longest: time.Duration(r.MaxBackoff), factor: r.BackoffMultiplier, codes: map[codes.Code]bool{}}
			for _, c := range r.RetryableStatusCodes {
				mc.retry.codes[c] = true
			}
		}
		for _, n := range m.Name {
			path := "/" + n.Service + "/" + n.Method
			switch {
			case n.Service == "" && n.Method != "":
				return fail("method config %d: method %q without a service", i, n.Method)
			case n.Service == "":
				path = ""
			}
			if sc.methods[path] != nil {
				return fail("method config %d: name %q stands twice", i, path)
			}
			sc.methods[path] = mc
		}
	}
	if t := j.RetryThrottling; t != nil && j.MethodConfig != nil { // nothing is retried else, and grpc-go does not look
		if !(t.MaxTokens > 0 && t.MaxTokens <= 1000) || !(t.TokenRatio > 0) {
			return fail("retry throttling of %v tokens and a ratio of %v: want more than 0, and at most 1000 tokens",
				t.MaxTokens, t.TokenRatio)
		}
		sc.throttle = &throttle{tokens: t.MaxTokens, most: t.MaxTokens, ratio: t.TokenRatio}
	}
	if h := j.HealthCheckConfig; h != nil {
		sc.health = &h.ServiceName
	}
	return sc, nil
}

func clampInt(n *int64) *int {
	if n == nil {
		return nil
	}
	v := int(min(*n, math.MaxInt))
	return &v
}

func (j *jsonConfig) choose() (balancer.Builder, serviceconfig.LoadBalancingConfig, error) {
	if j.LoadBalancingConfig == nil {
		b := balancer.Get(pickfirst.Name)
		if j.LoadBalancingPolicy != nil {
			if named := balancer.Get(*j.LoadBalancingPolicy); named != nil {
				b = named
			}
		}
		return withConfig(b, json.RawMessage("{}"))
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(*j.LoadBalancingConfig, &list); err != nil {
		return nil, nil, fmt.Errorf("load balancing config: %w", err)
	}
	for i, entry := range list {
		if len(entry) != 1 {
			return nil, nil, fmt.Errorf("load balancing config: entry %d names %d policies, want one", i, len(entry))
		}
		for name, config := range entry {
			if b := balancer.Get(name); b != nil {
				return withConfig(b, config)
			}
		}
	}
	return nil, nil, fmt.Errorf("load balancing config: none of its policies is registered: %s",
		bytes.TrimSpace(*j.LoadBalancingConfig))
}

func withConfig(b balancer.Builder, config json.RawMessage) (balancer.Builder, serviceconfig.LoadBalancingConfig,
	error) {
	p, ok := b.(balancer.ConfigParser)
	if !ok {
		return b, nil, nil
	}
	c, err := p.ParseConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("config of policy %q: %w", b.Name(), err)
	}
	return b, c, nil
}

func (sc *serviceConfig) method(name string) *methodConfig {
	if m := sc.methods[name]; m != nil {
		return m
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if m := sc.methods[name[:i+1]]; m != nil {
			return m
		}
	}
	return sc.methods[""]
}

// throttle forbids retries while calls fail more often than they succeed (gRFC A6). A nil one allows all.
type throttle struct {
	mu                  sync.Mutex
	tokens, most, ratio float64
}

// failed counts a failure, and returns true when a retry is forbidden.
func (t *throttle) failed() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens = max(t.tokens-1, 0)
	return t.tokens <= t.most/2
}

func (t *throttle) succeeded() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.tokens = min(t.tokens+t.ratio, t.most)
	t.mu.Unlock()
}

var errNotOurs = errors.New("a service config that this channel has not parsed")
