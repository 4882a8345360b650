package fused

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

var configs = []string{
	`{}`, ``, `[]`, `{"methodConfig":[{"name":[{"service":"a"}],"timeout":"1.5s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"1.5"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"-0.000000001s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":".s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"315576000001s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"99999999999s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"},{"service":"a"}]}]}`,
	`{"methodConfig":[{"name":[{"method":"m"}]}]}`,
	`{"methodConfig":[{"name":[{}]}]}`,
	`{"methodConfig":[{"name":[{"service":"a","method":"m"}],"retryPolicy":{"maxAttempts":9,"initialBackoff":"1s",` +
		`"maxBackoff":"2s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE",4]}}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"retryPolicy":{"maxAttempts":1,"initialBackoff":"1s",` +
		`"maxBackoff":"2s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE"]}}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"1s",` +
		`"maxBackoff":"2s","backoffMultiplier":1.5,"retryableStatusCodes":["NO_SUCH"]}}]}`,
	`{"retryThrottling":{"maxTokens":1001,"tokenRatio":1}}`,
	`{"methodConfig":[],"retryThrottling":{"maxTokens":10,"tokenRatio":1}}`,
	`{"loadBalancingPolicy":"round_robin"}`, `{"loadBalancingPolicy":"no_such"}`,
	`{"loadBalancingConfig":[{"no_such":{}},{"round_robin":{}}]}`, `{"loadBalancingConfig":[{"no_such":{}}]}`,
	`{"loadBalancingConfig":[{}]}`,
	`{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":true}}]}`,
	`{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":3}}]}`,
	`{"healthCheckConfig":{"serviceName":"s"}}`, `{"methodConfig":[{"waitForReady":true}]}`, `{"methodConfig":3}`,
}

// grpcParser is grpc-go's parser, as its ClientConn lends it to resolvers.
func grpcParser(t testing.TB) func(string) error {
	r := manual.NewBuilderWithScheme("parser")
	r.InitialState(resolver.State{})
	cc, err := grpc.NewClient("parser:///x", grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	cc.Connect()
	lent := r.CC()
	cc.Close()
	return func(text string) error { return lent.ParseServiceConfig(text).Err }
}

// The service config comes from whoever answers for a name. grpc-go and this package take and refuse the same ones.
func FuzzServiceConfig(f *testing.F) {
	for _, text := range configs {
		f.Add(text)
	}
	theirs := grpcParser(f)
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := parseServiceConfig(text)
		if (err == nil) != (theirs(text) == nil) {
			t.Errorf("%q: %v, grpc-go %v", text, err, theirs(text))
		}
		if err == nil {
			sc.method("/a/m")
		}
	})
}
