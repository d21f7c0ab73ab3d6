// Go peers: x/sync semaphore.Weighted, a buffered channel as semaphore, a channel pool, goroutines and contexts.
// usage: go_peers BENCH key=value…; every key but reps is echoed in the sample's params.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
)

var args = map[string]string{}

func number(key string) int {
	v, err := strconv.Atoi(args[key])
	if err != nil {
		fmt.Fprintln(os.Stderr, "missing or bad "+key+"=")
		os.Exit(2)
	}
	return v
}

func emit(bench string, value float64, unit string) {
	params := map[string]any{}
	for k, v := range args {
		if n, err := strconv.Atoi(v); err == nil {
			params[k] = n
		} else {
			params[k] = v
		}
	}
	delete(params, "reps")
	line, _ := json.Marshal(map[string]any{"bench": bench, "peer": "go", "value": value, "unit": unit, "params": params})
	fmt.Println(string(line))
}

// repeat runs once reps + 1 times; the first is a warm-up and is thrown away.
func repeat(bench, unit string, once func() float64) {
	for rep := 0; rep <= number("reps"); rep++ {
		if v := once(); rep > 0 {
			emit(bench, v, unit)
		}
	}
}

func each(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) }

func residentBytes() float64 {
	b, _ := os.ReadFile("/proc/self/statm")
	var total, resident float64
	fmt.Sscan(string(b), &total, &resident)
	return resident * float64(os.Getpagesize())
}

func percentile(v []float64, share float64) float64 {
	sort.Float64s(v)
	return v[int(share*float64(len(v)-1))]
}

func main() {
	bench := os.Args[1]
	for _, word := range os.Args[2:] {
		k, v, _ := strings.Cut(word, "=")
		args[k] = v
	}
	if _, ok := args["reps"]; !ok {
		args["reps"] = "1"
	}
	runtime.GOMAXPROCS(number("threads"))
	run := map[string]func(){
		"sem.uncontended": uncontended, "sem.contended": contended, "sem.waiter_mem": waiterMemory, "sem.cancel": cancel,
		"pool.throughput": throughput, "pool.ping": ping, "spawn": spawn, "sleep": sleepers, "scope.timer": scopes,
		"serve": serve, "pool.serve": poolServe,
	}[bench]
	if run == nil {
		fmt.Fprintln(os.Stderr, "not a bench of this peer: "+bench)
		os.Exit(2)
	}
	run()
}
