// What the peers of the suite `store` share: `node PEER.mjs BENCH key=value…` prints one JSON line per sample.
//   drain runs= carriers=   jobs that wait are carried out, until the store shows that all are done
//   latency rounds=         submit → started, one at a time, submitter and worker in one process
// A peer is { clear, add, add_many, start(carriers, on_start, on_done) → stop, settled? }. `settled` waits for the store,
// where the library reports an end before it is written.
const kSubmitBatch = 1000, kWarmUp = 2000

export const args = Object.fromEntries(process.argv.slice(3).map(word => word.split('=')))
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const now = () => Number(process.hrtime.bigint())
const percentile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(share * (values.length - 1))]

async function submit (peer, count) {
  for (let i = 0; i < count; i += kSubmitBatch) {
    await peer.add_many(Array.from({ length: Math.min(kSubmitBatch, count - i) }, (_, k) => ({ i: i + k })))
  }
}

async function drain (peer, emit, runs) {
  await peer.clear()
  let start = now()
  await submit(peer, runs)
  emit('drain.submit', runs * 1e9 / (now() - start), 'runs/s')
  let done = 0
  start = now()
  let stop
  await new Promise((resolve, reject) => {
    peer.start(Number(args.carriers), () => {}, () => { if (++done === runs) resolve() }).then(s => { stop = s }, reject)
  })
  await peer.settled?.()
  emit('drain', runs * 1e9 / (now() - start), 'runs/s')
  await stop()
}

async function latency (peer, emit, rounds) {
  let started
  const stop = await peer.start(10, () => started(now()), () => {})
  await sleep(500)
  const ms = []
  for (let i = 0; i < rounds; i++) {
    const next = new Promise(resolve => { started = resolve })
    const start = now()
    await peer.add({ i })
    ms.push((await next - start) / 1e6)
    await sleep(Math.random() * 10) // until it is idle again
  }
  emit('latency.p50', percentile(ms, 0.5), 'ms')
  emit('latency.p99', percentile(ms, 0.99), 'ms')
  await stop()
}

export async function measure (name, peer) {
  const bench = process.argv[2]
  const emit = (bench, value, unit) => console.log(JSON.stringify({ bench, peer: name, value, unit, params: args }))
  if (bench === 'drain') {
    const runs = Number(args.runs)
    await drain(peer, () => {}, Math.min(runs, kWarmUp)) // until it is compiled
    await drain(peer, emit, runs)
  } else if (bench === 'latency') {
    await latency(peer, emit, Number(args.rounds))
  } else {
    throw new Error(`no bench ${bench}`)
  }
  process.exit(0)
}
