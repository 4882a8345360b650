// Package hlog writes the histograms of results in the files of HdrHistogram: .hlog
// and .hgrm.
//
// Limitations: mean and deviation inside a .hgrm file rest on the histogram, within
// 0.1 %.
package hlog
