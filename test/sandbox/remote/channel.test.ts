// test/sandbox/remote/channel.test.ts: the other end of the channel may send anything.
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { MAX_FRAME, openChannel, WINDOW, type Channel, type Frame } from '../../../src/sandbox/remote/channel.ts';

function frame(kind: string, id: number, body: Buffer = Buffer.alloc(0), size = body.length): Buffer {
  const head = Buffer.alloc(9);
  head.write(kind, 0, 'latin1');
  head.writeUInt32BE(id, 1);
  head.writeUInt32BE(size, 5);
  return Buffer.concat([head, body]);
}

function credit(size: number): Buffer {
  const body = Buffer.alloc(4);
  body.writeUInt32BE(size);
  return body;
}

interface Ends {
  readonly channel: Channel;
  readonly there: PassThrough;
  readonly frames: Frame[];
  problem(): string | null | undefined;
  sent(): Buffer;
}

function open(onFrame: (frame: Frame) => void = () => undefined): Ends {
  const [there, here] = [new PassThrough(), new PassThrough({ highWaterMark: 2 ** 24 })];
  const frames: Frame[] = [];
  let problem: string | null | undefined;
  const channel = openChannel(there, here, {
    onFrame(one) {
      frames.push(one);
      onFrame(one);
    },
    onEnd: (why) => (problem = why),
  });
  return {
    channel,
    there,
    frames,
    problem: () => problem,
    sent: () => (here.read() as Buffer | null) ?? Buffer.alloc(0),
  };
}

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

test.each([
  ['a frame larger than the maximum', frame('d', 1, Buffer.alloc(0), MAX_FRAME + 1), /too large/],
  [
    'more data than the window allows',
    Buffer.concat(Array.from({ length: WINDOW / 1024 + 1 }, () => frame('d', 1, Buffer.alloc(1024)))),
    /more data came/,
  ],
  ['data after the end', Buffer.concat([frame('e', 1), frame('d', 1, Buffer.from('x'))]), /more data came/],
  ['a confirmation of more data than was sent', frame('w', 1, credit(1)), /more data was confirmed/],
  ['a broken window', frame('w', 1, Buffer.alloc(3)), /broken/],
  ['an unknown frame', frame('?', 0), /never says/],
])('%s ends the connection', async (_what, bytes, why) => {
  const { channel, there, problem } = open(({ kind }) => {
    if (kind === '?') throw new Error('it never says this');
  });
  const stream = channel.stream(1);
  there.write(bytes);
  await soon();
  expect(problem()).toMatch(why);
  stream.write('nowhere');
  stream.resume();
  await new Promise((resolve) => stream.once('close', resolve));
});

test('the window grows only with data that was read, and no more is sent than the peer’s window allows', async () => {
  const { channel, there, problem, sent } = open();
  const stream = channel.stream(7);
  for (let n = 0; n < WINDOW / 1024; n++) there.write(frame('d', 7, Buffer.alloc(1024, n)));
  await soon();
  const granted = sent();
  // The stream buffers some data and grants more until its buffer is full.
  expect(granted.length).toBeLessThan(9 * WINDOW);
  let heard = 0;
  stream.on('data', (chunk: Buffer) => (heard += chunk.length));
  await soon();
  expect(heard).toBe(WINDOW);
  stream.write(Buffer.alloc(3 * WINDOW));
  await soon();
  const bodies = sent().length;
  expect(bodies).toBeLessThan(WINDOW + 4096);
  there.write(frame('w', 7, credit(1000)));
  await soon();
  expect([sent().length, problem()]).toEqual([1009, undefined]);
});

test('frames are reassembled from any pieces, and those of an ended stream are dropped', async () => {
  const { channel, there, frames, problem } = open();
  const stream = channel.stream(3);
  const said: string[] = [];
  stream.on('data', (chunk: Buffer) => said.push(chunk.toString()));
  for (const byte of Buffer.concat([
    frame('l', 0),
    frame('d', 3, Buffer.from('abc')),
    frame('e', 3),
    frame('d', 99, Buffer.from('x')),
    frame('r', 0),
  ]))
    there.write(Buffer.from([byte]));
  await soon();
  expect([said.join(''), frames.map(({ kind }) => kind), problem()]).toEqual(['abc', ['l', 'r'], undefined]);
  there.end();
  await soon();
  expect(problem()).toBe('the connection ended');
});
