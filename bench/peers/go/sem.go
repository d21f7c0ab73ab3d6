package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

type chanSemaphore chan struct{}

func (c chanSemaphore) Acquire(ctx context.Context, _ int64) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (c chanSemaphore) Release(int64) { <-c }

type semaphoreLike interface {
	Acquire(context.Context, int64) error
	Release(int64)
}

func makeSemaphore(permits int) semaphoreLike {
	if args["impl"] == "chan" {
		return make(chanSemaphore, permits)
	}
	return semaphore.NewWeighted(int64(permits))
}

// uncontended uses bare channel operations for impl=chan: the common idiom has no context.
func uncontended() {
	n := number("n")
	repeat("sem.uncontended", "ns", func() float64 {
		if args["impl"] == "chan" {
			c := make(chan struct{}, 10)
			start := time.Now()
			for i := 0; i < n; i++ {
				c <- struct{}{}
				<-c
			}
			return each(time.Since(start), n)
		}
		s := semaphore.NewWeighted(10)
		ctx := context.Background()
		start := time.Now()
		for i := 0; i < n; i++ {
			s.Acquire(ctx, 1)
			s.Release(1)
		}
		return each(time.Since(start), n)
	})
}

func contended() {
	tasks, iters := number("tasks"), number("iters")
	ctx := context.Background()
	repeat("sem.contended", "ns", func() float64 {
		s := makeSemaphore(number("permits"))
		var wg sync.WaitGroup
		wg.Add(tasks)
		start := time.Now()
		for i := 0; i < tasks; i++ {
			go func() {
				for j := 0; j < iters; j++ {
					s.Acquire(ctx, 1)
					runtime.Gosched()
					s.Release(1)
				}
				wg.Done()
			}()
		}
		wg.Wait()
		return each(time.Since(start), tasks*iters)
	})
}

// settle waits until all have started, and then some, for them to park.
func settle(started *int64, n int) {
	for atomic.LoadInt64(started) < int64(n) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
}

func waiterMemory() {
	n, timed := number("n"), args["timed"] == "1"
	s := makeSemaphore(1)
	s.Acquire(context.Background(), 1)
	runtime.GC()
	before := residentBytes()
	var started int64
	for i := 0; i < n; i++ {
		go func() {
			ctx := context.Background()
			if timed {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Hour)
				defer cancel()
			}
			atomic.AddInt64(&started, 1)
			s.Acquire(ctx, 1)
		}()
	}
	settle(&started, n)
	emit("sem.waiter_mem", (residentBytes()-before)/float64(n), "bytes")
}

// cancel ends parked waiters one by one (fifo, lifo), or through a common parent context (all).
func cancel() {
	n, order := number("n"), args["order"]
	repeat("sem.cancel", "ns", func() float64 {
		s := makeSemaphore(1)
		s.Acquire(context.Background(), 1)
		parent, cancelAll := context.WithCancel(context.Background())
		defer cancelAll()
		cancels := make([]context.CancelFunc, n)
		var wg sync.WaitGroup
		var started int64
		wg.Add(n)
		for i := range cancels {
			ctx := parent
			if order != "all" {
				ctx, cancels[i] = context.WithCancel(parent)
			}
			go func() { atomic.AddInt64(&started, 1); s.Acquire(ctx, 1); wg.Done() }()
		}
		settle(&started, n)
		start := time.Now()
		if order == "all" {
			cancelAll()
		}
		for i := 0; i < n && order != "all"; i++ {
			if order == "lifo" {
				cancels[n-1-i]()
			} else {
				cancels[i]()
			}
		}
		wg.Wait()
		return each(time.Since(start), n)
	})
}
