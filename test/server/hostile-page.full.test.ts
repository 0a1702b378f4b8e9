// test/server/hostile-page.full.test.ts: hostile pages in the real browser of a signed-in user: published by an agent, under names that lead
// to this machine, and under our own name at another port.
// needs: chromium, sandbox
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ONE } from '../harness.ts';
import { createServerMachine, type ServerMachine } from './place.ts';
import { paperTask } from './state.ts';

let machine: ServerMachine;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let ours: URL;
let session: string;
/** Answers under every host name and records requests. */
let thief: { port: number; seen: { host: string; cookie: string }[]; answer: (path: string) => [object, string] };

beforeAll(async () => {
  machine = await createServerMachine(ONE);
  ours = new URL(machine.server.link);
  paperTask(machine, 'victim', { live: false });
  browser = await chromium.launch({
    executablePath: process.env['AGS_CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP rebind.test 127.0.0.1'],
  });
  const server = createServer(({ headers, url = '' }, response) => {
    thief.seen.push({ host: headers.host ?? '', cookie: headers.cookie ?? '' });
    const [head, body] = thief.answer(url);
    response.writeHead('Location' in head ? 302 : 200, { 'Content-Type': 'text/html', ...head }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  thief = { port: (server.address() as AddressInfo).port, seen: [], answer: () => [{}, ''] };
});
afterAll(async () => {
  await browser.close();
  machine[Symbol.dispose]();
});

/** Signs in with a new link. */
beforeEach(async () => {
  thief.seen = [];
  context = await browser.newContext();
  page = await context.newPage();
  const { json } = await machine.server.call<{ path: string }>('POST', '/api/entries');
  await page.goto(ours.origin + json.path);
  session = (await context.cookies())[0]?.value ?? '';
  expect(session).toMatch(/^[\w-]{43}$/);
  await page.goto('about:blank');
});
afterEach(() => context.close());

const hasEntered = async (): Promise<number | undefined> => (await page.goto(`${ours.origin}/api/tasks`))?.status();
const at = (name: string): string => `http://${name}:${thief.port}`;

test("A130: an agent's page does not receive the session, wherever it redirects, and cannot replace it", async () => {
  const names = ['127.0.0.1', 'localhost', 'ags.localhost', 'evil.localhost', '[::ffff:127.0.0.1]'];
  const cookies = [
    'ags=x; Path=/',
    'ags=x; Domain=localhost; Path=/',
    'ags=x; Path=/api',
    'ags=x; Domain=ags.localhost',
  ];
  // Each page requests itself ("same site") and redirects the browser to the next.
  thief.answer = (path) => {
    const next = Number(/^\/(\d+)$/.exec(path)?.[1] ?? -1) + 1;
    const on = next < names.length ? `location = '${at(names[next] ?? '')}/${next}'` : `document.title = 'done'`;
    return [{ 'Set-Cookie': cookies }, `<script>fetch('/self').finally(() => { ${on} })</script>`];
  };
  await page.goto(`${at('127.0.0.1')}/0`);
  await page.waitForFunction(`document.title === 'done'`);
  expect(new Set(thief.seen.map(({ host }) => host)).size).toBe(names.length);
  expect(thief.seen.filter(({ cookie }) => cookie.includes(session))).toEqual([]);
  expect(await hasEntered()).toBe(200);
});

/** Everything a page can try in the browser of a signed-in user, with the results. */
const TRIES = (to: string, project: string): string => `<body><script type=module>
const to = ${JSON.stringify(to)};
const goal = JSON.stringify({ project: ${JSON.stringify(project)}, goals: [{ text: 'say: owned', name: 'owned' }], agents: ['demo'] });
const outcome = (promise) => promise.then((value) => String(value), () => 'refused');
const opened = (make, good) => new Promise((resolve) => {
  const one = make();
  one.addEventListener(good, () => resolve('open'));
  one.addEventListener('error', () => resolve('refused'));
  one.addEventListener('load', () => resolve('loaded'));
});
const load = (tag, attribute) => opened(() => {
  const element = document.createElement(tag);
  element[attribute] = to + '/api/tasks';
  document.body.append(element);
  return element;
}, 'x');
const all = { credentials: 'include' };
const results = {
  read: await outcome(fetch(to + '/api/tasks', all).then((r) => r.text())),
  json: await outcome(fetch(to + '/api/tasks', { ...all, method: 'POST', headers: { 'Content-Type': 'application/json' }, body: goal })),
  text: await outcome(fetch(to + '/api/tasks', { ...all, mode: 'no-cors', method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: goal }).then(() => 'sent')),
  beacon: navigator.sendBeacon(to + '/api/tasks', new Blob([goal], { type: 'text/plain' })),
  stop: await outcome(fetch(to + '/api/storage/clean', { ...all, mode: 'no-cors', method: 'POST' }).then(() => 'sent')),
  socket: await opened(() => new WebSocket(to.replace('http', 'ws') + '/api/live'), 'open'),
  terminal: await opened(() => new WebSocket(to.replace('http', 'ws') + '/api/tasks/victim/terminal'), 'open'),
  events: await opened(() => new EventSource(to + '/api/events', { withCredentials: true }), 'open'),
  script: await load('script', 'src'),
  picture: await load('img', 'src'),
};
const form = document.createElement('form');
Object.assign(form, { method: 'POST', action: to + '/api/tasks', enctype: 'text/plain', target: 'hidden' });
const field = document.createElement('input');
[field.name, field.value] = [goal.slice(0, -1) + ',"x":"', '"}'];
form.append(field);
const frame = document.createElement('iframe');
frame.name = 'hidden';
document.body.append(frame, form);
await new Promise((resolve) => { frame.addEventListener('load', resolve); form.submit(); });
const framed = document.createElement('iframe');
framed.src = to + '/';
await new Promise((resolve) => { framed.addEventListener('load', resolve); document.body.append(framed); });
window.results = results;
</script>`;

describe.each([
  // As if the page had learned our name: the browser sends the session, and only the guard protects.
  ['our own name at another port', () => ours.hostname],
  ['a name of its own', () => 'evil.localhost'],
])('A127, A131: a page under %s', (_, name) => {
  test('reads, starts, hears and frames nothing', async () => {
    thief.answer = () => [{}, TRIES(ours.origin, machine.projectId)];
    const refusals: [string, number][] = [];
    page.on('response', (response) => {
      if (response.url().startsWith(ours.origin)) refusals.push([new URL(response.url()).pathname, response.status()]);
    });
    await page.goto(`${at(name())}/`);
    await page.waitForFunction('globalThis.results !== undefined');
    expect(await page.evaluate('globalThis.results')).toEqual({
      read: 'refused',
      json: 'refused',
      text: expect.stringMatching(/refused|sent/),
      beacon: expect.any(Boolean),
      stop: expect.stringMatching(/refused|sent/),
      socket: 'refused',
      terminal: 'refused',
      events: 'refused',
      script: 'refused',
      picture: 'refused',
    });
    expect(refusals.filter(([path, status]) => path.startsWith('/api/') && status < 400)).toEqual([]);
    expect(machine.tasks()).toEqual(['victim']);
    // A refused frame has no address of ours.
    expect(page.frames().filter((frame) => frame.url().startsWith(ours.origin))).toEqual([]);
    expect(await hasEntered()).toBe(200);
  });

  test('cannot control a window of ours that it opens', async () => {
    thief.answer = () => [{}, `<button onclick="win = window.open('${ours.origin}/')">open</button>`];
    await page.goto(`${at(name())}/`);
    const [popup] = await Promise.all([context.waitForEvent('page'), page.click('button')]);
    await popup.waitForURL(`${ours.origin}/**`);
    await popup.getByRole('heading').first().waitFor();
    expect(await popup.evaluate('globalThis.opener')).toBe(null);
    expect(await page.evaluate('globalThis.win.closed')).toBe(true);
  });
});

test('A129: a foreign name that leads here learns nothing, including our own name', async () => {
  for (const path of ['/', '/api/tasks', '/enter?token=x', '/api/proof?question=0123456789abcdef0123456789abcdef']) {
    const answer = await page.goto(`http://rebind.test:${machine.server.port}${path}`);
    expect(answer?.status()).toBe(421);
    expect(await answer?.text()).not.toContain(ours.hostname);
  }
});

test('A130: a sign-in link leaves no referrer and no history, and linked pages do not learn the address', async () => {
  const { json } = await machine.server.call<{ path: string }>('POST', '/api/entries');
  await page.goto(ours.origin + json.path);
  expect(page.url()).not.toContain('token');
  expect(await page.evaluate(`[document.referrer, document.cookie]`)).toEqual(['', '']);
  thief.answer = () => [{}, '<script>document.title = document.referrer || "nothing"</script>'];
  await page.evaluate(`location = '${at('127.0.0.1')}/'`);
  await page.waitForFunction(`document.title !== ''`);
  expect(await page.title()).toBe('nothing');
});
