// Package prometheus exports results as metrics of Prometheus, for a scrape, a
// Pushgateway or a textfile.
//
// Limitations: results with the same labels, such as repeats, are one series. Native
// buckets grow by 9 %, classic ones by a factor of two.
package prometheus
