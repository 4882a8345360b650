package claims

import (
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render/html"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Chart draws the curve: what was published is thin, and has the colour of the same line as measured here.
func (t Table) Chart(id string) template.HTML {
	c := &view.LineChart{Title: t.What, Desc: "the figures of the table below", XLabel: t.Head[0],
		X: view.Scale{Log: true, Lo: math.Inf(1), Hi: math.Inf(-1)}, YUnit: digits}
	for _, p := range t.Head[1:] {
		x := position(p)
		c.X.Lo, c.X.Hi = min(c.X.Lo, x), max(c.X.Hi, x)
		c.XTicks = append(c.XTicks, view.Tick{At: x, Label: p})
	}
	slots := map[string]int{}
	for _, row := range t.Rows {
		name, published := strings.CutSuffix(row[0], ", published")
		name = strings.TrimSuffix(name, ", here")
		if _, ok := slots[name]; !ok {
			slots[name] = len(slots)
		}
		s := view.Series{Name: row[0], Slot: slots[name], Thin: published}
		for i, cell := range row[1:] {
			y, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				y = math.NaN() // not measured
			}
			s.Points = append(s.Points, view.Point{X: position(t.Head[i+1]), Y: y,
				Tip: row[0] + ", " + t.Head[i+1] + ": " + cell})
		}
		c.Series = append(c.Series, s)
	}
	return html.Lines(c, id)
}

func position(point string) float64 {
	n, err := reports.ParseSize(point)
	if err != nil {
		return number(point)
	}
	return float64(n)
}
