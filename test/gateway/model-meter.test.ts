// test/gateway/model-meter.test.ts: requests to models are counted from what the model answers, and refused once a budget is used up.
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createModelMeter } from '../../src/gateway/meter/model-meter.ts';
import { readAnswerUsage } from '../../src/gateway/meter/answer-usage.ts';
import type { ModelAccount, ModelUsage } from '../../src/protocol/model-usage.ts';
import { startModel, type Model } from '../model/server.ts';
import type { Scenario } from '../model/scenario.ts';
import { ok, replies, stage, type Stage } from './intercept-fixture.ts';

interface Noted extends ModelAccount {
  readonly used: ModelUsage[];
  readonly failures: (readonly [status: number | null, seconds: number | null])[];
  readonly asked: boolean[];
  turns: number;
}

function noting(limits: { turns?: number; refuse?: () => string | null; strict?: boolean } = {}): Noted {
  const account: Noted = {
    used: [],
    failures: [],
    asked: [],
    turns: 0,
    strict: limits.strict ?? false,
    refusal: () => limits.refuse?.() ?? null,
    asking: (open) => void account.asked.push(open),
    takeTurn() {
      if (account.turns >= (limits.turns ?? Infinity)) return false;
      account.turns += 1;
      return true;
    },
    giveTurnBack: () => void (account.turns -= 1),
    refuseTurn: () => 'no turn is left',
    answered: (usage) => void account.used.push(usage),
    failed: (status, seconds) => void account.failures.push([status, seconds]),
  };
  return account;
}

const KEY = 'the-key';

interface Scene extends AsyncDisposable {
  readonly model: Model;
  readonly account: Noted;
  /** The status of the answer, and its body. */
  post(path: string, body: object, how?: { chunks?: readonly string[]; fields?: string }): Promise<[number, string]>;
}

async function sceneWith(scenario: Scenario, account = noting()): Promise<Scene> {
  const model = await startModel({ key: KEY, scenario });
  const scene: Stage = await stage(
    (socket) => {
      const onward = connect(model.port, '127.0.0.1');
      onward.on('error', () => socket.destroy());
      socket.on('close', () => onward.destroy());
      socket.pipe(onward).pipe(socket);
    },
    { scheme: 'http', basePath: '/m', meter: createModelMeter(account) },
  );
  return {
    model,
    account,
    async post(path, body, { chunks, fields = '' } = {}) {
      const client = await scene.client();
      const text = JSON.stringify(body);
      const framing =
        chunks === undefined
          ? `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
          : `Transfer-Encoding: chunked\r\n\r\n${chunks.map((one) => `${one.length.toString(16)}\r\n${one}\r\n`).join('')}0\r\n\r\n`;
      client.send(
        `POST /m${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: ${KEY}\r\n${fields}Connection: close\r\n${framing}`,
      );
      const all = await client.rest();
      return [Number(all.slice(9, 12)), all.slice(all.indexOf('\r\n\r\n') + 4)];
    },
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]();
      await model.close();
    },
  };
}

const tool = { name: 'look', description: 'looks', parameters: {}, input_schema: {} };
const SHAPES = {
  'Anthropic Messages': {
    path: '/v1/messages?beta=true',
    body: { model: 'claude-sonnet-5', messages: [{ role: 'user', content: 'Hi' }], tools: [tool] },
    used: { model: 'claude-sonnet-5', input: 1000, output: 20 },
  },
  'OpenAI Responses': {
    path: '/v1/responses',
    body: { model: 'gpt-5.5', input: [{ role: 'user', content: 'Hi' }], tools: [tool] },
    used: { model: 'gpt-5.5', input: 1000, output: 20 },
  },
  'OpenAI Chat Completions': {
    path: '/v1/chat/completions',
    body: { model: 'qwen3-coder-plus', messages: [{ role: 'user', content: 'Hi' }], tools: [tool] },
    used: { model: 'qwen3-coder-plus', input: 100, output: 10 },
  },
} as const;

describe.each(Object.entries(SHAPES))('%s', (_name, { path, body, used }) => {
  test.each([true, false])('an answer is counted, streamed: %s', async (stream) => {
    await using scene = await sceneWith([{ say: 'Hello' }]);
    const [status] = await scene.post(path, { ...body, stream });
    expect(status).toBe(200);
    expect(scene.account.used).toEqual([
      expect.objectContaining({ ...used, cached: 0, cacheWrite: 0, estimated: false }),
    ]);
    expect(scene.account.turns).toBe(1);
  });
});

test.each(['generateContent', 'streamGenerateContent?alt=sse'])('Gemini %s: an answer is counted', async (call) => {
  await using scene = await sceneWith([{ say: 'Hello' }]);
  const body = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], tools: [{ functionDeclarations: [tool] }] };
  const [status] = await scene.post(`/v1beta/models/gemini-2.5-pro:${call}`, body);
  expect(status).toBe(200);
  expect(scene.account.used).toEqual([
    expect.objectContaining({ model: 'gemini-2.5-pro', input: 100, output: 10, estimated: false }),
  ]);
  expect(scene.account.turns).toBe(1);
});

test('cached tokens are told apart, whatever a provider counts them as', () => {
  const read = (json: object): unknown => {
    const usage = readAnswerUsage('application/json; charset=utf-8', null);
    for (const half of [0, 1])
      usage.push(Buffer.from(JSON.stringify(json)).subarray(half * 20, half === 0 ? 20 : undefined));
    const { input, cached, cacheWrite, cacheWriteLong, output } = usage.end(true) ?? {};
    return [input, cached, cacheWrite, cacheWriteLong, output];
  };
  expect(
    read({
      usage: {
        input_tokens: 3,
        cache_read_input_tokens: 500,
        cache_creation_input_tokens: 70,
        cache_creation: { ephemeral_1h_input_tokens: 20 },
        output_tokens: 9,
      },
    }),
  ).toEqual([3, 500, 50, 20, 9]);
  expect(
    read({ usage: { input_tokens: 503, input_tokens_details: { cached_tokens: 500 }, output_tokens: 9 } }),
  ).toEqual([3, 500, 0, 0, 9]);
  expect(
    read({ usage: { prompt_tokens: 503, prompt_tokens_details: { cached_tokens: 500 }, completion_tokens: 9 } }),
  ).toEqual([3, 500, 0, 0, 9]);
  expect(
    read({
      response: {
        usageMetadata: {
          promptTokenCount: 503,
          cachedContentTokenCount: 500,
          candidatesTokenCount: 4,
          thoughtsTokenCount: 5,
        },
      },
    }),
  ).toEqual([3, 500, 0, 0, 9]);
  expect(read({ usage: { input_tokens: 1e300, output_tokens: -5 }, deep: 'x'.repeat(100) })).toEqual(
    Array.from({ length: 5 }),
  );
});

test('an answer that does not tell, is cut off or is endless is estimated by its size', () => {
  const silent = readAnswerUsage('text/event-stream', { model: 'm', requestBytes: () => 4000 });
  for (let i = 0; i < 50; i++) silent.push(Buffer.from(`data: {"choices":[{"delta":{"content":"a word"}}]}\n\n`));
  expect(silent.end(true)).toMatchObject({ input: 1000, output: 50, estimated: true });

  const cut = readAnswerUsage('text/event-stream', null);
  const start = { type: 'message_start', message: { usage: { input_tokens: 1000, output_tokens: 1 } } };
  cut.push(Buffer.from(`data: ${JSON.stringify(start)}\n\n`));
  cut.push(Buffer.from('data: {"type":"content_block_delta"}\n\n'.repeat(30)));
  expect(cut.end(false)).toMatchObject({ input: 1000, output: 31, estimated: true });

  const endless = readAnswerUsage('application/json', { model: 'm', requestBytes: () => 40 });
  const piece = Buffer.alloc(2 ** 20, '"');
  for (let i = 0; i < 8; i++) endless.push(piece);
  expect(endless.end(true)).toMatchObject({ input: 10, output: 2 ** 21, estimated: true });
});

test('an answer holds no more memory than the meter grants, and figures beyond any answer are not believed', () => {
  const usage = { input_tokens: 50, output_tokens: 7 };
  const read = (json: unknown): ModelUsage | null => {
    const reader = readAnswerUsage('application/json', null);
    reader.push(Buffer.from(JSON.stringify(json)));
    return reader.end(true);
  };
  expect(read({ usage, text: 'x'.repeat(4 * 2 ** 20 - 100) })).toMatchObject({ input: 50, output: 7 });
  expect(read({ usage, text: 'x'.repeat(4 * 2 ** 20) })).toBeNull();
  expect(read([{ usage }, ...Array.from({ length: 9_999 }, () => 0)])).toMatchObject({ input: 50 });
  expect(read([{ usage }, ...Array.from({ length: 10_000 }, () => 0)])).toBeNull();
  const inPieces = (length: number): ModelUsage | null => {
    const reader = readAnswerUsage('application/json', null);
    const text = JSON.stringify({ usage }).padEnd(length);
    for (const byte of Buffer.from(text)) reader.push(Buffer.of(byte));
    return reader.end(true);
  };
  expect(inPieces(2 ** 16)).toMatchObject({ input: 50 });
  expect(inPieces(2 ** 16 + 1)).toBeNull();
  expect(read({ usage, model: 'm'.repeat(200) })?.model).toHaveLength(200);
  expect(read({ usage, model: 'm'.repeat(201) })?.model).toBeNull();
  expect(read({ usage: { ...usage, input_tokens: 1e9 } })?.input).toBe(1e9);
  expect(read({ usage: { ...usage, input_tokens: 1e9 + 1 } })).toBeNull();
});

test('the meter notes a limited number of answers and reads the beginning of a failure', () => {
  const account = noting();
  const meter = createModelMeter(account);
  const request = { method: 'GET', path: '/v1/responses/x', headers: [], upgrade: false, endpoint: true };
  const fetch = (id: string): void => {
    const open = meter.open(request);
    if (open === null || typeof open === 'string') throw new Error('The request is not metered.');
    open.head(200, [['content-type', 'application/json']]);
    open.received(Buffer.from(JSON.stringify({ id, usage: { input_tokens: 1, output_tokens: 1 } })));
    open.close(true);
  };
  for (let i = 0; i < 10_001; i++) fetch(`x${i}`);
  fetch('x9999');
  expect(account.used).toHaveLength(10_001);
  fetch('x10000');
  expect(account.used).toHaveLength(10_002);

  const failWith = (text: string): void => {
    const open = meter.open({ ...request, method: 'POST', path: '/v1/messages' });
    if (open === null || typeof open === 'string') throw new Error('The request is not metered.');
    open.head(429, []);
    for (const piece of text.match(/.{1,1000}/g) ?? []) open.received(Buffer.from(piece));
    open.close(true);
  };
  failWith(`${' '.repeat(16_000)}"resets_in_seconds":60`);
  failWith(`${' '.repeat(20_000)}"resets_in_seconds":60`);
  failWith('"resets_in_seconds":691200');
  failWith('"resets_in_seconds":691201');
  expect(account.failures.map(([, seconds]) => seconds)).toEqual([60, null, 691_200, null]);
  // Each of the four was under way, and is not any more.
  expect(account.asked).toEqual([true, false, true, false, true, false, true, false]);
});

describe('turns', () => {
  const { path, body } = SHAPES['Anthropic Messages'];
  const ahead: object = { model: 'claude-haiku-4-5', messages: [{ role: 'user', content: 'A title' }], tools: [] };

  test('the request that would begin turn N+1 never reaches the model, others beside the conversation do', async () => {
    await using scene = await sceneWith([{ say: 'one' }], noting({ turns: 2 }));
    expect((await scene.post(path, ahead))[0]).toBe(200);
    expect((await scene.post(path, body))[0]).toBe(200);
    expect((await scene.post(path, { ...body, stream: true }))[0]).toBe(200);
    expect(scene.model.requests).toHaveLength(3);
    expect(await scene.post(path, body)).toEqual([403, 'ags refuses this request: no turn is left.\n']);
    expect(scene.model.requests).toHaveLength(3);
    expect((await scene.post(path, ahead))[0]).toBe(200);
    expect(scene.account.turns).toBe(2);
  });

  test('of two requests at the same time, only one is the last turn', async () => {
    await using scene = await sceneWith([{ say: 'one' }], noting({ turns: 1 }));
    const answers = await Promise.all([scene.post(path, body), scene.post(path, body)]);
    expect(answers.map(([status]) => status).toSorted((a, b) => a - b)).toEqual([200, 403]);
    expect(scene.model.requests).toHaveLength(1);
  });

  test('a failed answer is no turn', async () => {
    await using scene = await sceneWith(
      [{ fail: { status: 529, message: 'busy' } }, { say: 'one' }],
      noting({ turns: 1 }),
    );
    expect((await scene.post(path, body))[0]).toBe(529);
    expect((await scene.post(path, body))[0]).toBe(200);
    expect((await scene.post(path, body))[0]).toBe(403);
  });

  test.each([
    ['in pieces', ['{"messages":[],"to', 'ols"', `:${' '.repeat(600)}[`, '{}]}']],
    ['with an escaped name', ['{"messages":[],"\\u0074ools":[{}]}']],
    ['after a long text', [`{"messages":["${'x'.repeat(300_000)}"],`, '"tools":[{}]}']],
  ])('tools are seen %s', async (_how, chunks) => {
    await using scene = await sceneWith([{ say: 'one' }], noting({ turns: 0 }));
    expect((await scene.post(path, {}, { chunks }))[0]).toBe(403);
    expect(scene.model.requests).toEqual([]);
  });

  test('a body that cannot be read may hold tools', async () => {
    await using scene = await sceneWith([{ say: 'one' }], noting({ turns: 0 }));
    expect((await scene.post(path, ahead, { fields: 'Content-Encoding: zstd\r\n' }))[0]).toBe(403);
  });
});

test('a used-up budget refuses everything that could cost, also on paths of no known API', async () => {
  await using scene = await sceneWith([{ say: 'one' }], noting({ strict: true, refuse: () => 'nothing is left' }));
  for (const path of ['/v1/messages', '/v1//messages', '/v1/%6dessages', '/v1/embeddings', '/v1/messages/batches'])
    expect((await scene.post(path, {}))[0], path).toBeGreaterThanOrEqual(400);
  expect(scene.model.requests).toEqual([]);
});

test('an answer on an unknown path of a model endpoint is counted as well; one that is fetched again is counted once', async () => {
  const usage = { prompt_tokens: 7, total_tokens: 7 };
  const answer = ok(JSON.stringify({ id: 'x1', model: 'e', usage }), 'Content-Type: application/json\r\n');
  const account = noting();
  await using scene = await stage(
    replies(() => answer),
    {
      scheme: 'http',
      basePath: '/m',
      meter: createModelMeter(account),
    },
  );
  const client = await scene.client();
  const ask = (line: string, more = '\r\n'): Promise<unknown> => client.ask(`${line} HTTP/1.1\r\nHost: x\r\n${more}`);
  await ask('POST /m/v1/embeddings', 'Content-Length: 2\r\n\r\n{}');
  await ask('GET /m/v1/responses/x1');
  await ask('GET /m/v1/responses/x1');
  expect(account.used).toEqual([expect.objectContaining({ model: 'e', input: 7, output: 0, estimated: false })]);
});

test('requests that are not for models are not metered', async () => {
  const account = noting({ refuse: () => 'nothing is left' });
  await using scene = await stage(
    replies(() => ok('{"usage":{"input_tokens":5,"output_tokens":5}}')),
    {
      meter: createModelMeter(account),
    },
  );
  const client = await scene.client();
  const { status } = await client.ask('POST /graphql HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 2\r\n\r\n{}');
  expect([status, account.used]).toEqual([200, []]);
});

test('a request to a model is one however its path is spelled', async () => {
  await using scene = await stage(
    replies(() => ok('{}')),
    {
      anyPath: true,
      meter: createModelMeter(noting({ refuse: () => 'nothing is left' })),
    },
  );
  const spellings = ['/v1/messages', '/v1/%6dessages', '/v1/messages/', '/v1//messages', '/v1/./messages'];
  const parts = ['/x/../v1/messages', '/v1/messages;a=1', '/v1%2fmessages', '/v1/x/%2e%2e/messages'];
  for (const path of [...spellings, ...parts]) {
    const client = await scene.client();
    const { status } = await client.ask(`POST ${path} HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 2\r\n\r\n{}`);
    expect([path, status]).toEqual([path, 403]);
  }
});

test('a hostile answer neither ends the count nor holds up the gateway', () => {
  const read = (type: string, ...data: readonly Buffer[]): ModelUsage | null => {
    const reader = readAnswerUsage(type, { model: null, requestBytes: () => 400 });
    for (const one of data) reader.push(one);
    return reader.end(true);
  };
  const deep = `${'['.repeat(1_000_000)}"usage"${']'.repeat(1_000_000)}`;
  expect(read('application/json', Buffer.from(deep))).toMatchObject({ input: 100, estimated: true });
  expect(read('text/event-stream', Buffer.from(`data: ${deep}\n`))).toMatchObject({ input: 100, estimated: true });
  const usage = Buffer.from('{"usage":{"input_tokens":50,"output_tokens":7}}');
  const pieces = (padding: number): Buffer[] => [usage, ...Array.from({ length: padding }, () => Buffer.from(' '))];
  expect(read('application/json', ...pieces(65_535))).toMatchObject({ input: 50, output: 7 });
  expect(read('application/json', ...pieces(65_536))).toMatchObject({ input: 100, estimated: true });
  const startedMs = performance.now();
  read('text/event-stream', Buffer.alloc(4 * 2 ** 20, '\n'));
  expect(performance.now() - startedMs).toBeLessThan(4_000);
});

test('a failure tells when the model can be asked again, by header or body', async () => {
  const answers = [
    ['HTTP/1.1 429 X\r\nRetry-After: 20\r\n', ''],
    [
      `HTTP/1.1 429 X\r\nanthropic-ratelimit-unified-status: rejected\r\nanthropic-ratelimit-unified-reset: ${Math.ceil(Date.now() / 1000) + 3600}\r\n`,
      '',
    ],
    ['HTTP/1.1 429 X\r\n', '{"error":{"details":[{"retryDelay": "13.5s"}]}}'],
    ['HTTP/1.1 429 X\r\n', '{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}'],
    ['HTTP/1.1 503 X\r\n', 'busy'],
    ['HTTP/1.1 400 X\r\n', 'wrong'],
  ];
  const account = noting();
  await using scene = await stage(
    replies((_head, _socket, index) => {
      const [head = '', body = ''] = answers[index - 1] ?? [];
      return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    }),
    { scheme: 'http', basePath: '/m', meter: createModelMeter(account) },
  );
  const client = await scene.client();
  for (const _ of answers) await client.ask('POST /m/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');
  expect(account.failures.map(([status, seconds]) => [status, seconds])).toEqual([
    [429, 20],
    [429, expect.closeTo(3600, -1)],
    [429, 14],
    [429, 7200],
    [503, null],
  ]);
});
