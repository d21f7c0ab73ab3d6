// graphile-worker. batched=yes: its local queue, and jobs completed and failed in batches, as its own notes on speed say.
import pg from 'pg'
import { run, makeWorkerUtils, Logger } from 'graphile-worker'
import { args, measure, sleep } from './queue.mjs'

const logger = new Logger(() => () => {})
const pool = new pg.Pool({ connectionString: process.env.STINT_BENCH_POSTGRES, max: 20 })
pool.on('error', () => {})
const utils = await makeWorkerUtils({ pgPool: pool, logger })
await utils.migrate()
const batched = { worker: { localQueue: { size: 500, ttl: 60_000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } }

await measure('graphile-worker', {
  clear: () => pool.query('truncate graphile_worker._private_jobs'),
  add: payload => utils.addJob('noop', payload),
  add_many: payloads => utils.addJobs(payloads.map(payload => ({ identifier: 'noop', payload }))),
  async start (concurrency, on_start, on_done) {
    const runner = await run({
      pgPool: pool, concurrency, logger, noHandleSignals: true, ...(args.batched === 'yes' ? { preset: batched } : {}),
      taskList: { noop: async payload => { on_start(payload) } }
    })
    runner.events.on('job:complete', on_done)
    return () => runner.stop()
  },
  async settled () {
    while ((await pool.query('select 1 from graphile_worker._private_jobs limit 1')).rowCount) await sleep(1)
  }
})
