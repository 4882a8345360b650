// Package markdown writes a page and a comparison as GitHub's markdown: everything
// but the charts.
package markdown
