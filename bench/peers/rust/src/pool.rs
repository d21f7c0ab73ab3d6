//! impl=mpsc: workers share an Arc<Mutex<mpsc::Receiver>>. impl=spawn: a task per job behind a Semaphore(workers), with
//! a second Semaphore as the bounded queue. Both are usual recipes.
use crate::{percentile, Args};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, Mutex, Semaphore};

type Reply = oneshot::Sender<Instant>; // the result is the moment of completion

enum Pool {
    Mpsc(mpsc::Sender<Reply>),
    Spawn(Arc<Semaphore>, Arc<Semaphore>),
}

impl Pool {
    fn new(kind: &str, cap: usize, workers: usize) -> Pool {
        if kind == "spawn" {
            return Pool::Spawn(Arc::new(Semaphore::new(cap + workers)), Arc::new(Semaphore::new(workers)));
        }
        let (sender, receiver) = mpsc::channel::<Reply>(cap);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..workers {
            let receiver = receiver.clone();
            tokio::spawn(async move {
                loop {
                    let job = receiver.lock().await.recv().await; // the guard is dropped before the job runs
                    match job {
                        Some(reply) => drop(reply.send(Instant::now())),
                        None => break,
                    }
                }
            });
        }
        Pool::Mpsc(sender)
    }
    async fn submit(&self) -> oneshot::Receiver<Instant> {
        let (reply, result) = oneshot::channel();
        match self {
            Pool::Mpsc(sender) => drop(sender.send(reply).await),
            Pool::Spawn(room, slots) => {
                let room = room.clone().acquire_owned().await.unwrap();
                let slots = slots.clone();
                tokio::spawn(async move {
                    let _slot = slots.acquire().await.unwrap();
                    let _ = reply.send(Instant::now());
                    drop(room);
                });
            }
        }
        result
    }
}

/// One submitter, and one task that collects the results in order.
async fn submit_all(pool: Pool, jobs: usize) -> (f64, Vec<f64>) {
    let (pending, mut submitted) = mpsc::unbounded_channel::<(Instant, oneshot::Receiver<Instant>)>();
    let start = Instant::now();
    let collector = tokio::spawn(async move {
        let mut latency_us = Vec::with_capacity(jobs);
        while let Some((at, result)) = submitted.recv().await {
            latency_us.push((result.await.unwrap() - at).as_nanos() as f64 / 1e3);
        }
        latency_us
    });
    for _ in 0..jobs {
        let at = Instant::now();
        let result = pool.submit().await;
        let _ = pending.send((at, result));
    }
    drop(pending);
    let latency_us = collector.await.unwrap();
    (start.elapsed().as_secs_f64(), latency_us)
}

pub fn throughput(args: &Args) {
    let (cap, workers, jobs) = (args.number("cap"), args.number("workers"), args.number("jobs"));
    let kind = args.text("impl").to_string();
    let runtime = args.runtime();
    for rep in 0..=args.reps() {
        let kind = kind.clone();
        // the submitter is itself a task, so that on several threads it runs on a worker thread
        let (seconds, mut latency_us) = runtime
            .block_on(async move {
                tokio::spawn(async move { submit_all(Pool::new(&kind, cap, workers), jobs).await }).await
            })
            .unwrap();
        if rep > 0 {
            args.emit("pool.throughput", jobs as f64 / seconds, "jobs/s");
            args.emit("pool.latency_p50", percentile(&mut latency_us, 0.5), "us");
            args.emit("pool.latency_p99", percentile(&mut latency_us, 0.99), "us");
        }
    }
}

async fn ping_all(pool: Pool, jobs: usize) -> Vec<f64> {
    let mut latency_us = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        let start = Instant::now();
        pool.submit().await.await.unwrap();
        latency_us.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    latency_us
}

pub fn ping(args: &Args) {
    let (workers, jobs) = (args.number("workers"), args.number("jobs"));
    let kind = args.text("impl").to_string();
    let runtime = args.runtime();
    for rep in 0..=args.reps() {
        let kind = kind.clone();
        let mut latency_us = runtime
            .block_on(
                async move { tokio::spawn(async move { ping_all(Pool::new(&kind, 100, workers), jobs).await }).await },
            )
            .unwrap();
        if rep > 0 {
            args.emit("pool.ping_p50", percentile(&mut latency_us, 0.5), "us");
            args.emit("pool.ping_p99", percentile(&mut latency_us, 0.99), "us");
        }
    }
}
