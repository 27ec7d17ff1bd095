// The exporter that a Go programmer would write: net/http sends requests, client_golang holds, encodes and serves. For
// comparison only.
//
// usage: exporter BASE_URL SECONDS < APPS, one `project/app` a line; each app is polled every so many seconds
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func gauge(name string, labels ...string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "h"}, append([]string{"project", "app"}, labels...))
}

func counter(name string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "h"}, append([]string{"project", "app"}, labels...))
}

var (
	percentile    = gauge("pds_app_response_time_seconds", "window", "percentile")
	within        = gauge("pds_app_response_time_within_ratio", "window", "threshold")
	requests      = gauge("pds_app_window_requests", "window")
	run           = gauge("pds_app_run_execution_time_seconds", "percentile")
	runs          = gauge("pds_app_window_runs", "window")
	requestsTotal = counter("pds_app_requests_total")
	buckets       = counter("pds_app_request_duration_seconds_bucket", "le")
	runsTotal     = counter("pds_app_runs_total")
)

const (
	window = "start=2026-01-01T00:00:00Z&end=2026-01-01T00:05:00Z"
	step   = "start=2026-01-01T00:04:00Z&end=2026-01-01T00:05:00Z"
)

type responseTime struct {
	Data struct {
		Percentiles   map[string]float64 `json:"percentiles"`
		Distribution  map[string]float64 `json:"distribution"`
		TotalRequests float64            `json:"total_requests"`
	} `json:"data"`
}

type runTime struct {
	Data struct {
		TimeSeries []struct{ P50, P90, P99 float64 } `json:"time_series"`
		TotalRuns  float64                           `json:"total_runs"`
	} `json:"data"`
}

var client = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

func get(url, query string, reply any) {
	request, err := http.NewRequest("GET", url+"?"+query, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer a-token")
	response, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		log.Fatal(url, ": ", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(reply); err != nil {
		log.Fatal(url, ": ", err)
	}
}

func poll(base, project, app string) {
	url := fmt.Sprintf("%s/v2/projects/%s/apps/%s/metrics", base, project, app)
	var times, added responseTime
	get(url+"/response-time", window, &times)
	for name, millis := range times.Data.Percentiles {
		percentile.WithLabelValues(project, app, "5m", name).Set(millis / 1e3)
	}
	for name, share := range times.Data.Distribution {
		within.WithLabelValues(project, app, "5m", name).Set(share / 100)
	}
	requests.WithLabelValues(project, app, "5m").Set(times.Data.TotalRequests)
	get(url+"/response-time", step, &added)
	requestsTotal.WithLabelValues(project, app).Add(added.Data.TotalRequests)
	for name, share := range added.Data.Distribution {
		buckets.WithLabelValues(project, app, name).Add(math.Round(share / 100 * added.Data.TotalRequests))
	}
	var runTimes, addedRuns runTime
	get(url+"/run-execution-time", window, &runTimes)
	last := runTimes.Data.TimeSeries[len(runTimes.Data.TimeSeries)-1]
	run.WithLabelValues(project, app, "p50").Set(last.P50)
	run.WithLabelValues(project, app, "p90").Set(last.P90)
	run.WithLabelValues(project, app, "p99").Set(last.P99)
	runs.WithLabelValues(project, app, "5m").Set(runTimes.Data.TotalRuns)
	get(url+"/run-execution-time", step, &addedRuns)
	runsTotal.WithLabelValues(project, app).Add(addedRuns.Data.TotalRuns)
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		log.Fatal(err)
	}
	var apps [][]string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		apps = append(apps, strings.SplitN(lines.Text(), "/", 2))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/metrics", promhttp.Handler())
	go http.Serve(listener, nil)
	fmt.Println("listening", listener.Addr())
	for {
		end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
		waiting := make(chan []string)
		var workers sync.WaitGroup
		for i := 0; i < 32; i++ {
			workers.Add(1)
			go func() {
				defer workers.Done()
				for app := range waiting {
					poll(os.Args[1], app[0], app[1])
				}
			}()
		}
		for _, app := range apps {
			waiting <- app
		}
		close(waiting)
		workers.Wait()
		time.Sleep(time.Until(end))
	}
}
