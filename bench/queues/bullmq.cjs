// Posts one body many times, each as a job of BullMQ that is tried ten times.
"use strict";

const { Queue, Worker } = require("bullmq");

const { BENCH_URL, BENCH_BODY } = process.env;
const number = Number(process.env.BENCH_NUMBER);
const connection = { host: "127.0.0.1", port: Number(process.env.BENCH_REDIS_PORT) };

async function post() {
  const answer = await fetch(BENCH_URL, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: BENCH_BODY,
  });
  if (!answer.ok || (await answer.text()).trim() !== "ok") throw new Error(`answered ${answer.status}`);
}

async function main() {
  const queue = new Queue("webhooks", { connection });
  const opts = { attempts: 10, backoff: { type: "fixed", delay: 1000 } };
  for (let made = 0; made < number; made += 1000) {
    const some = Math.min(1000, number - made);
    await queue.addBulk(Array.from({ length: some }, () => ({ name: "post", data: {}, opts })));
  }
  let done = 0;
  const worker = new Worker("webhooks", post, { connection, concurrency: Number(process.env.BENCH_AT_ONCE) });
  worker.on("completed", async () => {
    done += 1;
    if (done === number) {
      await worker.close();
      await queue.close();
      process.exit(0);
    }
  });
}

main();
