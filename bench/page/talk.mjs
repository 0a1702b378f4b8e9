// bench/page/talk.mjs: a process that writes the events of many tasks at a given rate, spread evenly over time.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { usualEvent } from './place.mjs';

const SLICES = 10;

process.on('message', (wish) => {
  if (wish === 'stop') stop.abort();
  else void talk(wish).then((sent) => process.send({ sent, last: [...last] }));
});
const stop = new AbortController();
/** The number of each task's last event. */
const last = new Map();

/** `numbered`: each event contains its number and is a separate item on the page. `seconds` null: until stopped. */
async function talk({ tasksDir, ids, perSecond, seconds, numbered }) {
  let sent = 0;
  const began = performance.now();
  const rounds = seconds === null ? Number.POSITIVE_INFINITY : perSecond * seconds;
  for (let step = 0; step < rounds * SLICES && !stop.signal.aborted; step += 1) {
    for (let i = step % SLICES; i < ids.length; i += SLICES) {
      const id = ids[i];
      const seq = (last.get(id) ?? 1) + 1;
      last.set(id, seq);
      const event = numbered ? { type: 'agent.said', text: `This is event ${seq} of it.` } : usualEvent(seq);
      const line = { seq, at: new Date().toISOString(), task: id, ...event, prev: '' };
      appendFileSync(join(tasksDir, id, 'events.jsonl'), `${JSON.stringify(line)}\n`);
      sent += 1;
    }
    const due = began + ((step + 1) * 1000) / perSecond / SLICES;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
  }
  return sent;
}
