// bench/page/listen.mjs: a process that follows many tasks over one WebSocket and over server-sent events, and counts received events, those
// out of order or doubled, and their delays.
import { request } from 'node:http';
import { WebSocket } from 'ws';

/** The maximum for one stream. */
const STREAM_TOPICS = 100;
const accounts = { socket: makeAccount(), stream: makeAccount() };

process.on('message', (wish) => {
  if (wish === 'report') process.send(accounts);
  else void listen(wish).then(() => process.send('listening'));
});

async function listen({ url, headers, topics, after }) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/live`, { headers });
  socket.addEventListener('message', ({ data }) => note(accounts.socket, JSON.parse(data)));
  await new Promise((resolve) => socket.once('open', resolve));
  for (const topic of topics) socket.send(JSON.stringify({ do: 'subscribe', topic, after }));
  for (let i = 0; i < topics.length; i += STREAM_TOPICS)
    await openStream(url, headers, topics.slice(i, i + STREAM_TOPICS), after);
}

function openStream(url, headers, topics, after) {
  const query = `topics=${topics.join(',')}&after=${topics.map(() => after).join('.')}`;
  return new Promise((resolve, reject) => {
    const asked = request(`${url}/api/events?${query}`, { headers, agent: false }, (response) => {
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        const parts = (rest + chunk).split('\n\n');
        rest = parts.pop();
        for (const part of parts) {
          const data = /^data: (.*)$/m.exec(part)?.[1];
          if (data !== undefined) note(accounts.stream, JSON.parse(data));
        }
      });
      resolve();
    });
    asked.on('error', reject);
    asked.end();
  });
}

function note(account, message) {
  if (message.type === 'reset') account.resets += 1;
  if (message.type !== 'event') return;
  account.events += 1;
  if (message.seq !== (account.last[message.topic] ?? 1) + 1) account.wrong += 1;
  account.last[message.topic] = message.seq;
  account.delays.push(Date.now() - Date.parse(message.data.at));
}

function makeAccount() {
  return { events: 0, wrong: 0, resets: 0, last: {}, delays: [] };
}
