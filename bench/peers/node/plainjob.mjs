// plainjob on better-sqlite3: WAL, synchronous=NORMAL, which is its default. A worker of it runs one job at a time.
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker } from 'plainjob'
import { measure } from './queue.mjs'

const folder = fs.mkdtempSync(path.join(process.cwd(), 'plainjob-')) // beside ours, on the same disk
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }))
const logger = { debug () {}, info () {}, warn () {}, error: console.error }
const database = new Database(path.join(folder, 'jobs.db'))
const queue = defineQueue({ connection: better(database), logger })
const synchronous = database.pragma('synchronous', { simple: true })
if (synchronous !== 1) throw new Error(`synchronous is ${synchronous}, not NORMAL`)

await measure('plainjob', {
  clear: async () => { database.exec('delete from plainjob_jobs') },
  add: async data => queue.add('noop', data),
  add_many: async jobs => queue.addMany('noop', jobs),
  async start (count, on_start, on_done) {
    const workers = Array.from({ length: count }, () =>
      defineWorker('noop', async job => { on_start(JSON.parse(job.data)) }, { queue, logger, onCompleted: () => on_done() }))
    for (const worker of workers) worker.start()
    return async () => { await Promise.all(workers.map(worker => worker.stop())) }
  }
})
