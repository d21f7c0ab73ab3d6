use crate::{keep, ns_each, resident_bytes, Args};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

pub fn spawn(args: &Args) {
    let n = args.number("n");
    let runtime = args.runtime();
    args.repeat("ns", || {
        runtime.block_on(async {
            let mut handles = Vec::with_capacity(1000);
            let start = Instant::now();
            for i in 0..n {
                handles.push(tokio::spawn(async {}));
                if i % 1000 == 999 {
                    for handle in handles.drain(..) {
                        handle.await.unwrap();
                    }
                }
            }
            for handle in handles {
                handle.await.unwrap();
            }
            ns_each(start, n)
        })
    });
}

/// A child on the heap: an `async fn` awaited in place is inlined into its parent and costs nothing.
pub fn await_child(args: &Args) {
    let n = args.number("n");
    let runtime = args.runtime();
    args.repeat("ns", || {
        runtime.block_on(async {
            let start = Instant::now();
            for i in 0..n {
                let child: Pin<Box<dyn Future<Output = usize>>> = Box::pin(async move { keep(i) });
                keep(keep(child).await);
            }
            ns_each(start, n)
        })
    });
}

/// One sample per process: n tasks that wait, then all aborted one by one and awaited.
fn start_and_cancel<F, W>(args: &Args, prefix: &str, wait: F)
where
    F: Fn() -> W + Copy + Send + Sync + 'static,
    W: Future<Output = ()> + Send,
{
    let n = args.number("n");
    args.runtime().block_on(async {
        let up = Arc::new(AtomicUsize::new(0));
        let before = resident_bytes();
        let mut start = Instant::now();
        let handles: Vec<_> = (0..n)
            .map(|_| {
                let up = up.clone();
                tokio::spawn(async move {
                    up.fetch_add(1, SeqCst);
                    wait().await; // made here: a captured future would be kept twice
                })
            })
            .collect();
        while up.load(SeqCst) < n {
            tokio::task::yield_now().await;
        }
        args.emit(&format!("{prefix}start"), ns_each(start, n), "ns");
        args.emit(&format!("{prefix}mem"), (resident_bytes() - before) / n as f64, "bytes");
        start = Instant::now();
        for handle in &handles {
            handle.abort();
        }
        for handle in handles {
            let _ = handle.await;
        }
        args.emit(&format!("{prefix}cancel"), ns_each(start, n), "ns");
        std::process::exit(0);
    });
}

pub fn sleepers(args: &Args) {
    start_and_cancel(args, "sleep.", || tokio::time::sleep(HOUR));
}

pub fn scopes(args: &Args) {
    start_and_cancel(args, "scope.timer_", || async {
        let _ = tokio::time::timeout(HOUR, std::future::pending::<()>()).await;
    });
}
