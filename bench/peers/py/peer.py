"""asyncio peers: Semaphore, tasks, timeouts, a queue pool. usage: peer.py BENCH key=value…

Every key but `reps` is echoed in the sample's params. Standard library only.
"""
import asyncio
import gc
import json
import os
import sys
import time

HOUR = 3600


class Args:
    def __init__(self, words):
        self.bench = words[0]
        self.values = dict(word.split("=", 1) for word in words[1:])
        self.reps = int(self.values.pop("reps", 1))

    def number(self, key):
        return int(self.values[key])

    def emit(self, bench, value, unit):
        params = {k: int(v) if v.isdigit() else v for k, v in self.values.items()}
        line = {"bench": bench, "peer": "asyncio", "value": value, "unit": unit, "params": params}
        print(json.dumps(line), flush=True)


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


async def repeat(args, bench, unit, once):
    """Runs `once` reps + 1 times; the first is a warm-up and is thrown away."""
    for rep in range(args.reps + 1):
        value = await once()
        if rep:
            args.emit(bench, value, unit)


async def uncontended(args):
    n = args.number("n")

    async def once():
        semaphore = asyncio.Semaphore(10)
        start = time.perf_counter_ns()
        for _ in range(n):
            await semaphore.acquire()
            semaphore.release()
        return (time.perf_counter_ns() - start) / n

    await repeat(args, "sem.uncontended", "ns", once)


async def contended(args):
    tasks, iters = args.number("tasks"), args.number("iters")

    async def task(semaphore):
        for _ in range(iters):
            await semaphore.acquire()
            await asyncio.sleep(0)
            semaphore.release()

    async def once():
        semaphore = asyncio.Semaphore(args.number("permits"))
        start = time.perf_counter_ns()
        await asyncio.gather(*(task(semaphore) for _ in range(tasks)))
        return (time.perf_counter_ns() - start) / (tasks * iters)

    await repeat(args, "sem.contended", "ns", once)


async def timed_acquire(semaphore):
    async with asyncio.timeout(HOUR):
        await semaphore.acquire()


async def park(semaphore, n, timed):
    acquire = timed_acquire if timed else asyncio.Semaphore.acquire
    tasks = [asyncio.create_task(acquire(semaphore)) for _ in range(n)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def waiter_memory(args):
    """One sample per process."""
    n = args.number("n")
    semaphore = asyncio.Semaphore(0)
    gc.collect()
    before = resident_bytes()
    tasks = await park(semaphore, n, args.number("timed"))
    args.emit("sem.waiter_mem", (resident_bytes() - before) / len(tasks), "bytes")
    os._exit(0)


async def cancel(args):
    n = args.number("n")

    async def once():
        tasks = await park(asyncio.Semaphore(0), n, False)
        if args.values["order"] == "lifo":
            tasks.reverse()
        start = time.perf_counter_ns()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return (time.perf_counter_ns() - start) / n

    await repeat(args, "sem.cancel", "ns", once)


async def nothing():
    pass


async def spawn(args):
    n = args.number("n")

    async def once():
        start = time.perf_counter_ns()
        for _ in range(n // 1000):
            await asyncio.gather(*(asyncio.create_task(nothing()) for _ in range(1000)))
        return (time.perf_counter_ns() - start) / (n // 1000 * 1000)

    await repeat(args, "spawn", "ns", once)


async def await_child(args):
    n = args.number("n")

    async def once():
        start = time.perf_counter_ns()
        for _ in range(n):
            await nothing()
        return (time.perf_counter_ns() - start) / n

    await repeat(args, "await_child", "ns", once)


async def start_and_cancel(args, prefix, wait):
    """One sample per process: n tasks that wait, then all cancelled one by one and awaited."""
    n = args.number("n")
    gc.collect()
    before = resident_bytes()
    start = time.perf_counter_ns()
    tasks = [asyncio.create_task(wait()) for _ in range(n)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    args.emit(prefix + "start", (time.perf_counter_ns() - start) / n, "ns")
    args.emit(prefix + "mem", (resident_bytes() - before) / n, "bytes")
    start = time.perf_counter_ns()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    args.emit(prefix + "cancel", (time.perf_counter_ns() - start) / n, "ns")
    os._exit(0)


async def sleepers(args):
    await start_and_cancel(args, "sleep.", lambda: asyncio.sleep(HOUR))


async def scopes(args):
    async def scope():
        async with asyncio.timeout(HOUR):
            await asyncio.get_running_loop().create_future()

    await start_and_cancel(args, "scope.timer_", scope)


async def worker(queue):
    while True:
        job, future, latency, submitted = await queue.get()
        try:
            result = await job()
            latency.append((time.perf_counter_ns() - submitted) / 1e3)
            future.set_result(result)
        except Exception as error:
            future.set_exception(error)
        queue.task_done()


def start_pool(cap, workers):
    queue = asyncio.Queue(cap)
    return queue, [asyncio.create_task(worker(queue)) for _ in range(workers)]


async def throughput(args):
    jobs = args.number("jobs")
    loop = asyncio.get_running_loop()
    queue, workers = start_pool(args.number("cap"), args.number("workers"))
    for rep in range(args.reps + 1):
        latency, futures = [], []
        start = time.perf_counter_ns()
        for _ in range(jobs):
            future = loop.create_future()
            futures.append(future)
            await queue.put((nothing, future, latency, time.perf_counter_ns()))
        for future in futures:
            await future
        seconds = (time.perf_counter_ns() - start) / 1e9
        if rep:
            args.emit("pool.throughput", jobs / seconds, "jobs/s")
            args.emit("pool.latency_p50", percentile(latency, 0.5), "us")
            args.emit("pool.latency_p99", percentile(latency, 0.99), "us")
    for task in workers:
        task.cancel()


async def ping(args):
    loop = asyncio.get_running_loop()
    queue, workers = start_pool(100, args.number("workers"))
    for rep in range(args.reps + 1):
        latency = []
        for _ in range(args.number("jobs")):
            start = time.perf_counter_ns()
            future = loop.create_future()
            await queue.put((nothing, future, [], start))
            await future
            latency.append((time.perf_counter_ns() - start) / 1e3)
        if rep:
            args.emit("pool.ping_p50", percentile(latency, 0.5), "us")
            args.emit("pool.ping_p99", percentile(latency, 0.99), "us")
    for task in workers:
        task.cancel()


BENCHES = {
    "sem.uncontended": uncontended, "sem.contended": contended, "sem.waiter_mem": waiter_memory, "sem.cancel": cancel,
    "spawn": spawn, "await_child": await_child, "sleep": sleepers, "scope.timer": scopes,
    "pool.throughput": throughput, "pool.ping": ping,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in BENCHES:
        sys.exit(f"usage: peer.py BENCH key=value…, one of: {' '.join(BENCHES)}")
    parsed = Args(sys.argv[1:])
    asyncio.run(BENCHES[parsed.bench](parsed))
