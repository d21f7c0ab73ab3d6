package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

func spawn() {
	n := number("n")
	repeat("spawn", "ns", func() float64 {
		var wg sync.WaitGroup
		start := time.Now()
		for i := 0; i < n; i++ {
			wg.Add(1)
			go wg.Done()
			if i%1000 == 999 {
				wg.Wait()
			}
		}
		wg.Wait()
		return each(time.Since(start), n)
	})
}

// startAndCancel makes one sample per process: n goroutines that wait under one parent context, then cancelled.
func startAndCancel(prefix string, wait func(context.Context)) {
	n := number("n")
	parent, cancelAll := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var started int64
	wg.Add(n)
	before := residentBytes()
	start := time.Now()
	for i := 0; i < n; i++ {
		go func() { atomic.AddInt64(&started, 1); wait(parent); wg.Done() }()
	}
	for atomic.LoadInt64(&started) < int64(n) {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	settle(&started, n)
	emit(prefix+"start", each(took, n), "ns")
	emit(prefix+"mem", (residentBytes()-before)/float64(n), "bytes")
	start = time.Now()
	cancelAll()
	wg.Wait()
	emit(prefix+"cancel", each(time.Since(start), n), "ns")
}

func sleepers() {
	startAndCancel("sleep.", func(ctx context.Context) {
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	})
}

func scopes() {
	startAndCancel("scope.timer_", func(parent context.Context) {
		ctx, cancel := context.WithTimeout(parent, time.Hour)
		defer cancel()
		<-ctx.Done()
	})
}
