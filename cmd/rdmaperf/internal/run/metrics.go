package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/push"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
	metrics "github.com/rdmaperf/rdmaperf/reports/render/prometheus"
)

// Limits of the metrics' network side. Arbitrary.
const (
	metricsRequest  = 5 * time.Second
	metricsShutdown = time.Second
	metricsPush     = 10 * time.Second
)

// metricsJob names the run at a Pushgateway; the instance is the host name.
const metricsJob = "rdmaperf"

type metricsOptions struct {
	textfile, listen, pushTo string
	push                     *url.URL
	server                   *http.Server
	done                     chan error // of the server's goroutine
	latest                   atomic.Pointer[prometheus.Gatherer]
}

func (m *metricsOptions) register(f *pflag.FlagSet) {
	f.StringVar(&m.textfile, "metrics-textfile", "",
		"write the results for node_exporter's textfile collector to this file")
	f.StringVar(&m.listen, "metrics-listen", "",
		"serve finished points to Prometheus at this address during the run, such as :9100")
	f.StringVar(&m.pushTo, "metrics-push", "", "push the results to the Pushgateway at this URL")
}

func (m *metricsOptions) check() error {
	if m.listen != "" {
		if _, err := net.ResolveTCPAddr("tcp", m.listen); err != nil {
			return cli.Usage("read --metrics-listen", fmt.Errorf("%q: want HOST:PORT or :PORT", m.listen),
				"--metrics-listen :9100")
		}
	}
	if m.pushTo == "" {
		return nil
	}
	u, err := url.Parse(m.pushTo)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		// Not the cause: it would print a password.
		return cli.Usage("read --metrics-push", errors.New("not a URL"), "http://HOST:9091")
	}
	m.push = u
	return nil
}

func (m *metricsOptions) open() error {
	if m.textfile == "" {
		return nil
	}
	if err := resultfile.TryFile(m.textfile); err != nil {
		return failed("open --metrics-textfile", err, "a file in a directory that is there and can be written to")
	}
	return nil
}

func (m *metricsOptions) start(ctx context.Context, log *slog.Logger, doc *reports.Document) error {
	if m.listen == "" {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", m.listen)
	if err != nil {
		return failed("listen for --metrics-listen", err, "another address")
	}
	if err := m.publish(doc); err != nil {
		l.Close()
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.GathererFunc(m.gather),
		promhttp.HandlerOpts{EnableOpenMetrics: true}))
	m.server = &http.Server{Handler: mux, ReadTimeout: metricsRequest, WriteTimeout: metricsRequest,
		IdleTimeout: metricsRequest, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	m.done = make(chan error, 1)
	go func() { m.done <- m.server.Serve(l) }() // joined in stop
	log.Info("metrics", "url", "http://"+l.Addr().String()+"/metrics")
	return nil
}

func (m *metricsOptions) gather() ([]*dto.MetricFamily, error) { return (*m.latest.Load()).Gather() }

// publish takes what is finished, between points. Histograms are converted here, so that a scrape during a window only
// prints.
func (m *metricsOptions) publish(doc *reports.Document) error {
	if m.listen == "" {
		return nil
	}
	copied := *doc
	copied.Results = slices.Clone(doc.Results)
	g, err := metrics.Gather(&copied)
	if err == nil {
		m.latest.Store(&g)
	}
	return err
}

func (m *metricsOptions) stop() error {
	if m.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsShutdown)
	defer cancel()
	if m.server.Shutdown(ctx) != nil {
		m.server.Close() // a scraper that does not end
	}
	m.server = nil
	if err := <-m.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve --metrics-listen: %w", err)
	}
	return nil
}

// write puts the finished document where the flags say, also after an interrupt.
func (m *metricsOptions) write(doc *reports.Document) error {
	var errs []error
	if m.textfile != "" {
		errs = append(errs, metrics.WriteFile(m.textfile, doc))
	}
	if m.push != nil {
		errs = append(errs, m.pushDocument(doc))
	}
	return errors.Join(errs...)
}

func (m *metricsOptions) pushDocument(doc *reports.Document) error {
	g, err := metrics.Gather(doc)
	if err != nil {
		return err
	}
	u := *m.push
	user := u.User
	u.User = nil // the gateway's errors print the URL
	p := push.New(u.String(), metricsJob).Gatherer(g).Client(&http.Client{Timeout: metricsPush})
	if user != nil {
		password, _ := user.Password()
		p = p.BasicAuth(user.Username(), password)
	}
	if host := doc.Environment.Hostname; host != "" {
		p = p.Grouping("instance", host)
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsPush)
	defer cancel()
	// Push replaces what the last run of this host left there.
	if err := p.PushContext(ctx); err != nil {
		return failed("push metrics", err, "--metrics-textfile")
	}
	return nil
}
