// pg-boss. Its worker polls twice a second at best; here each batch asks for the next one at once (notifyWorker).
import pg from 'pg'
import PgBoss from 'pg-boss'
import { measure, sleep } from './queue.mjs'

const kQueue = 'noop'
const connectionString = process.env.STINT_BENCH_POSTGRES
const boss = new PgBoss({ connectionString, max: 20, supervise: false, schedule: false })
boss.on('error', console.error)
await boss.start()
await boss.createQueue(kQueue)
const pool = new pg.Pool({ connectionString, max: 1 })

await measure('pg-boss', {
  clear: () => boss.purgeQueue(kQueue),
  add: data => boss.send(kQueue, data),
  add_many: jobs => boss.insert(jobs.map(data => ({ name: kQueue, data }))),
  async start (batchSize, on_start, on_done) {
    let id
    id = await boss.work(kQueue, { batchSize, pollingIntervalSeconds: 0.5 }, async jobs => {
      for (const job of jobs) on_start(job.data)
      setImmediate(() => { if (id) boss.notifyWorker(id) })
      for (const job of jobs) on_done(job)
    })
    return () => boss.offWork({ id })
  },
  async settled () {
    const open = `select 1 from pgboss.job where name = $1 and state < 'completed' limit 1`
    while ((await pool.query(open, [kQueue])).rowCount) await sleep(1)
  }
})
