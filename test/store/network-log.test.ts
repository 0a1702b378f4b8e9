// test/store/network-log.test.ts: logged decisions stay readable and complete, and a sandbox cannot forge them.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Decision } from '../../src/protocol/network.ts';
import { followNetworkLog, readNetworkLog } from '../../src/store/network-log-reader.ts';
import {
  listNetworkLogs,
  networkLogFile,
  oldNetworkLogs,
  openNetworkLog,
  type NetworkRun,
} from '../../src/store/network-log.ts';

const RUN: NetworkRun = { task: 'build-4kd2', project: '/work/shop', startedAt: '2026-01-02T03:04:05.000Z' };

let dir: string;
let file: string;
beforeEach(() => {
  dir = fs.mkdtempSync(join(tmpdir(), 'ags-network-log-'));
  file = networkLogFile(dir, RUN.task, 1000);
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

function decision(more: Partial<Decision> = {}): Decision {
  return {
    at: '2026-01-02T03:04:06.000Z',
    run: RUN.task,
    by: 'connect',
    host: 'github.com',
    port: 443,
    verdict: 'allowed',
    reason: 'built-in github',
    bytesOut: 1,
    bytesIn: 2,
    ms: 3,
    ...more,
  };
}

function write(decisions: readonly Decision[]): void {
  const log = openNetworkLog(file, RUN);
  for (const one of decisions) log.append(one);
  log.close();
}

const THREE = ['a.test', 'b.test', 'c.test'].map((host) => decision({ host }));

describe('writing', () => {
  test('the first line creates the log, readable by its owner only', () => {
    const log = openNetworkLog(file, RUN);
    log.flush();
    expect(fs.readdirSync(dir)).toEqual([]);
    log.append(decision());
    expect(fs.readdirSync(dir)).toEqual([]);
    log.close();
    expect([fs.statSync(file).mode & 0o777, fs.statSync(join(dir, 'network')).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readNetworkLog(file)).toEqual({ run: RUN, decisions: [decision()], lost: 0, brokenAt: null });
  });

  test('lines are batched and written shortly after, not only at the end', async () => {
    const log = openNetworkLog(file, RUN);
    for (const one of THREE) log.append(one);
    await expect.poll(() => readNetworkLog(file).decisions, { interval: 10, timeout: 2000 }).toEqual(THREE);
    log.append(decision());
    await expect.poll(() => readNetworkLog(file).decisions.length, { interval: 10, timeout: 2000 }).toBe(4);
    log.close();
  });

  test('a pending line does not keep the process alive, and a closed log contains it', () => {
    const run = (end: string): number => {
      const source = `import { openNetworkLog } from ${JSON.stringify(new URL('../../dist/store/network-log.js', import.meta.url).href)};
        const log = openNetworkLog(${JSON.stringify(file)}, ${JSON.stringify(RUN)});
        setTimeout(() => { log.append(${JSON.stringify(decision())}); ${end} }, 1);`;
      const done = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
        encoding: 'utf8',
        timeout: 20_000,
      });
      expect([done.status, done.stderr]).toEqual([0, '']);
      return readNetworkLog(file).decisions.length;
    };
    expect([run(''), run('log.close();')]).toEqual([0, 1]);
  });

  test('an unwritable log reports why, stops nothing, and catches up', () => {
    fs.writeFileSync(join(dir, 'network'), 'in the way');
    const log = openNetworkLog(file, RUN);
    log.append(decision({ host: 'a.test' }));
    log.flush();
    expect(log.trouble()).toMatch(/^E(NOTDIR|EXIST)$/);
    fs.rmSync(join(dir, 'network'));
    log.append(decision({ host: 'b.test' }));
    log.close();
    expect(log.trouble()).toBe(null);
    expect(readNetworkLog(file).decisions.map(({ host }) => host)).toEqual(['a.test', 'b.test']);
  });

  test('endless attempts fill neither disk nor memory, and dropped lines are counted', () => {
    const log = openNetworkLog(file, RUN);
    const big = decision({ reason: 'x'.repeat(1_000_000) });
    for (let i = 0; i < 100; i++) {
      log.append(big);
      log.flush();
    }
    log.close();
    const { decisions, lost, brokenAt } = readNetworkLog(file);
    expect([decisions.length + lost, brokenAt, fs.statSync(file).size < 70 * 2 ** 20, lost > 0]).toEqual([
      100,
      null,
      true,
      true,
    ]);
  });

  test('a second run does not write into the log of the first', () => {
    write(THREE);
    const log = openNetworkLog(file, RUN);
    log.append(decision());
    log.close();
    expect([log.trouble(), readNetworkLog(file).decisions]).toEqual(['EEXIST', THREE]);
  });

  test('recording a decision takes a few microseconds', () => {
    const log = openNetworkLog(file, RUN);
    const one = decision();
    // The best of several rounds, because the machine may be busy.
    const rounds = Array.from({ length: 8 }, () => {
      const started = process.hrtime.bigint();
      for (let i = 0; i < 500; i++) log.append(one);
      return Number(process.hrtime.bigint() - started) / 500 / 1000;
    });
    expect(Math.min(...rounds)).toBeLessThan(10);
    for (let i = 0; i < 36_000; i++) log.append(one);
    log.close();
    const { decisions, lost, brokenAt } = readNetworkLog(file);
    expect([decisions.length, lost, brokenAt]).toEqual([40_000, 0, null]);
  });
});

describe('reading', () => {
  const lines = (): string[] => fs.readFileSync(file, 'utf8').trimEnd().split('\n');

  test.each<[string, (lines: string[]) => string[], number]>([
    ['changed', (all) => all.map((line) => line.replace('b.test', 'x.test')), 4],
    ['removed', (all) => all.filter((line) => !line.includes('b.test')), 3],
    ['moved', (all) => [all[0] ?? '', all[2] ?? '', all[1] ?? '', all[3] ?? ''], 2],
    ['added', (all) => [...all.slice(0, 2), all[1] ?? '', ...all.slice(2)], 3],
    ['overwritten', (all) => [all[0] ?? '', 'garbage', ...all.slice(2)], 2],
    ['emptied', (all) => [all[0] ?? '', '', ...all.slice(2)], 2],
  ])('a line that was %s afterwards is detected and ignored', (_, tamper, brokenAt) => {
    write(THREE);
    fs.writeFileSync(file, `${tamper(lines()).join('\n')}\n`);
    const record = readNetworkLog(file);
    expect(record.brokenAt).toBe(brokenAt);
    expect(record.decisions.filter(({ host }, i) => host !== THREE[i]?.host)).toEqual([]);
  });

  test('a last line cut at any byte is not damage', () => {
    write(THREE);
    const whole = fs.readFileSync(file);
    const end = whole.lastIndexOf('\n', whole.length - 2) + 1;
    for (let length = end; length < whole.length - 1; length++) {
      fs.writeFileSync(file, whole.subarray(0, length));
      expect(readNetworkLog(file)).toEqual({ run: RUN, decisions: THREE.slice(0, 2), lost: 0, brokenAt: null });
    }
    fs.writeFileSync(file, whole.subarray(0, whole.length - 1));
    expect(readNetworkLog(file).decisions).toEqual(THREE);
  });

  test('no data from an agent can create a second line', () => {
    const evil = [
      'a.test"}\n{"seq":9,"prev":"","host":"forged.test"}',
      '\r\n\u2028\u2029\u0085\u0000\u001b[2J\u202e',
      '\ud800',
      '\udfff\ud800x',
      '",\n"verdict":"allowed',
      '\\',
      '\\n',
      '__proto__',
    ];
    const sent = evil.flatMap((text) => [
      decision({ host: text }),
      decision({ path: text, program: text, reason: text, method: text }),
    ]);
    write(sent);
    expect(lines().length).toBe(sent.length + 1);
    expect(readNetworkLog(file)).toEqual({ run: RUN, decisions: sent, lost: 0, brokenAt: null });
    expect(/[\u0000-\u0009\u000b-\u001f]/.test(fs.readFileSync(file, 'utf8'))).toBe(false);
  });

  test('a decision cannot imitate the line of a run or of a loss, or choose its number', () => {
    write([{ ...decision(), type: 'run', seq: 77, prev: 'x', task: 'other' } as Decision, decision()]);
    const { run, decisions, brokenAt } = readNetworkLog(file);
    expect([run, decisions.length, brokenAt]).toEqual([RUN, 2, null]);
  });

  test('a missing file has no decisions', () => {
    expect(readNetworkLog(file)).toEqual({ run: null, decisions: [], lost: 0, brokenAt: null });
  });

  test('a log can be followed from before it exists until the reader stops', async () => {
    const seen: string[] = [];
    const stop = new AbortController();
    const followed = followNetworkLog(file, ({ host }) => seen.push(host), stop.signal);
    const log = openNetworkLog(file, RUN);
    log.append(decision({ host: 'a.test' }));
    await expect.poll(() => seen, { timeout: 3000 }).toEqual(['a.test']);
    log.append(decision({ host: 'ä'.repeat(100_000) }));
    log.append(decision({ host: 'c.test' }));
    await expect.poll(() => seen.length, { timeout: 3000 }).toBe(3);
    log.append(decision({ host: 'last.test' }));
    log.close();
    stop.abort();
    expect(await followed).toBe(null);
    expect(seen).toEqual(['a.test', 'ä'.repeat(100_000), 'c.test', 'last.test']);
  });
});

test('following ends at damage and names the line', async () => {
  write(THREE);
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('a.test', 'x.test'));
  const seen: string[] = [];
  expect(await followNetworkLog(file, ({ host }) => seen.push(host), new AbortController().signal)).toBe(3);
  expect(seen).toEqual(['x.test']);
});

describe('files', () => {
  test('are listed newest first, without other files', () => {
    fs.mkdirSync(join(dir, 'network'));
    for (const name of [
      'a-b2-5.jsonl',
      'npm-test-4kd2-1700000000000.jsonl',
      'x.jsonl',
      '../y-1.jsonl',
      'A-1.jsonl',
      'b-2.json',
    ])
      fs.writeFileSync(join(dir, 'network', name), '');
    expect(listNetworkLogs(dir).map(({ task, startedAtMs }) => [task, startedAtMs])).toEqual([
      ['npm-test-4kd2', 1_700_000_000_000],
      ['a-b2', 5],
    ]);
  });

  test('count as old after thirty days, or when two hundred are newer', () => {
    fs.mkdirSync(join(dir, 'network'));
    const now = 100 * 86_400_000;
    for (let i = 0; i < 205; i++) fs.writeFileSync(networkLogFile(dir, 't', now - i), '');
    fs.writeFileSync(networkLogFile(dir, 'old', now - 31 * 86_400_000), '');
    expect(oldNetworkLogs(dir, now).length).toBe(6);
    for (const { file: path } of oldNetworkLogs(dir, now)) fs.rmSync(path);
    expect(oldNetworkLogs(dir, now + 29 * 86_400_000)).toEqual([]);
    expect(oldNetworkLogs(dir, now + 31 * 86_400_000).length).toBe(200);
  });
});
