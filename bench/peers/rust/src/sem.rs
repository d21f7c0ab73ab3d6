use crate::{keep, ns_each, resident_bytes, Args};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

pub fn uncontended(args: &Args) {
    let n = args.number("n");
    let runtime = args.runtime();
    args.repeat("ns", || {
        runtime.block_on(async {
            let semaphore = Semaphore::new(10);
            let start = Instant::now();
            for _ in 0..n {
                drop(keep(semaphore.acquire().await.unwrap()));
            }
            ns_each(start, n)
        })
    });
}

pub fn contended(args: &Args) {
    let (tasks, iters) = (args.number("tasks"), args.number("iters"));
    let runtime = args.runtime();
    args.repeat("ns", || {
        let semaphore = Arc::new(Semaphore::new(args.number("permits")));
        runtime.block_on(async {
            let start = Instant::now();
            let handles: Vec<_> = (0..tasks)
                .map(|_| {
                    let semaphore = semaphore.clone();
                    tokio::spawn(async move {
                        for _ in 0..iters {
                            let _permit = semaphore.acquire().await.unwrap();
                            tokio::task::yield_now().await;
                        }
                    })
                })
                .collect();
            for handle in handles {
                handle.await.unwrap();
            }
            ns_each(start, tasks * iters)
        })
    });
}

/// One sample per process.
pub fn waiter_memory(args: &Args) {
    let n = args.number("n");
    let timed = args.number("timed") == 1;
    args.runtime().block_on(async {
        let semaphore = Arc::new(Semaphore::new(0));
        let up = Arc::new(AtomicUsize::new(0));
        let before = resident_bytes();
        for _ in 0..n {
            let (semaphore, up) = (semaphore.clone(), up.clone());
            if timed {
                tokio::spawn(async move {
                    up.fetch_add(1, SeqCst);
                    let _permit = tokio::time::timeout(Duration::from_secs(3600), semaphore.acquire()).await;
                });
            } else {
                tokio::spawn(async move {
                    up.fetch_add(1, SeqCst);
                    let _permit = semaphore.acquire().await;
                });
            }
        }
        while up.load(SeqCst) < n {
            tokio::task::yield_now().await;
        }
        args.emit("sem.waiter_mem", (resident_bytes() - before) / n as f64, "bytes");
        std::process::exit(0);
    });
}

pub fn cancel(args: &Args) {
    let n = args.number("n");
    let runtime = args.runtime();
    args.repeat("ns", || {
        runtime.block_on(async {
            let semaphore = Arc::new(Semaphore::new(0));
            let up = Arc::new(AtomicUsize::new(0));
            let mut handles: Vec<_> = (0..n)
                .map(|_| {
                    let (semaphore, up) = (semaphore.clone(), up.clone());
                    tokio::spawn(async move {
                        up.fetch_add(1, SeqCst);
                        let _permit = semaphore.acquire().await;
                    })
                })
                .collect();
            while up.load(SeqCst) < n {
                tokio::task::yield_now().await;
            }
            if args.text("order") == "lifo" {
                handles.reverse();
            }
            let start = Instant::now();
            for handle in &handles {
                handle.abort();
            }
            for handle in handles {
                let _ = handle.await;
            }
            ns_each(start, n)
        })
    });
}
