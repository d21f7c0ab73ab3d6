//! tokio peers: Semaphore, tasks, timers, worker pools. usage: tokio_peers BENCH key=value…
//! Every key but `reps` is echoed in the sample's params. `threads=1` is the current-thread runtime.
mod pool;
mod sem;
mod tasks;

use std::collections::BTreeMap;
use std::time::Instant;

pub struct Args {
    pub bench: String,
    values: BTreeMap<String, String>,
}

impl Args {
    fn from_env() -> Args {
        let mut words = std::env::args().skip(1);
        let bench = words.next().expect("usage: tokio_peers BENCH key=value…");
        let values = words
            .map(|w| w.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())).expect("expected key=value"))
            .collect();
        Args { bench, values }
    }
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).unwrap_or_else(|| panic!("missing {key}="))
    }
    pub fn number(&self, key: &str) -> usize {
        self.text(key).parse().unwrap_or_else(|_| panic!("bad {key}="))
    }
    pub fn reps(&self) -> usize {
        self.values.get("reps").map_or(1, |v| v.parse().expect("bad reps="))
    }
    pub fn emit(&self, bench: &str, value: f64, unit: &str) {
        let params: Vec<String> = self
            .values
            .iter()
            .filter(|(k, _)| *k != "reps")
            .map(|(k, v)| if v.parse::<u64>().is_ok() { format!("\"{k}\":{v}") } else { format!("\"{k}\":\"{v}\"") })
            .collect();
        let params = params.join(",");
        println!(r#"{{"bench":"{bench}","peer":"tokio","value":{value},"unit":"{unit}","params":{{{params}}}}}"#);
    }
    /// Runs `once` reps + 1 times; the first is a warm-up and is thrown away.
    pub fn repeat(&self, unit: &str, mut once: impl FnMut() -> f64) {
        for rep in 0..=self.reps() {
            let value = once();
            if rep > 0 {
                self.emit(&self.bench, value, unit);
            }
        }
    }
    pub fn runtime(&self) -> tokio::runtime::Runtime {
        let threads = self.number("threads");
        let mut builder = match threads {
            1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        if threads > 1 {
            builder.worker_threads(threads);
        }
        builder.enable_all().build().unwrap()
    }
}

/// Makes the compiler believe that `value` is looked at. std::hint::black_box is too new for Debian's rustc.
#[inline(always)]
pub fn keep<T>(value: T) -> T {
    // SAFETY: the assembly is empty.
    unsafe { std::arch::asm!("/* {0} */", in(reg) &value, options(nostack, preserves_flags)) };
    value
}

pub fn ns_each(start: Instant, count: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

pub fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[(share * (values.len() - 1) as f64) as usize]
}

fn main() {
    let args = Args::from_env();
    match args.bench.as_str() {
        "sem.uncontended" => sem::uncontended(&args),
        "sem.contended" => sem::contended(&args),
        "sem.waiter_mem" => sem::waiter_memory(&args),
        "sem.cancel" => sem::cancel(&args),
        "spawn" => tasks::spawn(&args),
        "await_child" => tasks::await_child(&args),
        "sleep" => tasks::sleepers(&args),
        "scope.timer" => tasks::scopes(&args),
        "pool.throughput" => pool::throughput(&args),
        "pool.ping" => pool::ping(&args),
        other => panic!("not a bench of this peer: {other}"),
    }
}
