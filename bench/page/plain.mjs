// bench/page/plain.mjs: the baseline: a plain page that reads the same data and puts all of it into the document at once, without a framework,
// colours or controls.
import { createServer } from 'node:http';

/** `draw` runs in the page with the data and the body. */
export async function servePlain() {
  const pages = new Map();
  const server = createServer((request, response) => {
    const [, name, what] = request.url.split('/');
    const page = pages.get(name);
    if (page === undefined) return response.writeHead(404).end();
    if (what === 'data') return response.writeHead(200, { 'Content-Type': 'application/json' }).end(page.data);
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page.html);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    /** Returns its URL. */
    add(name, data, draw) {
      const script = `fetch('/${name}/data').then((answer) => answer.json()).then((data) => (${draw})(data, document.body));`;
      pages.set(name, { data: JSON.stringify(data), html: `${HEAD}<body><script>${script}</script></body></html>` });
      return `http://127.0.0.1:${server.address().port}/${name}/`;
    },
    close: () => server.close(),
  };
}

const HEAD = `<!doctype html><html lang="en"><meta charset="utf-8"><title>plain</title><style>
body { margin: 0; font: 14px sans-serif }
.row { display: grid; grid-template-columns: 7rem 1fr 1fr 4rem 4rem 8rem 7rem; border-bottom: 1px solid #ccc; min-height: 56px }
.line { display: grid; grid-template-columns: 4rem 4rem 1fr; font: 13px/20px monospace; white-space: pre-wrap; overflow-wrap: anywhere }
.item { white-space: pre-wrap; padding: 8px; border-bottom: 1px solid #ccc }
</style>`;

export const plainRows = ({ tasks }, body) => {
  for (const task of tasks) {
    const row = document.createElement('div');
    row.className = 'row';
    const cells = [task.state, task.title, task.doing, task.startedAtMs, task.costMicros, task.files, 'Review'];
    for (const text of cells) row.appendChild(document.createElement('span')).textContent = String(text ?? '');
    body.append(row);
  }
};

export const plainLines = (files, body) => {
  for (const { path, patch } of files) {
    body.appendChild(document.createElement('h2')).textContent = path;
    let [old, now] = [0, 0];
    for (const text of patch.split('\n')) {
      const hunk = /^@@ -(\d+)\S* \+(\d+)/.exec(text);
      if (hunk !== null) [old, now] = [Number(hunk[1]), Number(hunk[2])];
      const line = document.createElement('div');
      line.className = 'line';
      const [sign] = text;
      line.appendChild(document.createElement('span')).textContent = sign === '+' ? '' : String(old++);
      line.appendChild(document.createElement('span')).textContent = sign === '-' ? '' : String(now++);
      line.appendChild(document.createElement('span')).textContent = text;
      body.append(line);
    }
  }
};

export const plainItems = (events, body) => {
  for (const event of events) {
    const item = document.createElement('div');
    item.className = 'item';
    item.textContent = `${event.type} ${event.text ?? event.output ?? JSON.stringify(event.action ?? '')}`;
    body.append(item);
  }
};
