// test/web/hostile-words.full.test.ts: events that an agent crafted to break the page. The page shows them as text and keeps working.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { paperTask } from '../server/state.ts';
import { createPlace, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

/** A busy machine renders slowly. */
const PATIENCE_MS = 45_000;
const NAMES = ['__proto__', 'constructor', 'hasOwnProperty', 'toString'];
const HUGE = [1e308, -1e308, 2 ** 53 + 2, -0, 1e-300];

test('JavaScript property names, huge numbers, lone surrogates and giant words are shown as text', async () => {
  const task = paperTask(place.machine, 'odd', { live: false, goal: `\ud800 ${'g'.repeat(300_000)}` });
  const { events } = task;
  for (const name of NAMES) {
    events.append({ type: name, text: 'an unknown type' } as never);
    events.append({ type: 'tool.started', id: name, tool: name, action: { kind: 'command', command: name } });
    events.append({ type: 'tool.finished', id: name, outcome: 'failed', output: name, exitCode: 1 });
    events.append({
      type: 'tool.started',
      id: `${name}2`,
      tool: name,
      action: { kind: 'other', input: `{"${name}":1}` },
    });
    events.append({ type: 'network.denied', host: name, port: 443, reason: name });
    events.append({ type: 'agent.asked', question: name, choices: [name, name] });
  }
  for (const huge of HUGE) {
    events.append({
      type: 'tool.started',
      id: 'same',
      tool: 'Shell',
      action: { kind: 'command', command: `n${huge}` },
    });
    events.append({
      type: 'tool.finished',
      id: 'same',
      outcome: 'done',
      output: 'x',
      exitCode: huge,
      durationMs: huge,
    });
    events.append({ type: 'agent.used', inputTokens: huge, outputTokens: huge, costMicros: huge });
    events.append({ type: 'changes.captured', commit: '', files: huge, added: huge, removed: huge, branch: '\udfff' });
  }
  events.append({ type: 'agent.said', text: `half \ud83d and \udc00` });
  events.append({ type: 'agent.said', text: 'w'.repeat(500_000) });
  events.append({ type: 'agent.said', text: `${'\n'.repeat(20_000)}many lines` });
  events.append({ type: 'agent.said', text: 'the last word' });
  await using window = await place.open(place.task('odd'));
  const { page, complaints } = window;
  page.setDefaultTimeout(PATIENCE_MS);
  const timeline = page.getByRole('feed');
  await timeline.getByText('the last word').waitFor();
  for (const key of ['End', 'Home', 'End']) {
    await timeline.press(key);
    await timeline
      .getByText(/the last word|unknown type|half <U\+D83D>|__proto__/)
      .first()
      .waitFor();
  }
  await page.goto(new URL(place.tasks, page.url()).href);
  await page.getByText('<U+D800>').first().waitFor();
  expect(complaints).toEqual([]);
});

/** Each nests too deeply to render or takes seconds to parse. */
const BOMBS = [
  '>'.repeat(4000),
  '> '.repeat(2000),
  '- '.repeat(2000),
  Array.from({ length: 100 }, (_, i) => `${' '.repeat(2 * i)}- a`).join('\n'),
  '*a '.repeat(1300) + 'b* '.repeat(1300),
  `[r]: http://x.test/\n\n${'[r] '.repeat(1200)}`,
  '&amp;'.repeat(1200),
  `**x** ${'long '.repeat(10_000)}`,
];

test('Markdown that is too slow or too deep to render is shown as plain text', async () => {
  const { events } = paperTask(place.machine, 'bombs', { live: false });
  for (const text of BOMBS) events.append({ type: 'agent.said', text });
  events.append({ type: 'agent.said', text: 'and *after* that' });
  await using window = await place.open(place.task('bombs'));
  const { page, complaints } = window;
  page.setDefaultTimeout(PATIENCE_MS);
  const timeline = page.getByRole('feed');
  await timeline.getByText('and after that').waitFor();
  expect(await timeline.locator('em').allInnerTexts()).toEqual(['after']);
  for (const text of ['>>>>', '> > >', '- - -', '  - a', '*a *a', '[r] [r]', '&amp;&amp;', '**x** long']) {
    // Only items near the visible area are rendered.
    await timeline.press('Home');
    await page.mouse.move(500, 400);
    for (let i = 0; i < 400 && (await timeline.getByText(text).count()) === 0; i++) await page.mouse.wheel(0, 600);
    expect(await timeline.getByText(text).count(), text).toBeGreaterThan(0);
    expect(await timeline.locator('blockquote, ul, strong, a').count(), text).toBe(0);
  }
  expect(complaints).toEqual([]);
});

interface Anchor {
  readonly protocol: string;
  readonly host: string;
  readonly textContent: string;
  readonly target: string;
  readonly rel: string;
}

test('A125, A126: links lead only to http and https and show their host; no spelling yields an image or markup', async () => {
  const { events } = paperTask(place.machine, 'links', { live: false });
  const said = [
    '[js](javascript:pwned=1) [JS](JaVaScRiPt:pwned=1) [tab](java&#9;script:pwned=1) <javascript:pwned=1> [data](data:text/html,<script>pwned=1</script>) [vb](vbscript:x) [file](file:///etc/passwd) [blob](blob:null/x)',
    '[relative](/api/storage/clean) [other](//evil.test/x) [page](settings) [fragment](#x)',
    '[https://bank.test](https://evil.test/bank.test) [idn](https://xn--80ak6aa92e.test/) [user](https://bank.test:443@evil2.test/) [odd](https:evil3.test) [space]( https://evil5.test/a%0ab)',
    '![a](https://spy.test/1.png) ![r][p] <img src=https://spy.test/2.png onerror=pwned=2>\n\n[p]: https://spy.test/3.png',
    '<iframe src=https://spy.test></iframe><style>*{display:none}</style><base href=https://evil.test><meta http-equiv=refresh content="0;url=https://evil.test"><form action=https://evil.test><button>x</button></form>',
    'the end of it',
  ];
  for (const text of said) events.append({ type: 'agent.said', text });
  await using window = await place.open(place.task('links'));
  const { page, complaints } = window;
  page.setDefaultTimeout(PATIENCE_MS);
  const timeline = page.getByRole('feed');
  await timeline.getByText('the end of it').waitFor();
  const links = await timeline
    .locator('a')
    .evaluateAll((all) =>
      (all as unknown as Anchor[]).map((one) => [one.protocol, one.host, one.textContent, one.target, one.rel]),
    );
  const rel = 'noopener noreferrer nofollow';
  const words = (text: string, host: string): unknown[] => ['https:', host, `${text} (${host})`, '_blank', rel];
  expect(links).toEqual([
    words('https://bank.test', 'evil.test'),
    words('idn', 'xn--80ak6aa92e.test'),
    words('user', 'evil2.test'),
    words('odd', 'evil3.test'),
    words('space', 'evil5.test'),
  ]);
  expect(await timeline.locator('img, iframe, style, base, meta, form, script').count()).toBe(0);
  expect(await page.evaluate('globalThis.pwned ?? null')).toBe(null);
  expect(complaints).toEqual([]);
});
