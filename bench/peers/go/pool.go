package main

import (
	"sync"
	"time"
)

type job struct {
	submitted time.Time
	work      func() int
	result    chan int
	latencyUs *float64 // set by the worker when the result is ready
}

func noop() int { return 1 }

func startPool(capacity, workers int) (chan job, *sync.WaitGroup) {
	queue := make(chan job, capacity)
	var wg sync.WaitGroup
	wg.Add(workers)
	for i := 0; i < workers; i++ {
		go func() {
			defer wg.Done()
			for j := range queue {
				r := j.work()
				if j.latencyUs != nil {
					*j.latencyUs = each(time.Since(j.submitted), 1000)
				}
				j.result <- r
			}
		}()
	}
	return queue, &wg
}

// throughput: one submitter, and one goroutine that collects the results in order.
func throughput() {
	n := number("jobs")
	for rep := 0; rep <= number("reps"); rep++ {
		queue, wg := startPool(number("cap"), number("workers"))
		latency := make([]float64, n)
		pending := make(chan job, n)
		done := make(chan struct{})
		start := time.Now()
		go func() {
			for j := range pending {
				<-j.result
			}
			close(done)
		}()
		for i := 0; i < n; i++ {
			j := job{time.Now(), noop, make(chan int, 1), &latency[i]}
			queue <- j
			pending <- j
		}
		close(pending)
		<-done
		seconds := time.Since(start).Seconds()
		close(queue)
		wg.Wait()
		if rep == 0 {
			continue
		}
		emit("pool.throughput", float64(n)/seconds, "jobs/s")
		emit("pool.latency_p50", percentile(latency, .5), "us")
		emit("pool.latency_p99", percentile(latency, .99), "us")
	}
}

func ping() {
	queue, _ := startPool(100, number("workers"))
	for rep := 0; rep <= number("reps"); rep++ {
		latency := make([]float64, number("jobs"))
		for i := range latency {
			j := job{time.Now(), noop, make(chan int, 1), nil}
			queue <- j
			<-j.result
			latency[i] = each(time.Since(j.submitted), 1000)
		}
		if rep == 0 {
			continue
		}
		emit("pool.ping_p50", percentile(latency, .5), "us")
		emit("pool.ping_p99", percentile(latency, .99), "us")
	}
}
