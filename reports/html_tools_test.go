package reports_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
)

// probeTools uses the buttons of the first chart of distributions, and reports what they did.
const probeTools = `<script>
addEventListener("load", function () {
  var f = document.querySelector("iframe"), w = f.contentWindow, d = f.contentDocument, r = { files: [], names: [] };
  var Real = w.Blob;
  w.Blob = function (parts, o) { r.files.push(o.type + "\n" + parts[0]); return new Real(parts, o); };
  d.addEventListener("click", function (e) { if (e.target.download) { r.names.push(e.target.download); e.preventDefault(); } }, true);
  var figure = d.querySelector("#percentiles figure"), svg = figure.querySelector("svg"), click = function (text) {
    var b = Array.prototype.find.call(figure.querySelectorAll(".tools button"), function (b) { return b.textContent === text && !b.hidden; });
    if (b) b.click();
    return !!b;
  };
  var line = function () { return svg.querySelector("path.ln[data-l]").getAttribute("d"); };
  var ticks = function () { return Array.prototype.map.call(svg.querySelectorAll(".grid text"), function (t) { return t.textContent; }).join(" "); };
  var shown = function () { return Array.prototype.filter.call(svg.querySelectorAll(".pt"), function (p) { return p.style.display !== "none"; }).length; };
  r.log = line(); r.logTicks = ticks(); r.all = shown();
  r.linear = click("Linear"); r.linearLine = line(); r.linearTicks = ticks();
  r.back = click("Logarithmic"); r.logAgain = line(); r.logTicksAgain = ticks();
  // Drag over the lower left quarter of the plot.
  var box = svg.getBoundingClientRect(), y = svg.getAttribute("data-y").split(" "), x = svg.getAttribute("data-x").split(" "), k = box.width / svg.viewBox.baseVal.width;
  var at = function (type, ax, ay) { svg.dispatchEvent(new w.PointerEvent(type, { bubbles: true, button: 0, pointerType: "mouse", clientX: box.left + ax * k, clientY: box.top + ay * k })); };
  at("pointerdown", +x[3] + 1, +y[3] - 1);
  at("pointermove", (+x[3] + +x[4]) / 2, (+y[3] + +y[4]) / 2);
  r.frame = !!svg.querySelector(".frame");
  at("pointerup", (+x[3] + +x[4]) / 2, (+y[3] + +y[4]) / 2);
  r.zoomed = shown(); r.zoomTicks = ticks();
  r.whole = click("Whole range"); r.afterWhole = shown(); r.lineAfter = line();
  r.large = click("Enlarge"); r.position = getComputedStyle(figure).position; r.close = click("Close");
  click("SVG"); click("CSV");
  var bar = Array.prototype.find.call(d.querySelectorAll("#hol figure"), function (f) {
    return /loaded bw$/.test((f.querySelector("h3 span") || f.querySelector("h3")).textContent);
  });
  Array.prototype.forEach.call(bar.querySelectorAll(".tools button"), function (b) { if (b.textContent === "CSV") b.click(); });
  document.body.textContent = "report:" + JSON.stringify(r) + ":end";
});</script>`

func TestBrowserChartTools(t *testing.T) {
	t.Parallel()
	var r struct {
		Files, Names                                                                          []string
		Log, LogTicks, LinearLine, LinearTicks, LogAgain, LogTicksAgain, ZoomTicks, LineAfter string
		Position                                                                              string
		Linear, Back, Frame, Whole, Large, Close                                              bool
		All, Zoomed, AfterWhole                                                               int
	}
	reported(t, frame("page", "", 1200, page(t, pages.Options{}, showcase())), probeTools, &r)
	if !r.Linear || r.LinearLine == r.Log || !strings.HasPrefix(r.LinearTicks, "0 ") {
		t.Errorf("the linear axis: %v, ticks %q", r.Linear, r.LinearTicks)
	}
	if !r.Back || r.LogTicksAgain != r.LogTicks || !near(r.Log, r.LogAgain) {
		t.Errorf("back on the logarithmic axis: ticks %q, were %q; line %.80s, was %.80s", r.LogTicksAgain, r.LogTicks,
			r.LogAgain, r.Log)
	}
	if !r.Frame || r.Zoomed >= r.All || r.Zoomed == 0 || r.ZoomTicks == r.LogTicks {
		t.Errorf("zoomed in: %d of %d points, ticks %q", r.Zoomed, r.All, r.ZoomTicks)
	}
	if !r.Whole || r.AfterWhole != r.All || !near(r.Log, r.LineAfter) {
		t.Errorf("the whole range again: %d of %d points", r.AfterWhole, r.All)
	}
	if !r.Large || r.Position != "fixed" || !r.Close {
		t.Errorf("enlarged: %v, position %s, closed %v", r.Large, r.Position, r.Close)
	}
	if len(r.Files) != 3 || strings.Join(r.Names,
		" ") != "percentiles-latency-send-64-b.svg percentiles-latency-send-64-b.csv "+r.Names[2] {
		t.Fatalf("%d files saved: %q", len(r.Files), r.Names)
	}
	drawing, _ := strings.CutPrefix(r.Files[0], "image/svg+xml\n")
	contains(t, drawing, `xmlns="http://www.w3.org/2000/svg"`, "Latency send, 64 B", "depth 1, 1 QP",
		"iwarp(crc)")
	lacks(t, drawing, "var(") // which is in the page's style
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the drawing is not well formed: %v", err)
		}
	}
	data, _ := strings.CutPrefix(r.Files[1], "text/csv\n")
	lines := strings.Split(strings.TrimSpace(data), "\n")
	p50 := regexp.MustCompile(`^tcp\(nodelay\),50,(\d+(\.\d+)?)$`)
	if lines[0] != "series,Percentile of operations [%],Latency [ns]" || len(lines) < 13 || !p50.MatchString(lines[1]) {
		t.Errorf("data:\n%s", data)
	}
	contains(t, r.Files[2], "text/csv\nseries,Loaded bw [MiB/s]\ntcp,")
}

var coordinates = regexp.MustCompile(`[\d.]+`)

// near tells whether two lines have the same first and last points within the rounding of a drawing.
func near(a, b string) bool {
	p, q := coordinates.FindAllString(a, -1), coordinates.FindAllString(b, -1)
	return len(p) > 3 && len(q) > 3 && closeTo(p[0], q[0]) && closeTo(p[1], q[1]) && closeTo(p[len(p)-1], q[len(q)-1])
}

func closeTo(a, b string) bool {
	var x, y float64
	fmt.Sscan(a, &x)
	fmt.Sscan(b, &y)
	return x-y < 0.5 && y-x < 0.5
}

// probeType reports the smallest type of a page, and how much drawings are scaled.
const probeType = `<script>
addEventListener("load", function () {
  var report = {};
  document.querySelectorAll("iframe").forEach(function (f) {
    var d = f.contentDocument, r = report[f.id] = { least: 99, what: "", scales: [] };
    d.querySelectorAll("details").forEach(function (e) { e.open = true; });
    d.querySelectorAll("svg").forEach(function (s) {
      var k = s.getBoundingClientRect().width / s.viewBox.baseVal.width;
      r.scales.push(Math.round(k * 1000) / 1000);
    });
    d.querySelectorAll("body *").forEach(function (e) {
      var own = Array.prototype.some.call(e.childNodes, function (n) { return n.nodeType === 3 && n.textContent.trim(); });
      if (!own || /^(SCRIPT|STYLE|title|desc)$/i.test(e.tagName) || !e.getClientRects().length) return;
      var size = parseFloat(f.contentWindow.getComputedStyle(e).fontSize), svg = e.ownerSVGElement;
      if (svg) size *= svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      if (size < r.least) { r.least = size; r.what = e.tagName + " " + e.textContent.slice(0, 40); }
    });
  });
  document.body.textContent = "report:" + JSON.stringify(report) + ":end";
});</script>`

// Type is 12 pixels and more at every width, and the same on all charts.
func TestBrowserTypeIsReadable(t *testing.T) {
	t.Parallel()
	frames, widths := "", []int{320, 360, 390, 768, 1024, 1400, 2560}
	p := page(t, pages.Options{Conformance: records(t)}, showcase())
	for _, width := range widths {
		frames += frame(fmt.Sprintf("w%d", width), "", width, p)
	}
	var got map[string]struct {
		Least  float64
		What   string
		Scales []float64
	}
	if reported(t, frames, probeType, &got); len(got) != len(widths) {
		t.Fatalf("the browser reports %v", got)
	}
	for id, v := range got {
		if v.Least < 11.99 {
			t.Errorf("%s: %.2f px: %s", id, v.Least, v.What)
		}
		for _, s := range v.Scales {
			if s != v.Scales[0] || s > 1.001 {
				t.Errorf("%s: charts are scaled by %v", id, v.Scales)
				break
			}
		}
	}
}

// printed is how many pages of paper a page takes; fragment is behind its address.
func printed(t *testing.T, page, fragment string) int {
	t.Helper()
	pdf := filepath.Join(t.TempDir(), "page.pdf")
	browse(t, page, fragment, "--no-pdf-header-footer", "--print-to-pdf="+pdf)
	b := must(os.ReadFile(pdf))(t)
	return len(regexp.MustCompile(`/Type\s*/Page\b[^s]`).FindAll(b, -1))
}

// Paper gets a summary of at most two pages, and all of it where that is asked for.
func TestBrowserPrintsASummary(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]string{
		"showcase":   page(t, pages.Options{Conformance: records(t)}, showcase()),
		"long names": page(t, pages.Options{Conformance: records(t)}, longNames()),
	} {
		n := printed(t, p, "")
		if n < 1 || n > 2 {
			t.Errorf("%s: the summary has %d pages, want 1 or 2", name, n)
		}
		if all := printed(t, p, "everything"); all <= n+2 {
			t.Errorf("%s: everything has %d pages and the summary %d", name, all, n)
		}
	}
}

// Runs that were measured at the same points are held against each other on one page.
func TestHTMLComparesRuns(t *testing.T) {
	repeated := func(factor float64) *reports.Document {
		d := &reports.Document{Started: showcase().Started}
		for n := range 8 {
			for _, r := range showcase().Results {
				if r.Latency == nil || r.Rate > 0 || !strings.HasPrefix(r.Stack, "tcp") {
					continue
				}
				l := *r.Latency
				l.P50, l.P99, l.Mean = l.P50*factor*(1+float64(n)/1e4), l.P99*(1+float64(n%4)/100),
					l.Mean*factor*(1+float64(n)/1e4)
				r.Latency, r.Repeat = &l, n+1
				d.Results = append(d.Results, r)
			}
		}
		return of(d)
	}
	p := page(t, pages.Options{Names: []string{"old.json", "new.json"}}, repeated(1), repeated(0.8))
	contains(t, section(t, p, "compared"), "new.json against old.json",
		"Of 12 figures of 4 points, 8 got better and 0 worse beyond chance.", "✓ -20.", "What could be chance")
	if s := section(t, page(t, pages.Options{}, repeated(1)), "compared"); s != "" {
		t.Error("one run is compared")
	}
	contains(t, section(t, page(t, pages.Options{Names: []string{"old.json", "new.json"}}, repeated(1), repeated(1.3)),
		"compared"), "0 got better and 8 worse", "✕ ")
}

// Medians stand first; repeats and corrected twins are folded away.
func TestHTMLFoldsRepeatsAndTwins(t *testing.T) {
	d := showcase()
	var all []reports.Result
	for n := range 3 {
		for _, r := range d.Results {
			if r.Workload != "latency" || r.Rate > 0 || r.SizeBytes > 1024 {
				continue
			}
			r.Repeat, r.LatencyCorrected = n+1, distribution(20_000, 9000, 0.2, 4)
			all = append(all, r)
		}
	}
	d.Results = all
	s := section(t, page(t, pages.Options{}, d), "results")
	main, folded, found := strings.Cut(s, "<details>")
	if !found {
		t.Fatal("nothing is folded")
	}
	contains(t, main, "Medians over repeats")
	lacks(t, main, "repeat 1", "corrected</th>")
	if n := strings.Count(main, "<tr>"); n != 1+6 { // a heading, three stacks of two sizes
		t.Errorf("%d rows in front, want 7", n)
	}
	contains(t, folded, "tcp(nodelay), repeat 3", "tcp(nodelay), repeat 3, corrected")
}
